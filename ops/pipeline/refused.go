package pipeline

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"entropipe/schemas"
)

// Refused is what one reason refused since the start, committed or not.
type Refused struct {
	Count  int64
	Sample schemas.Reject // the newest one with a value; the caller must not change it
}

// refusals keeps one sample of each reason. The zero value is empty. Any goroutine may call
// the methods.
type refusals struct {
	mu sync.Mutex
	by map[refusal]*Refused
}

type refusal struct{ stage, reason string }

// Bounds of the samples: bytes of a value, of a header's value, and headers.
const (
	sampleValue   = 512
	sampleHeader  = 256
	sampleHeaders = 32
)

// add counts rejects, and copies one of each reason. It returns at once if there is none.
func (r *refusals) add(rejects []schemas.Reject) {
	if len(rejects) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[refusal]*Refused{}
	}
	for i := range rejects {
		from := &rejects[i]
		key := refusal{from.Stage, from.Reason}
		to := r.by[key]
		if to == nil {
			to = &Refused{}
			r.by[key] = to
		}
		to.Count++
		if to.Count == 1 || i == 0 || from.Value != nil { // later ones of a message have no value
			to.Sample = sampleOf(from)
		}
	}
}

// sampleOf returns the begin of a reject, in memory of its own.
func sampleOf(from *schemas.Reject) schemas.Reject {
	s := *from
	s.Key = bytes.Clone(from.Key[:min(len(from.Key), sampleValue)])
	s.Value = bytes.Clone(from.Value[:min(len(from.Value), sampleValue)])
	s.Headers = nil
	for _, h := range from.Headers[:min(len(from.Headers), sampleHeaders)] {
		s.Headers = append(s.Headers, schemas.Header{Key: h.Key,
			Value: bytes.Clone(h.Value[:min(len(h.Value), sampleHeader)])})
	}
	return s
}

// Refused returns what was refused, by reason, the most frequent first.
func (p *Pipeline) Refused() []Refused {
	p.refused.mu.Lock()
	defer p.refused.mu.Unlock()
	all := make([]Refused, 0, len(p.refused.by))
	for _, r := range p.refused.by {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Sample.Stage, b.Sample.Stage),
			cmp.Compare(a.Sample.Reason, b.Sample.Reason))
	})
	return all
}
