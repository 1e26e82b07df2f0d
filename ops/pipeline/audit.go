package pipeline

import (
	"hash/fnv"
	"math"
	"slices"

	"entropipe/schemas"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
)

// audit is scratch memory for the comparison of a sequence with dense attention.
type audit struct {
	scratch kern.Scratch
	stats   []kern.Stat
	states  []float32
}

// audited tells whether a sequence is compared with dense attention: one in every,
// chosen by the hash of its name, so that every run over the same records chooses
// the same sequences.
func audited(id string, every int64) bool {
	if every <= 0 {
		return false
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()%uint64(every) == 0
}

// examine compares a sequence that ran with masks with dense attention, if audited
// chooses the sequence. The model reads the sequence twice more: with its masks, to
// measure the softmax mass that each head dropped, and densely, to measure how far
// the last hidden states are apart. examine changes only the statistics of the row.
func (t *Tokens) examine(it *item) {
	if it.err != nil || it.plan != "sparse" || !audited(it.id, t.cfg.Audit) {
		return
	}
	stats, drift, err := t.compare(it)
	if err != nil {
		t.cfg.Metrics.AuditFailed()
		return
	}
	it.result.Stats = stats
	least := 1.
	for _, s := range stats {
		least = min(least, float64(s.KeptMass))
	}
	t.cfg.Metrics.Audited(drift, least)
}

// compare returns the statistics of each head of each layer for a sequence, and
// drift, |sparse-dense|/|dense| of the last hidden states.
func (t *Tokens) compare(it *item) (stats []schemas.AttentionStat, drift float64, err *schemas.FormatError) {
	defer t.recovered(it, &err)
	t.fill([]*item{it})
	a := &t.audit
	served := t.cfg.Plan(t.planned(it))
	hook := func(layer, sequence int, j *kern.Job) {
		if t.cfg.Route != nil {
			t.cfg.Route(layer, sequence, j)
		}
		a.stats = a.stats[:0]
		for _, s := range a.scratch.Audit(a.stats, j, t.cfg.Ladder, t.cfg.Threads) {
			stats = append(stats, schemas.AttentionStat{Layer: int16(layer), Head: int16(s.Head),
				KeptMass: float32(s.KeptMass), Delta: float32(s.Delta), Bound: float32(s.Bound),
				Error:  float32(s.Error),
				Ladder: t.cfg.Ladder != nil, Extended: int32(s.Rungs.Extended), Dense: int32(s.Rungs.Dense)})
		}
	}
	sparse, e := t.session.Hidden(t.batch, model.Options{Plan: func(int) *plan.Plan {
		return served
	}, Hook: hook, Ladder: t.cfg.Ladder})
	if e != nil {
		return nil, 0, inputErr(e)
	}
	a.states = a.states[:0]
	for i := range sparse.Rows {
		a.states = append(a.states, sparse.Row(i)...)
	}
	dense, e := t.session.Hidden(t.batch, model.Options{})
	if e != nil {
		return nil, 0, inputErr(e)
	}
	apart, length := 0., 0.
	for i := range dense.Rows {
		for k, v := range dense.Row(i) {
			d := float64(v) - float64(a.states[i*dense.Cols+k])
			apart += d * d
			length += float64(v) * float64(v)
		}
	}
	return slices.Clip(stats), math.Sqrt(apart / max(length, math.SmallestNonzeroFloat64)), nil
}
