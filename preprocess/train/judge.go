package train

import (
	"math"
	"math/rand/v2"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/models"
	"entropipe/models/mat"
	"entropipe/preprocess/net"
)

// Judgement holds measurements of a network, in its form for inference, on held-out
// frames: means over frames and operators, but for Worst.
type Judgement struct {
	Before float64 `json:"g_before"` // G of the original frames, nats a point
	After  float64 `json:"g_after"`  // G of the moved frames, a certified upper bound of their entropy
	Error  float64 `json:"error"`    // exact error of the answers, in diagonals of the frame
	Worst  float64 `json:"worst"`    // largest error

	// In mode denoise, relative to the maxima of the clean frame.
	Raw      float64 `json:"f1_raw"` // F1 of the maxima of the noisy frame
	F1       float64 `json:"f1"`     // F1 of the maxima of the moved frame
	Tolerant float64 `json:"f1_tolerant"`

	// With Config.Plateau: the loss of the moved frames, and its regulariser, both with the
	// weight and the temperatures of the last step, so that judgements compare.
	Loss        float64 `json:"loss,omitempty"`
	Regulariser float64 `json:"regulariser,omitempty"`

	Best bool `json:"best"` // no earlier judgement was better
}

// better reports whether j is better than o. In mode perturb, a tolerated mean error
// beats a larger one, less entropy decides between two tolerated errors, and less
// error between two others. In mode denoise F1 decides, then Tolerant. With
// Config.Plateau the loss alone decides.
func (j *Judgement) better(o *Judgement, c *Config) bool {
	if c.Plateau > 0 {
		return j.Loss < o.Loss
	}
	if c.Mode == models.Denoise {
		return j.F1 > o.F1 || j.F1 == o.F1 && j.Tolerant > o.Tolerant
	}
	ok, was := j.Error <= c.Tolerance, o.Error <= c.Tolerance
	switch {
	case ok && was:
		return j.After < o.After
	case ok != was:
		return ok
	}
	return j.Error < o.Error
}

// judgedFrames is the largest number of frames of a judgement, which is made often.
const judgedFrames = 16

// judge measures the current network and keeps a copy if no earlier one was better.
func (t *Trainer) judge() (Judgement, error) {
	k := t.current()
	n, err := net.New(t.export(&k))
	if err != nil {
		return Judgement{}, err
	}
	frames := min(len(t.data.Judge), judgedFrames)
	each := make([]Judgement, frames)
	mat.Tiles(frames, 1, t.cfg.Workers, func(i, _ int) {
		f := &t.data.Judge[i*len(t.data.Judge)/frames]
		each[i] = t.judgeFrame(n, f, rand.New(rand.NewPCG(t.cfg.Seed, 1<<63+uint64(i))))
	})
	j := mean(each)
	if j.Best = t.best.params == nil || j.better(&t.best.judgement, &t.cfg); j.Best {
		k.judgement = j
		t.best = k.clone()
	}
	gained := j.Best
	if t.cfg.Plateau > 0 {
		gained = t.bar == 0 || j.Loss < t.bar*(1-t.cfg.Plateau)
	}
	switch {
	case gained:
		t.waited, t.bar = 0, j.Loss
	case 5*t.step > 2*t.cfg.Steps:
		t.waited++
	}
	return j, nil
}

// heldOutLoss sets the loss of a held-out frame and of what the network made of it.
func (t *Trainer) heldOutLoss(j *Judgement, f *Frame, original, moved geom.Cloud[float32]) {
	var o objective
	lo, hi := f.Lo, f.Hi
	if t.cfg.Mode == models.Denoise {
		lo, hi = boxOf(original)
	}
	normalised(&o.original, original, lo, hi)
	normalised(&o.clean, f.Cloud, lo, hi)
	normalised(&o.moved, moved, lo, hi)
	o.prepare(&t.cfg, t.data.Dims)
	resize(&o.grad, o.original)
	j.Loss = o.taskLoss(&t.cfg, t.directions, t.data.Dims)
	if last := planOf(&t.cfg, t.cfg.Steps-1); t.cfg.Regulariser != None && last.lambda > 0 {
		o.regularise(t, last)
		j.Loss, j.Regulariser = j.Loss+last.lambda*o.regulariser, o.regulariser
	}
}

func mean(each []Judgement) (j Judgement) {
	w := 1 / float64(len(each))
	for _, e := range each {
		j.Before, j.After = j.Before+w*e.Before, j.After+w*e.After
		j.Error, j.Worst = j.Error+w*e.Error, max(j.Worst, e.Worst)
		j.Raw, j.F1, j.Tolerant = j.Raw+w*e.Raw, j.F1+w*e.F1, j.Tolerant+w*e.Tolerant
		j.Loss, j.Regulariser = j.Loss+w*e.Loss, j.Regulariser+w*e.Regulariser
	}
	return j
}

