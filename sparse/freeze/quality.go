package freeze

import (
	"fmt"
	"math"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// Largest loss with which a mask is recommended: percent of perplexity, points of
// cosine.
const (
	mayLosePercent = 2.0
	mayLosePoints  = 0.5
)

// judge compares the model with the set's mask, with dense attention, and with a
// window of the same budget, input by input. It sets Quality, Serve and Reason of s.
func (f *run) judge(s *support.Set) error {
	masked, err := newServing(s)
	if err != nil {
		return err
	}
	window, err := newServing(f.windowLike(s))
	if err != nil {
		return err
	}
	var dense, sparse, near []float64 // per input: nats a token, or cosine to dense
	n := f.inputs()
	for i := f.calibrate; i < n; i++ {
		f.progress("judge", i-f.calibrate, n-f.calibrate)
		scores, err := f.scores(i, masked, window)
		if err != nil {
			return err
		}
		dense, sparse, near = append(dense, scores[0]), append(sparse, scores[1]), append(near, scores[2])
	}
	f.progress("judge", n-f.calibrate, n-f.calibrate)
	s.Quality = f.quality(dense, sparse, near)
	s.Serve, s.Reason = verdict(s.Quality, f.o.Select)
	return nil
}

// scores returns the scores of input i: dense, masked, and with the window.
func (f *run) scores(i int, masked, window *serving) (scores [3]float64, err error) {
	var first []float32
	for k, o := range []model.Options{{}, masked.options(), window.options()} {
		hidden, err := f.forward(i, o)
		if err != nil {
			return scores, err
		}
		if f.c.Causal && f.c.Head {
			scores[k] = f.nats(hidden, f.in.Sequences[i])
			continue
		}
		pooled := make([]float32, f.c.Hidden)
		f.s.Pool(pooled, hidden, f.pooling())
		if first == nil {
			first = pooled
		}
		scores[k] = cosine(pooled, first)
	}
	return scores, nil
}

// pooling returns the pooling by which a model is judged: its own, or the mean if it
// has none, or the class row of a ViT.
func (f *run) pooling() hf.Pooling {
	p := f.m.Pooling()
	if f.c.Arch == hf.ViT {
		return hf.Pooling{Mode: hf.CLS}
	}
	if p.Mode == hf.None {
		p.Mode = hf.Mean
	}
	return p
}

// options returns the options that apply the set.
func (v *serving) options() model.Options {
	return model.Options{Plan: v.planner.For, Hook: v.planner.Hook()}
}

// logitRows is the number of rows of logits that are computed at a time, because rows
// of a large vocabulary are long.
const logitRows = 64

// nats returns the mean of -ln p over the tokens after the first.
func (f *run) nats(hidden mat.Matrix, ids []int32) float64 {
	logits := mat.Of(logitRows, f.c.Vocab, make([]float32, logitRows*f.c.Vocab))
	sum := 0.0
	for lo := 0; lo < len(ids)-1; lo += logitRows {
		hi := min(lo+logitRows, len(ids)-1)
		f.s.Logits(logits.Slice(0, hi-lo), hidden.Slice(lo, hi))
		for i := lo; i < hi; i++ {
			sum += surprise(logits.Row(i-lo), ids[i+1])
		}
	}
	return sum / float64(max(len(ids)-1, 1))
}

// surprise returns -ln softmax(row)[id].
func surprise(row []float32, id int32) float64 {
	most, sum := float64(row[0]), 0.0
	for _, x := range row {
		most = max(most, float64(x))
	}
	for _, x := range row {
		sum += math.Exp(float64(x) - most)
	}
	return math.Log(sum) + most - float64(row[id])
}

func cosine(a, b []float32) float64 {
	dot := 0.0
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
	}
	if size := norm(a) * norm(b); size > 0 {
		return dot / size
	}
	return 0
}

// quality summarises the scores of all inputs, with intervals over inputs for the
// loss and the gain.
func (f *run) quality(dense, sparse, near []float64) *support.Quality {
	q := &support.Quality{Sequences: len(dense), Dense: mean(dense), Sparse: mean(sparse), Window: mean(near)}
	lost, gained := make([]float64, len(dense)), make([]float64, len(dense))
	unit := func(x float64) float64 { return 100 * x }
	if f.c.Causal && f.c.Head {
		q.Metric, q.Unit = "perplexity", "%"
		unit = func(x float64) float64 { return 100 * math.Expm1(x) }
		for i := range dense {
			lost[i], gained[i] = sparse[i]-dense[i], near[i]-sparse[i]
		}
		q.Dense, q.Sparse, q.Window = math.Exp(q.Dense), math.Exp(q.Sparse), math.Exp(q.Window)
	} else {
		q.Metric, q.Unit = "cosine", "points"
		for i := range dense {
			lost[i], gained[i] = dense[i]-sparse[i], sparse[i]-near[i]
		}
	}
	q.Lost, q.LostLow, q.LostHigh = interval(lost, unit)
	q.Gained, q.GainedLow, q.GainedHigh = interval(gained, unit)
	return q
}

// verdict returns the recommendation of a set and its reason. A mask is recommended
// if it is certainly better than dense attention, or if the upper end of its loss is
// small and it is certainly better than a window. The selector window need not be
// better than itself.
func verdict(q *support.Quality, selector string) (serve, reason string) {
	most := mayLosePoints
	if q.Metric == "perplexity" {
		most = mayLosePercent
	}
	name := "of " + q.Metric
	switch {
	case q.Better():
		return support.Sparse, fmt.Sprintf("is better than dense attention by at least %.2f %s %s",
			-q.LostHigh, q.Unit, name)
	case !(q.LostHigh <= most):
		return support.Dense, fmt.Sprintf("loses up to %.2f %s %s, and %.1f are allowed", q.LostHigh,
			q.Unit, name, most)
	case selector != Window && !(q.GainedLow > 0):
		return support.Dense, "is not better than a window of the same budget"
	}
	return support.Sparse, fmt.Sprintf("loses at most %.2f %s %s", q.LostHigh, q.Unit, name)
}

func mean(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}

// interval returns the mean of at least two differences and the ends of its 95 %
// interval by Student's t, each converted by unit, which must be increasing.
func interval(x []float64, unit func(float64) float64) (at, low, high float64) {
	m, v := mean(x), 0.0
	for _, d := range x {
		v += (d - m) * (d - m)
	}
	n := float64(len(x))
	half := student(len(x)-1) * math.Sqrt(v/(n-1)/n)
	return unit(m), unit(m - half), unit(m + half)
}

// student returns the 97.5 % point of Student's t: from a table up to 9 degrees of
// freedom, and by the expansion of Cornish and Fisher, within 0.0005, above.
func student(freedom int) float64 {
	table := []float64{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622}
	if freedom <= len(table) {
		return table[freedom-1]
	}
	const z = 1.959964
	d := float64(freedom)
	const z3, z5, z7 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z
	return z + (z3+z)/(4*d) + (5*z5+16*z3+3*z)/(96*d*d) + (3*z7+19*z5+17*z3-15*z)/(384*d*d*d)
}
