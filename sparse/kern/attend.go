package kern

import (
	"math"

	"entropipe/models/mat"
)

// Scratch is memory that Attend uses again. The zero value is ready; one caller
// at a time.
type Scratch struct {
	tasks []task
}

// task is some query rows of one head of a job.
type task struct {
	job          *Job
	head, lo, hi int
}

const tile = 64

// Attend computes the jobs, at most workers goroutines at a time. It panics if
// a job is not sound; jobs without queries or keys are legal (zeros).
func (s *Scratch) Attend(jobs []Job, workers int) {
	s.tasks = s.tasks[:0]
	for i := range jobs {
		j := &jobs[i]
		j.check()
		for h := range j.Heads {
			for lo := 0; lo < j.Q.Rows; lo += tile {
				s.tasks = append(s.tasks, task{j, h, lo, min(lo+tile, j.Q.Rows)})
			}
		}
	}
	mat.Tiles(len(s.tasks), 1, workers, func(i, _ int) {
		t := s.tasks[i]
		weights := make([]float64, t.job.K.Rows)
		sum := make([]float64, t.job.Dim)
		for q := t.lo; q < t.hi; q++ {
			t.job.attendRow(q, t.head, weights, sum)
		}
	})
}

// attendRow is the definition: weights has room for all keys, sum for Dim.
func (j *Job) attendRow(i, h int, weights, sum []float64) {
	clear(sum)
	top, total := math.Inf(-1), 0.0
	j.visible(i, h, func(k int) {
		weights[k] = j.score(i, k, h)
		top = max(top, weights[k])
	})
	j.visible(i, h, func(k int) {
		w := math.Exp(weights[k] - top)
		total += w
		for c, v := range j.value(k, h) {
			sum[c] += w * float64(v)
		}
	})
	out := j.out(i, h)
	for c := range out {
		out[c] = 0
		if total > 0 {
			out[c] = float32(sum[c] / total)
		}
	}
}

func (j *Job) score(i, k, h int) float64 {
	s := 0.0
	key := j.key(k, h)
	for c, q := range j.query(i, h) {
		s += float64(q) * float64(key[c])
	}
	return s * float64(j.Scale)
}
