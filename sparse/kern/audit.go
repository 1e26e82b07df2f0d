package kern

import (
	"math"

	"entropipe/models/mat"
)

// Stat is what the layout of one head left out, over the queries of a job.
type Stat struct {
	Head     int
	KeptMass float64 // mean share of the dense softmax that was read
	Delta    float64 // largest share that was not: δ
	Bound    float64 // largest 2·B·δ, B the longest value vector that its query may see: no error is larger
	Error    float64 // largest Euclidean distance between the sparse and the dense result
	Rungs    Rungs   // what a ladder did; zero without one, or a layout
}

// slack is what rounding of float32 sums may add to δ.
const slack = 4e-6

// Audit attends j by its layouts, as Attend does, or with a ladder as
// AttendWithin does, and once more densely, and appends one Stat for each query
// head to dst. j.Out is the result that is not dense.
// δ is exact but for rounding, for which the bound has room of 4e-6 in δ; a query
// that was left no key counts δ = 1. Without queries or keys the stats are
// those of nothing left out. Cost: that of Attend and of a dense Attend.
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

// dropped is the share of the whole that the kept part lacks, from logarithms.
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
