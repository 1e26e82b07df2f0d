package protocol

import "fmt"

// check returns what is wrong with a state; "" if nothing is.
func (w *world) check(s *state) string {
	for i := range s.writers {
		if s.writers[i].at == stuck {
			return fmt.Sprintf("writer %d stopped: a committed file is gone", i)
		}
	}
	if s.reader.torn {
		return "a reader saw a frame without its other rows"
	}
	if problem := w.sound(s); problem != "" {
		if s.verify() == "" {
			problem += unseen
		}
		return problem
	}
	if problem := s.verify(); problem != "" {
		return "verify finds a fault where there is none: " + problem
	}
	for p := range w.logs {
		if problem := w.lettersSent(s, uint8(p)); problem != "" {
			return problem
		}
	}
	return ""
}

// unseen ends the problem of an output whose records are not all there once, and in which
// verify finds no fault.
const unseen = "; verify does not see it"

// sound compares the output with the logs, which no program can see: every record from the
// base to the end of the newest manifest is in the files exactly once.
func (w *world) sound(s *state) string {
	for p := range uint8(len(w.logs)) {
		base, ok := s.begin(p)
		if !ok {
			continue
		}
		rows, rejects := w.logs[p].truth(base, w.rule())
		var gotRows, gotRejects bits
		end, newest := base, s.newest(p)
		for start := range uint8(maxLog) {
			n := s.manifest[p][start]
			if n == 0 {
				continue
			}
			a := &s.attempts[n-1]
			if gotRows&a.rows != 0 || gotRejects&a.rejects != 0 {
				return fmt.Sprintf("partition %d: a record is in two commits", p)
			}
			gotRows, gotRejects, end = gotRows|a.rows, gotRejects|a.rejects, max(end, a.end)
			if s.gone(n, n == newest) {
				return fmt.Sprintf("partition %d: a file of [%d, %d) is gone", p, a.start, a.end)
			}
		}
		if gotRows != rows&below(end) || gotRejects != rejects&below(end) {
			return fmt.Sprintf("partition %d: up to %d there are rows at %b and rejects at %b, want %b and %b", p, end,
				gotRows, gotRejects, rows&below(end), rejects&below(end))
		}
	}
	for n := range s.attempts {
		a := &s.attempts[n]
		if a.used && (a.file[0]|a.file[1])&published != 0 && s.manifest[a.partition][a.start] != uint8(n)+1 {
			return fmt.Sprintf("a file of attempt %d is published without a manifest", n)
		}
	}
	return ""
}

// begin returns where the output begins; false: it has neither base nor manifest.
func (s *state) begin(p uint8) (uint8, bool) {
	if s.base[p] != 0 {
		return s.base[p] - 1, true
	}
	for start := range uint8(maxLog) {
		if s.manifest[p][start] != 0 {
			return start, true
		}
	}
	return 0, false
}

// gone tells whether the rows of a manifest are lost: a file is nowhere, or it is staged
// and no writer will ever publish it, or it was deleted and is not in the compacted output.
func (s *state) gone(n uint8, newest bool) bool {
	a := &s.attempts[n-1]
	if s.retired[a.partition].has(a.start) && a.end <= s.compacted[a.partition] {
		return false
	}
	for _, f := range a.file {
		if f&published == 0 && (f&staged == 0 || !newest) {
			return true
		}
	}
	return false
}

// verify is what the command does: it knows commit records and files, and no log.
func (s *state) verify() string {
	for p := range uint8(maxPartitions) {
		end, ok := s.begin(p)
		if !ok {
			continue
		}
		var ahead bits
		newest := s.newest(p)
		for start := range uint8(maxLog) {
			n := s.manifest[p][start]
			if n == 0 {
				continue
			}
			a := &s.attempts[n-1]
			switch {
			case a.start != end:
				return fmt.Sprintf("partition %d: after %d follows a manifest of [%d, %d)", p, end, a.start, a.end)
			case a.rows|a.rejects != a.begun:
				return fmt.Sprintf("partition %d: a message of [%d, %d) has neither row nor reject", p, a.start, a.end)
			case ahead&a.begun != 0:
				return fmt.Sprintf("partition %d: a chunk of an earlier frame begins a message of [%d, %d)", p, a.start,
					a.end)
			case s.gone(n, n == newest):
				return fmt.Sprintf("partition %d: a file of [%d, %d) is gone", p, a.start, a.end)
			}
			end, ahead = a.end, ahead|a.ahead
		}
	}
	for n := range s.attempts {
		a := &s.attempts[n]
		if a.used && (a.file[0]|a.file[1])&published != 0 && s.manifest[a.partition][a.start] != uint8(n)+1 {
			return "a file belongs to no manifest"
		}
	}
	return ""
}

// lettersSent checks that every reject which is committed has its dead letter.
func (w *world) lettersSent(s *state, p uint8) string {
	if !w.letters {
		return ""
	}
	for start := range uint8(maxLog) {
		if n := s.manifest[p][start]; n != 0 && s.attempts[n-1].rejects&^s.letters[p] != 0 {
			return fmt.Sprintf("partition %d: a committed reject has no dead letter", p)
		}
	}
	return ""
}

// finish lets one new writer work alone, after all processes have died: every record must
// then be in the output. What is in the air stays there.
func (w *world) finish(s *state) string {
	t := *s
	alone := *w
	alone.writers, alone.attempts, alone.vacuum, alone.reader = 1, maxAttempts, false, false
	for p := range uint8(len(w.logs)) {
		for steps := 0; ; steps++ {
			if steps > 40 {
				return fmt.Sprintf("partition %d: a writer that works alone does not come to the end", p)
			}
			if me := &t.writers[0]; me.at == ready && me.next == uint8(len(w.logs[p])) {
				break
			}
			next, moved := t, false
			alone.writer(&t, 0, func(a action, u *state) {
				if a.outcome == done && a.op != opCrash && (a.op != opResume || a.what>>4 == p) || a.op == opAdopt &&
					a.outcome == exists {
					next, moved = *u, true // the last one: of batches the longest
				}
			})
			if !moved {
				return fmt.Sprintf("partition %d: a writer that works alone cannot go on", p)
			}
			if t = next; t.writers[0].at == stuck {
				return fmt.Sprintf("partition %d: a new writer stops: a committed file is gone", p)
			}
		}
		t.writers[0] = writer{}
	}
	return w.sound(&t)
}
