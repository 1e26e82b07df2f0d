package pipeline

import (
	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// The sample that F is computed from: enough points and witnesses to follow the
// entropy, few enough to take 0.1 to 0.3 ms.
const (
	entropyPoints    = 1024
	entropyWitnesses = 64
	entropyTau       = 2e-4
	// smallEvery is a further stride for frames of fewer than entropyPoints points:
	// F takes more time for them than the operators do.
	smallEvery = 32
)

var entropyProblems = [schemas.NumOps]entropy.Problem{
	schemas.Hull2D: entropy.Hull2D, schemas.Hull3D: entropy.Hull3D,
	schemas.Maxima2D: entropy.Maxima2D, schemas.Maxima3D: entropy.Maxima3D,
}

// measured tells whether the entropy of a frame of n points is measured: of one
// frame in every, chosen by its offset, so that all runs measure the same frames.
func measured(k *schemas.FrameKey, n int, every int64) bool {
	if every > 0 && n < entropyPoints {
		every *= smallEvery
	}
	return every > 0 && (k.Offset+int64(k.Index))%every == 0
}

// measure adds the entropy of every operator whose result is exact. The bounds
// follow from the sizes; F is computed from a sample. A pruned frame has no F,
// because most of its points are missing.
func (o *operators[T]) measure(r *schemas.Result, in *preprocess.Prepared[T]) {
	for op := range schemas.NumOps {
		ran := &r.Ops[op]
		if op == schemas.Delaunay2D || ran.Status == "" || ran.Status == schemas.StatusNotRun ||
			ran.Status == schemas.StatusPrunedInput || approximate(op, r) {
			continue
		}
		b := entropy.FromSize(entropyProblems[op], int(r.NPoints-r.NDropped), int(ran.N))
		e := schemas.Entropy{Op: op, N: ran.N, Lower: b.Lower, Upper: b.Upper, Kind: b.Kind.String(), Survivors: ran.N}
		if o.pruned == nil {
			// The witnesses come from the result, so that the sample misses none that matters.
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

// surrogate returns the surrogate that computes F for op, with its memory of earlier
// frames.
func (o *operators[T]) surrogate(op schemas.Op) *entropy.Surrogate[T] {
	if o.surrogates[op] == nil {
		o.surrogates[op] = &entropy.Surrogate[T]{Problem: entropyProblems[op], Tau: entropyTau}
	}
	return o.surrogates[op]
}

// surrogates holds one surrogate for each operator, made at its first use.
type surrogates[T geom.Float] [schemas.NumOps]*entropy.Surrogate[T]
