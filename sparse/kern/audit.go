package kern

import (
	"math"

	"entropipe/models/mat"
)

// Stat measures what the layout of one head left out, over the queries of a job.
type Stat struct {
	Head     int
	KeptMass float64 // mean share of the dense softmax that was read
	Delta    float64 // max δ, the largest share that was not read
	Bound    float64 // max 2·B·δ, an upper bound of Error; B is the length of the longest value that a query may see
	Error    float64 // largest Euclidean distance between the sparse and the dense result
	Rungs    Rungs   // the ladder's counts; zero without a ladder or a layout
}

// slack bounds the error of δ from the rounding of float32 sums.
const slack = 4e-6

// Audit attends j by its layouts, as Attend does, or as AttendWithin does if l is
// not nil, and once more densely. It appends one Stat for each query head to dst.
// j.Out receives the sparse result. δ is exact except for rounding, for which the
// bound adds 4e-6 to δ. A query that reads no key counts as δ = 1. A job without
// queries or keys gives KeptMass 1 and zeros. Cost: that of Attend and of a dense
// Attend. s serves one caller at a time.
func (s *Scratch) Audit(dst []Stat, j *Job, l *Ladder, workers int) []Stat {
	n := j.Q.Rows * j.Heads
	kept, dense := *j, *j
	kept.LogSums = make([]float64, n)
	rungs := make([]Rungs, j.Heads)
	if l == nil {
		s.Attend([]Job{kept}, workers)
	} else {
		for _, c := range s.within([]Job{kept}, *l, workers) {
			rungs[c.head] = c.rungs
		}
	}
	dense.Layouts, dense.LogSums = nil, make([]float64, n)
	dense.Out = mat.Of(j.Q.Rows, j.Q.Cols, make([]float32, j.Q.Rows*j.Q.Cols))
	s.Attend([]Job{dense}, workers)
	if j.LogSums != nil {
		copy(j.LogSums, kept.LogSums)
	}
	for h := range j.Heads {
		stat := Stat{Head: h, KeptMass: 1, Rungs: rungs[h]}
		radius := j.radii(h)
		mean := 0.0
		for i := range j.Q.Rows {
			if j.horizon(i) == 0 {
				continue
			}
			delta := dropped(kept.LogSums[i*j.Heads+h], dense.LogSums[i*j.Heads+h])
			mean += delta
			stat.Delta = max(stat.Delta, delta)
			stat.Bound = max(stat.Bound, 2*radius[j.horizon(i)-1]*(delta+slack))
			stat.Error = max(stat.Error, distance(j.out(i, h), dense.out(i, h)))
		}
		if j.Q.Rows > 0 {
			stat.KeptMass = 1 - mean/float64(j.Q.Rows)
		}
		dst = append(dst, stat)
	}
	return dst
}

// dropped returns 1-e^(kept-whole), the share of the whole sum that was not kept,
// clamped to [0, 1].
func dropped(kept, whole float64) float64 {
	return min(max(-math.Expm1(kept-whole), 0), 1)
}

// radii returns, for every key, the length of the longest value vector of head
// h up to it.
func (j *Job) radii(h int) []float64 {
	r := make([]float64, j.K.Rows)
	longest := 0.0
	for k := range r {
		longest = max(longest, length(j.value(k, h)))
		r[k] = longest
	}
	return r
}

func length(v []float32) float64 {
	s := 0.0
	for _, x := range v {
		s += float64(x) * float64(x)
	}
	return math.Sqrt(s)
}

func distance(a, b []float32) float64 {
	s := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s += d * d
	}
	return math.Sqrt(s)
}
