package kern

import (
	"math"
	"slices"

	"entropipe/models/mat"
)

// attendPortable is the definition of Attend, in float64.
func (s *Scratch) attendPortable(jobs []Job, workers int) {
	type row struct{ job, head int }
	var rows []row
	jobs = slices.Clone(jobs)
	for i := range jobs {
		if jobs[i].Paged != nil {
			jobs[i] = *jobs[i].unpaged()
		}
		for h := range jobs[i].Heads {
			rows = append(rows, row{i, h})
		}
	}
	mat.Share(len(rows), workers, func(i, _ int) {
		j := &jobs[rows[i].job]
		weights, sum := make([]float64, j.K.Rows), make([]float64, j.Dim)
		for q := range j.Q.Rows {
			j.attendRow(q, rows[i].head, weights, sum)
		}
	})
}

// attendRow computes one row of one head in float64. weights has room for
// K.Rows numbers, sum for Dim.
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
	if j.LogSums != nil {
		j.LogSums[i*j.Heads+h] = top + math.Log(total)
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