func (t *Trainer) judgeFrame(n *net.Net, f *Frame, r *rand.Rand) Judgement {
	c, mover := &t.cfg, net.Mover[float32]{Net: n}
	cloud := f.Cloud
	if c.Mode == models.Denoise {
		cloud = geom.Cloud[float32]{}
		c.Noise.Add(&cloud, f.Cloud, r)
	}
	moved := mover.Move(cloud)
	diagonal := 0.0
	for d := range 3 {
		diagonal = math.Hypot(diagonal, f.Hi[d]-f.Lo[d])
	}
	var each []Judgement
	for _, op := range c.Ops {
		j := Judgement{Before: hard(cloud, op), After: hard(moved, op)}
		if c.Mode == models.Denoise {
			j.score(c, f.Cloud, cloud, moved, op)
		} else {
			j.Error = answerError(cloud, moved, op) / diagonal
			j.Worst = j.Error
		}
		each = append(each, j)
	}
	j := mean(each)
	if c.Plateau > 0 {
		t.heldOutLoss(&j, f, cloud, moved)
	}
	return j
}

// hard returns G with witnesses chosen for the cloud.
func hard(c geom.Cloud[float32], op entropy.Problem) float64 {
	s := entropy.Surrogate[float32]{Problem: op}
	return s.Hard(c, s.Witnesses(nil, c, 64)).Upper
}

// answerError returns the exact error of the operator's answer on the moved cloud,
// used as the answer on c.
func answerError(c, moved geom.Cloud[float32], op entropy.Problem) (e float64) {
	var j net.Judge[float32]
	switch op {
	case entropy.Hull2D:
		_, e = j.Hull2D(nil, c, (&hull.Hull2D[float32]{}).Append(nil, moved))
	case entropy.Hull3D:
		predicted, _, _ := (&hull.Hull3D[float32]{}).Append(nil, nil, moved)
		_, _, _, e = j.Hull3D(nil, nil, c, predicted)
	default:
		e = j.Maxima(c, maximaOf(moved, op), maximaDims(op), [3]bool{})
	}
	return e
}

func maximaDims(op entropy.Problem) int {
	if op == entropy.Maxima3D {
		return 3
	}
	return 2
}

func maximaOf(c geom.Cloud[float32], op entropy.Problem) []int32 {
	var m maxima.Maxima[float32]
	if op == entropy.Maxima3D {
		return m.Append3D(nil, c)
	}
	return m.Append2D(nil, c)
}

// score compares the maxima of noisy and moved cloud with the clean cloud's.
func (j *Judgement) score(c *Config, clean, noisy, moved geom.Cloud[float32], op entropy.Problem) {
	truth, found := maximaOf(clean, op), maximaOf(moved, op)
	j.Raw = F1(truth, maximaOf(noisy, op))
	j.F1 = F1(truth, found)
	j.Tolerant = TolerantF1(clean, truth, found, maximaDims(op), c.Noise.Sigma)
}

// F1 returns the harmonic mean of precision and recall of the found indices. Both
// lists must ascend. Two empty lists have F1 1.
func F1(truth, found []int32) float64 {
	both, k := 0, 0
	for _, i := range found {
		for k < len(truth) && truth[k] < i {
			k++
		}
		if k < len(truth) && truth[k] == i {
			both++
		}
	}
	if len(truth)+len(found) == 0 {
		return 1
	}
	return 2 * float64(both) / float64(len(truth)+len(found))
}

// TolerantF1 is F1 with a tolerance: two indices match if their points in the clean
// cloud differ by at most epsilon on each of the dims axes. Two empty lists have
// TolerantF1 1. Cost: O(len(truth)·len(found)).
func TolerantF1(clean geom.Cloud[float32], truth, found []int32, dims int, epsilon float64) float64 {
	if len(truth)+len(found) == 0 {
		return 1
	}
	near := func(from, to []int32) (fraction float64) {
		for _, i := range from {
			for _, k := range to {
				gap := 0.0
				for d := range dims {
					gap = max(gap, math.Abs(float64(axis(clean, d)[i])-float64(axis(clean, d)[k])))
				}
				if gap <= epsilon {
					fraction += 1 / float64(len(from))
					break
				}
			}
		}
		return fraction
	}
	precision, recall := near(found, truth), near(truth, found)
	if precision+recall == 0 {
		return 0
	}
	return 2 * precision * recall / (precision + recall)
}
