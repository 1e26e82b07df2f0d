package pipeline

import (
	"slices"

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
	// smallEvery is a further stride for frames of fewer than entropyPoints points, and
	// where no triangulation runs: their operators take less time than the measurement.
	smallEvery = 32
)

var entropyProblems = [schemas.NumOps]entropy.Problem{
	schemas.Hull2D: entropy.Hull2D, schemas.Hull3D: entropy.Hull3D,
	schemas.Maxima2D: entropy.Maxima2D, schemas.Maxima3D: entropy.Maxima3D,
}

// measured tells whether the entropy of a frame of n points is measured, for the operators
// ops: of one frame in every, chosen by its offset, so that all runs measure the same
// frames. A stride of 1 means every frame, whatever that costs.
func measured(k *schemas.FrameKey, n int, ops []schemas.Op, every int64) bool {
	if every > 1 && (n < entropyPoints || !slices.Contains(ops, schemas.Delaunay2D)) {
		every *= smallEvery
	}
	return every > 0 && (k.Offset+int64(k.Index))%every == 0
}

// measure adds the entropy of every operator that ran. Of a pruned frame most points are
// missing: its bounds follow from the sizes, and it has no F. Where the stage moved the
// points of an operator, the cloud is measured as received and as moved.
func (o *operators[T]) measure(r *schemas.Result, in *preprocess.Prepared[T]) {
	for op := range schemas.NumOps {
		ran := &r.Ops[op]
		switch {
		case op == schemas.Delaunay2D || ran.Status == "" || ran.Status == schemas.StatusNotRun ||
			ran.Status == schemas.StatusPrunedInput:
		case o.pruned != nil:
			b := entropy.FromSize(entropyProblems[op], int(r.NPoints-r.NDropped), int(ran.N))
			r.Entropy = append(r.Entropy, schemas.Entropy{Op: op, N: ran.N, Lower: b.Lower, Upper: b.Upper,
				Kind: b.Kind.String()})
		case approximate(op, r):
			o.entropyOf(r, op, in.Cloud, o.exactly(op, in.Cloud), schemas.StageBefore)
			moved := o.active.Moved()
			o.entropyOf(r, op, moved, o.exactly(op, moved), schemas.StageAfter)
		default:
			o.found = in.Numbers(o.found[:0], found(op, r))
			o.entropyOf(r, op, in.Cloud, o.found, "")
		}
	}
}

// entropyOf adds the entropy of one cloud, whose maximal points or vertices are output.
// The witnesses of F come from these, so that the sample misses none that matters.
func (o *operators[T]) entropyOf(r *schemas.Result, op schemas.Op, c geom.Cloud[T], output []int32, stage string) {
	b := o.meter.Measure(c, output, entropyProblems[op])
	f := o.surrogate(op).EstimateGiven(c, output, entropyPoints, entropyWitnesses).F
	r.Entropy = append(r.Entropy, schemas.Entropy{Op: op, N: int32(len(output)), Lower: b.Lower, Upper: b.Upper,
		Kind: b.Kind.String(), F: &f, Stage: stage})
}

// exactly returns the exact result of an operator for a cloud, in scratch memory.
func (o *operators[T]) exactly(op schemas.Op, c geom.Cloud[T]) []int32 {
	o.found = o.found[:0]
	switch op {
	case schemas.Hull2D:
		o.found = o.hull.Append(o.found, c)
	case schemas.Hull3D:
		o.hull3.Seeds = nil
		o.found, o.faces, _ = o.hull3.Append(o.found, o.faces[:0], c)
	case schemas.Maxima2D:
		o.found = o.maxima.Append2D(o.found, c)
	case schemas.Maxima3D:
		o.found = o.maxima.Append3D(o.found, c)
	}
	return o.found
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
