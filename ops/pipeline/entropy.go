package pipeline

import (
	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// What F is computed of: enough points and witnesses to follow the entropy, few
// enough to take 0.1 to 0.3 ms.
const (
	entropyPoints    = 1024
	entropyWitnesses = 64
	entropyTau       = 2e-4
	// smallEvery thins out the measuring of frames of fewer points than F looks
	// at: operators take less time for them than F does.
	smallEvery = 32
)

var entropyProblems = [schemas.NumOps]entropy.Problem{schemas.Hull2D: entropy.Hull2D, schemas.Hull3D: entropy.Hull3D, schemas.Maxima2D: entropy.Maxima2D, schemas.Maxima3D: entropy.Maxima3D}

// measured tells whether the entropy of a frame of n points is to be measured,
// where every Nth is. Offsets decide, so that all runs measure the same frames.
func measured(k *schemas.FrameKey, n int, every int64) bool {
	if every > 0 && n < entropyPoints {
		every *= smallEvery
	}
	return every > 0 && (k.Offset+int64(k.Index))%every == 0
}

// measure adds the entropy for the operators that ran on the points as they are.
// The bracket costs nothing; F is of a sample. Of a pruned frame there is no F:
// most of it is not there.
func (o *operators[T]) measure(r *schemas.Result, in *preprocess.Prepared[T]) {
	for op := range schemas.NumOps {
		ran := &r.Ops[op]
		if op == schemas.Delaunay2D || ran.Status == "" || ran.Status == schemas.StatusNotRun || ran.Status == schemas.StatusPrunedInput || approximate(op, r) {
			continue
		}
		b := entropy.FromSize(entropyProblems[op], int(r.NPoints-r.NDropped), int(ran.N))
		e := schemas.Entropy{Op: op, N: ran.N, Lower: b.Lower, Upper: b.Upper, Kind: b.Kind.String(), Survivors: ran.N}
		if o.pruned == nil {
			// Witnesses from the result, so that the sample misses none that matters.
			o.found = in.Numbers(o.found[:0], found(op, r))
			f := o.surrogate(op).EstimateGiven(in.Cloud, o.found, entropyPoints, entropyWitnesses).F
			e.F = &f
			if op == schemas.Hull3D {
				left, _ := o.hull3.Survivors()
				e.Survivors = int32(left)
			}
		}
		r.Entropy = append(r.Entropy, e)
	}
}

// approximate tells whether the result of an operator that ran is not exact.
func approximate(op schemas.Op, r *schemas.Result) bool {
	switch op {
	case schemas.Hull2D:
		return r.Hull.ErrorBound != nil
	case schemas.Hull3D:
		return r.Hull3.ErrorBound != nil
	}
	return maximaOf(op, r).ErrorBound != nil
}

// surrogate returns what computes F for an operator. It keeps its memory.
func (o *operators[T]) surrogate(op schemas.Op) *entropy.Surrogate[T] {
	if o.surrogates[op] == nil {
		o.surrogates[op] = &entropy.Surrogate[T]{Problem: entropyProblems[op], Tau: entropyTau}
	}
	return o.surrogates[op]
}

// surrogates are those of all operators, made when they are needed.
type surrogates[T geom.Float] [schemas.NumOps]*entropy.Surrogate[T]
