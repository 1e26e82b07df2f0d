package train

import (
	"math"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/models"
)

// objective computes the loss of one cloud and its gradient. Each cloud of a batch
// has its own objective, so goroutines can work on clouds in parallel.
//
// The task's loss is 100·mean(Δsupport²) over the task's directions, which keeps the
// hull or the front in place, plus mean|δ|² in mode perturb, or the mean squared
// distance to the clean points over that of the noise in mode denoise. Coordinates
// are those of the unit box.
//
// Witnesses of F are chosen on the original cloud (mode denoise: the clean cloud) and
// pinned: they keep their places in the moved cloud, and F does not move them.
// Otherwise the hull would drift inward, which lowers F too.
type objective struct {
	raw, noisy geom.Cloud[float32] // points as drawn; with noise
	original   geom.Cloud[float32] // normalised: what the network sees
	clean      geom.Cloud[float32] // normalised: what it should keep or find
	moved      geom.Cloud[float32]
	pinned     geom.Cloud[float32] // moved, with the witnesses back in place
	grad       geom.Cloud[float32] // gradient of the loss with respect to moved
	push       geom.Cloud[float32] // gradient of the regulariser with respect to moved
	width      [3]float64
	reach      [3]float64 // sigma in normalised coordinates
	spread     float64    // mean squared distance of the noise

	witnesses [][]int32 // witnesses of each operator
	f         entropy.Surrogate[float32]
	ball      entropy.BallEntropy[float32]
	cell      entropy.CellEntropy[float32]
	cells     []uint64
	tanh      []float32
	dAnchors  [][3]float64
	dHalves   []entropy.HalfSpace

	task, regulariser float64
}

// prepare computes the values that do not depend on the network.
func (o *objective) prepare(c *Config, dims int) {
	for d := range dims {
		if o.reach[d] = 0; o.width[d] > 0 {
			o.reach[d] = c.Sigma / o.width[d]
		}
	}
	o.spread = 0
	for d := range dims {
		a, b := axis(o.original, d), axis(o.clean, d)
		for i, v := range a {
			e := float64(v - b[i])
			o.spread += e * e / float64(len(a))
		}
	}
	o.witnesses = grown(o.witnesses, len(c.Ops))
	if c.Regulariser != F {
		return
	}
	for k, op := range c.Ops {
		o.f.Problem, o.f.Box = op, entropy.UnitBox
		o.witnesses[k] = o.f.Witnesses(o.witnesses[k][:0], o.clean, c.Witnesses)
	}
}

// gradient computes the losses from the network's outputs, [n][dims], and sets dOut to
// weight times the gradient of task + lambda·regulariser.
func (o *objective) gradient(t *Trainer, p plan, out, dOut []float32, weight float64) {
	dims := t.data.Dims
	o.move(out, dims)
	resize(&o.grad, o.original)
	o.task = o.taskLoss(&t.cfg, t.directions, dims)
	o.regulariser = 0
	if p.lambda > 0 {
		o.regularise(t, p)
	}
	for d := range dims {
		g, push := axis(o.grad, d), axis(o.push, d)
		for i := range g {
			v := float64(g[i])
			if p.lambda > 0 {
				v += p.lambda * float64(push[i])
			}
			th := float64(o.tanh[i*dims+d])
			dOut[i*dims+d] = float32(weight * v * o.reach[d] * (1 - th*th))
		}
	}
}

// move sets o.moved to the original points plus reach·tanh(out).
func (o *objective) move(out []float32, dims int) {
	o.tanh = grown(o.tanh, len(out))
	tanh(o.tanh, out)
	resize(&o.moved, o.original)
	for d := range dims {
		from, to := axis(o.original, d), axis(o.moved, d)
		for i, v := range from {
			to[i] = v + float32(o.tanh[i*dims+d]*float32(o.reach[d]))
		}
	}
}

