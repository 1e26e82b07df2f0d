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

// audit is the memory of comparing a sequence with dense attention.
type audit struct {
	scratch kern.Scratch
	stats   []kern.Stat
	states  []float32
}

// audited tells whether a sequence is one of those that are compared: by its
// name, so that every run over the same records chooses the same.
func audited(id string, every int64) bool {
	if every <= 0 {
		return false
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()%uint64(every) == 0
}

// examine compares a sequence that masks have served with dense attention, if
// it is one of those. It reads all blocks for that, and is read twice more: as
// it was served, for what each head dropped, and densely, for how far the last
// states are apart. The row is not changed by it, except for its statistics.
func (t *Tokens) examine(it *item) {
	if it.err != nil || it.plan != "sparse" || !audited(it.id, t.cfg.Audit) {
		return
	}
	stats, drift, err := t.compare(it)
	if err != nil {
		t.cfg.Metrics.Audited(0, 0, false)
		return
	}
	it.result.Stats = stats
	least := 1.
	for _, s := range stats {
		least = min(least, float64(s.KeptMass))
	}
	t.cfg.Metrics.Audited(drift, least, true)
}

// compare returns what each head of each layer dropped of a sequence, and the
// distance of its last states from the dense ones over the length of these.
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
				KeptMass: float32(s.KeptMass), Delta: float32(s.Delta), Bound: float32(s.Bound), Error: float32(s.Error),
				Ladder: t.cfg.Ladder != nil, Extended: int32(s.Rungs.Extended), Dense: int32(s.Rungs.Dense)})
		}
	}
	sparse, e := t.session.Hidden(t.batch, model.Options{Plan: func(int) *plan.Plan { return served }, Hook: hook, Ladder: t.cfg.Ladder})
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
