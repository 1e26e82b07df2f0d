package seedfit

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/algos/entropy"
	"entropipe/algos/extreme"
	"entropipe/algos/geom"
)

const (
	judged = 2048 // points of each frame from which F is computed
	tau    = 5e-4 // temperature of F, in unit coordinates
)

// judge computes the mean of F over the frames.
type judge struct {
	frames  []geom.Cloud[float64]
	finders []extreme.Finder[float64]
	f       entropy.Surrogate[float64]
}

func newJudge(frames []*frame) *judge {
	j := &judge{f: entropy.Surrogate[float64]{Problem: entropy.Hull3D, Tau: tau}}
	for k := range frames {
		c := frames[k].cloud
		step := (c.Len() + judged - 1) / judged
		var s geom.Cloud[float64]
		for i := 0; i < c.Len(); i += step {
			s.X, s.Y, s.Z = append(s.X, c.X[i]), append(s.Y, c.Y[i]), append(s.Z, c.Z[i])
		}
		var f extreme.Finder[float64]
		if f.Look(s) {
			j.frames, j.finders = append(j.frames, s), append(j.finders, f)
		}
	}
	return j
}

func (j *judge) of(u []float32) float64 {
	sum := 0.0
	for k, c := range j.frames {
		sum += j.f.Value(c, j.finders[k].Append(nil, u))
	}
	return sum / float64(len(j.frames))
}

// refine turns one direction a step, by decreasing angles, and keeps a turn that
// lowers F.
func refine(frames []*frame, u []float32, steps int, seed uint64) {
	j, r := newJudge(frames), rand.New(rand.NewPCG(seed, 1))
	best := j.of(u)
	for step := range steps {
		k := 3 * r.IntN(len(u)/3)
		was := slices.Clone(u[k : k+3])
		size := 0.3 * math.Pow(0.1, float64(step)/float64(steps))
		turn(u[k:k+3], size, r)
		if f := j.of(u); f < best {
			best = f
		} else {
			copy(u[k:], was)
		}
	}
}

// turn adds normal noise of deviation size to a direction and normalises it.
func turn(u []float32, size float64, r *rand.Rand) {
	var v [3]float64
	sum := 0.0
	for k := range v {
		v[k] = float64(u[k]) + size*r.NormFloat64()
		sum += v[k] * v[k]
	}
	for k := range v {
		u[k] = float32(v[k] / math.Sqrt(sum))
	}
}