// taskLoss returns the task's loss and sets o.grad to its gradient.
func (o *objective) taskLoss(c *Config, directions [][3]float64, dims int) float64 {
	n := float64(o.moved.Len())
	still, scale := o.original, 1.0
	if c.Mode == models.Denoise {
		still = o.clean
		if o.spread > 0 {
			scale = 1 / o.spread
		}
	}
	loss := 0.0
	for d := range dims {
		from, to, g := axis(still, d), axis(o.moved, d), axis(o.grad, d)
		for i, v := range to {
			e := float64(v) - float64(from[i])
			loss += scale * e * e / n
			g[i] = float32(2 * scale * e / n)
		}
	}
	k := float64(len(directions))
	for _, u := range directions {
		_, was := support(o.clean, u, dims)
		at, is := support(o.moved, u, dims)
		loss += 100 * (is - was) * (is - was) / k
		for d := range dims {
			axis(o.grad, d)[at] += float32(200 * (is - was) * u[d] / k)
		}
	}
	return loss
}

// support returns the point that is farthest along u, and max u·x.
func support(c geom.Cloud[float32], u [3]float64, dims int) (at int, far float64) {
	far = math.Inf(-1)
	x, y := c.X, c.Y[:len(c.X)]
	if dims == 2 {
		for i, v := range x {
			if s := u[0]*float64(v) + u[1]*float64(y[i]); s > far {
				at, far = i, s
			}
		}
		return at, far
	}
	z := c.Z[:len(c.X)]
	for i, v := range x {
		if s := u[0]*float64(v) + u[1]*float64(y[i]) + u[2]*float64(z[i]); s > far {
			at, far = i, s
		}
	}
	return at, far
}

// regularise sets o.regulariser to the mean over the operators, and o.push to its
// gradient.
func (o *objective) regularise(t *Trainer, p plan) {
	resize(&o.push, o.moved)
	switch t.cfg.Regulariser {
	case F:
		o.regulariseF(&t.cfg, p, t.data.Dims)
	case HDiff:
		o.dAnchors = grown(o.dAnchors, len(t.anchors))
		o.ball.Alpha = p.alpha
		o.regulariser, _ = o.ball.Gradient(o.push, o.dAnchors, o.moved, t.anchors)
	case HSoft:
		o.dHalves = grown(o.dHalves, len(t.halves))
		o.cell.Tau = p.tau
		o.cells = o.cell.Cells(o.cells[:0], o.moved, t.halves)
		o.regulariser = o.cell.Gradient(o.push, o.dHalves, o.moved, t.halves, o.cells)
	default:
		clearCloud(o.push)
	}
}

func (o *objective) regulariseF(c *Config, p plan, dims int) {
	resize(&o.pinned, o.moved)
	clearCloud(o.push)
	var one geom.Cloud[float32]
	share := float32(1) / float32(len(c.Ops))
	for k, op := range c.Ops {
		for d := range dims {
			to := axis(o.pinned, d)
			copy(to, axis(o.moved, d))
			for _, w := range o.witnesses[k] {
				to[w] = axis(o.clean, d)[w]
			}
		}
		if one = o.push; len(c.Ops) > 1 {
			resize(&o.raw, o.moved) // no longer needed as what was drawn
			one = o.raw
		}
		o.f.Problem, o.f.Tau, o.f.Box = op, p.tau, entropy.UnitBox
		o.regulariser += o.f.Gradient(one, o.pinned, o.witnesses[k]) * float64(share)
		for d := range dims {
			g := axis(one, d)
			for _, w := range o.witnesses[k] {
				g[w] = 0
			}
			if to := axis(o.push, d); len(c.Ops) > 1 {
				for i, v := range g {
					to[i] += share * v
				}
			}
		}
	}
}

// axis returns coordinate d of all points.
func axis(c geom.Cloud[float32], d int) []float32 { return [...][]float32{c.X, c.Y, c.Z}[d] }

// resize sets the lengths and the axes of c to those of like.
func resize(c *geom.Cloud[float32], like geom.Cloud[float32]) {
	n := like.Len()
	c.X, c.Y = grown(c.X, n), grown(c.Y, n)
	if like.Z == nil {
		c.Z = nil
	} else {
		c.Z = grown(c.Z, n)
	}
}

func clearCloud(c geom.Cloud[float32]) {
	clear(c.X)
	clear(c.Y)
	clear(c.Z)
}
