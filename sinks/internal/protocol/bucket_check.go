package protocol

import (
	"bytes"
	"fmt"
	"slices"
)

// check returns what is wrong with a state; "" if nothing is. Where another program has
// replaced an object, a client may refuse to go on.
func (w *bucketWorld) check(s *bucket) string {
	for i := range s.clients {
		if s.clients[i].at == stuck && !s.meddled {
			return fmt.Sprintf("client %d stopped: a committed file is gone", i)
		}
	}
	if s.torn {
		return "a reader saw a frame without its other rows"
	}
	return w.sound(s)
}

// sound tells whether the manifests are a chain from the first record on, and whether their
// files, and no others, are there.
func (w *bucketWorld) sound(s *bucket) string {
	end, chain, newest := uint8(0), bits(0), uint8(0)
	for end < bucketLog && s.manifest[end] != 0 {
		chain, newest = chain.with(end), s.manifest[end]
		end = s.uploads[newest-1].end
	}
	for start, n := range s.manifest {
		if n == 0 {
			continue
		}
		if !chain.has(uint8(start)) {
			return fmt.Sprintf("the manifest at %d continues none", start)
		}
		if k, gone := w.gone(s, n, n == newest); gone {
			return fmt.Sprintf("file %d of the manifest at %d is gone", k, start)
		}
	}
	for n := range s.uploads {
		a := &s.uploads[n]
		if !a.used {
			continue
		}
		for k, found := range s.final[rangeOf(a.start, a.end)] {
			if found == content(n)+1 && s.manifest[a.start] != uint8(n)+1 {
				return fmt.Sprintf("file %d of attempt %d is published without a manifest", k, n)
			}
			if found == forged {
				return fmt.Sprintf("file %d of attempt %d is published with other bytes", k, n)
			}
		}
	}
	return ""
}

// gone returns a file of an attempt's manifest that is neither published nor staged. Only
// those of the newest manifest may be staged.
func (w *bucketWorld) gone(s *bucket, n uint8, newest bool) (file int, gone bool) {
	a := &s.uploads[n-1]
	for k := range w.files {
		found, staged := s.final[rangeOf(a.start, a.end)][k], a.staged[k]
		if found == content(n) || newest && (staged != noTag || w.mutant == publishByCompleting &&
			a.open.has(uint8(k))) {
			continue
		}
		return k, true
	}
	return 0, false
}

// finish lets one new client work alone, after all processes have died. Every record must
// then be in the output, and nothing that has lost in staging. What is in the air stays there.
func (w *bucketWorld) finish(s *bucket) string {
	t := *s
	alone := *w
	alone.clients, alone.attempts, alone.faults, alone.hints, alone.parallel = 1, bucketTries, 0, false, false
	for steps, runs := 0, 0; ; steps++ {
		if me := &t.clients[0]; me.at == ready && me.next == w.records {
			if runs++; runs == 2 { // the second one sees what the first one has made lost
				break
			}
			*me = client{}
		}
		next, moved := t, false
		alone.client(&t, 0, func(op op, _ uint8, _ outcome, change func(t *bucket, me *client)) {
			if op != opCrash {
				next, moved = t, true // the last one: of batches the longest
				change(&next, &next.clients[0])
			}
		})
		if !moved || steps > 80 {
			return "a client that works alone does not come to the end"
		}
		if t = next; t.clients[0].at == stuck {
			if s.meddled {
				return ""
			}
			return "a new client stops: a committed file is gone"
		}
	}
	for n := range t.uploads {
		a := &t.uploads[n]
		m := t.manifest[a.start]
		if a.used && m != 0 && m != uint8(n)+1 && a.staged != [bucketFiles]etag{} {
			return fmt.Sprintf("what attempt %d has staged in vain stays", n)
		}
	}
	t.clients[0] = client{}
	return w.sound(&t)
}

// canonicalBucket gives attempts and clients numbers that depend on what they are only.
func canonicalBucket(s *bucket) {
	var order [bucketTries]uint8
	for i := range order {
		order[i] = uint8(i)
	}
	old := s.uploads
	slices.SortStableFunc(order[:], func(a, b uint8) int { return -bytes.Compare(bytesOf(&old[a]), bytesOf(&old[b])) })
	var to [bucketTries + 1]uint8 // by old number + 1
	for i, from := range order {
		s.uploads[i], to[from+1] = old[from], uint8(i)+1
	}
	for start := range s.manifest {
		s.manifest[start] = to[s.manifest[start]]
	}
	for at := range s.final {
		for k, found := range s.final[at] {
			if found <= bucketTries {
				s.final[at][k] = content(to[found])
			}
		}
	}
	for i := range s.clients {
		c := &s.clients[i]
		c.own, c.of = to[c.own], to[c.of]
		lost := c.lost
		for n := range lost {
			c.lost[to[n+1]-1] = lost[n]
		}
	}
	slices.SortFunc(s.clients[:], func(a, b client) int { return -bytes.Compare(bytesOf(&a), bytesOf(&b)) })
}
