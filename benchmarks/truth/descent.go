package main

import (
	"math"
	"math/rand/v2"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/optimal"
	"entropipe/preprocess/net"
)

// descent moves the points of one cloud, each on its own, so that a task's loss
// plus lambda times a regulariser falls: x = x0 + reach·tanh(d), d by Adam. A
// network has less freedom, for it must do with what it learned of other clouds;
// descents bound no run time, as nothing can run them on a stream.
type descent struct {
	measure string // one of the measures below
	lambda  float64
	k       int     // anchors, half-spaces or witnesses
	alpha   float64 // sharpness of H_diff's assignments
	tau     float64 // at the end, of H_soft and F
	fixed   bool    // anchors and half-spaces stay
	unpin   bool    // F's witnesses move, too
	steps   int
}

const (
	measureF     = "F"
	measureBall  = "H_diff (balls)"
	measureHalf  = "H_soft (half-spaces)"
	measureBoxes = "H_soft (axis-parallel)"
	// measureJitter is a control: points move at random, with a deviation of lambda.
	measureJitter = "random jitter"
)

// moved says what a descent did to a cloud.
type moved struct {
	before, after   float64 // entropy of the hull
	touched, toWork float64 // points touched, a point, before and after
	err             float64 // exact error of the hull found on moved points, in diagonals
	loss, toLoss    float64 // the regulariser, before and after
	shift           float64 // mean displacement, in diagonals
}

const (
	reach    = .1 // largest displacement of a point in the unit box, as in the paper
	supports = 64 // directions of the task's loss
)

// run descends. c fills the unit box.
func (d *descent) run(c geom.Cloud[float64], seed uint64) moved {
	s := newDescending(d, c, seed)
	var m moved
	if d.measure == measureJitter {
		r := rand.New(rand.NewPCG(seed, 22))
		for i := range s.x.X {
			s.x.X[i] += d.lambda * r.NormFloat64()
			s.x.Y[i] += d.lambda * r.NormFloat64()
		}
		d.steps = 0
	}
	for step := range d.steps {
		l := s.step(step)
		if step == 0 {
			m.loss = l
		}
		m.toLoss = l
	}
	before, after := answerOf(c, entropy.Hull2D), answerOf(s.x, entropy.Hull2D)
	m.before = entropy.GroundTruth(c, before, entropy.Hull2D).Estimate
	m.after = entropy.GroundTruth(s.x, after, entropy.Hull2D).Estimate
	m.touched, m.toWork = hullWork(c), hullWork(s.x)
	_, e := (&net.Judge[float64]{}).Hull2D(nil, c, after)
	diagonal := math.Sqrt2
	m.err = e / diagonal
	for i := range c.X {
		m.shift += math.Hypot(s.x.X[i]-c.X[i], s.x.Y[i]-c.Y[i]) / diagonal / float64(c.Len())
	}
	return m
}

// hullWork is how many points an instance-optimal hull touches, a point.
func hullWork(c geom.Cloud[float64]) float64 {
	var o optimal.Hull2D[float64]
	o.Append(nil, c)
	return float64(o.Upper.Touched+o.Lower.Touched) / float64(c.Len())
}

// descending is the state of a descent.
type descending struct {
	*descent
	from, x, grad geom.Cloud[float64]
	points        adam
	pinned        []int32
	directions    [supports][2]float64
	support       [supports]float64

	ball      entropy.BallEntropy[float64]
	anchors   [][3]float64
	cell      entropy.CellEntropy[float64]
	halves    []entropy.HalfSpace
	cells     []uint64
	f         entropy.Surrogate[float64]
	witnesses []int32
	own       adam
}

func newDescending(d *descent, c geom.Cloud[float64], seed uint64) *descending {
	n := c.Len()
	s := &descending{descent: d, from: c, points: adam{rate: .02}, own: adam{rate: .01}}
	for _, to := range []*geom.Cloud[float64]{&s.x, &s.grad} {
		*to = geom.Cloud[float64]{X: make([]float64, n), Y: make([]float64, n)}
	}
	copy(s.x.X, c.X)
	copy(s.x.Y, c.Y)
	for u := range s.directions {
		sin, cos := math.Sincos(2 * math.Pi * float64(u) / supports)
		s.directions[u] = [2]float64{cos, sin}
		s.support[u], _ = supportOf(c, cos, sin)
	}
	r := rand.New(rand.NewPCG(seed, 21))
	switch d.measure {
	case measureBall:
		s.ball.Alpha = d.alpha
		s.anchors = anchorsOf(c, d.k, r)
	case measureHalf:
		s.halves = entropy.PrincipalHalves(c, d.k)
	case measureBoxes:
		for k := range d.k {
			w := [3]float64{1 - float64(k%2), float64(k % 2)}
			s.halves = append(s.halves, entropy.HalfSpace{W: w, B: float64(k/2+1) / float64((d.k+1-k%2)/2+1)})
		}
	case measureF:
		s.f = entropy.Surrogate[float64]{Problem: entropy.Hull2D, Box: entropy.UnitBox}
		s.witnesses = s.f.Witnesses(nil, c, d.k)
		if !d.unpin {
			s.pinned = s.witnesses
		}
	}
	s.cells = s.cell.Cells(nil, c, s.halves)
	return s
}

// supportOf is the farthest point along a direction.
func supportOf(c geom.Cloud[float64], x, y float64) (far float64, at int) {
	far = math.Inf(-1)
	for i := range c.X {
		if v := x*c.X[i] + y*c.Y[i]; v > far {
			far, at = v, i
		}
	}
	return far, at
}

// step moves the points once, and returns the regulariser before it.
func (s *descending) step(step int) (loss float64) {
	n := len(s.x.X)
	gone := float64(step) / float64(max(s.steps-1, 1))
	clear(s.grad.X)
	clear(s.grad.Y)
	loss = s.regulariser(gone)
	for i := range n {
		s.grad.X[i] *= s.lambda
		s.grad.Y[i] *= s.lambda
		// The mean displacement, whose gradient has no direction at 0.
		dx, dy := s.x.X[i]-s.from.X[i], s.x.Y[i]-s.from.Y[i]
		if l := math.Hypot(dx, dy); l > 0 {
			s.grad.X[i] += dx / l / float64(n)
			s.grad.Y[i] += dy / l / float64(n)
		}
	}
	for u, w := range s.directions {
		far, i := supportOf(s.x, w[0], w[1])
		g := 200 * (far - s.support[u]) / supports
		s.grad.X[i] += g * w[0]
		s.grad.Y[i] += g * w[1]
	}
	for _, i := range s.pinned {
		s.grad.X[i], s.grad.Y[i] = 0, 0
	}
	for d, axis := range [][3][]float64{{s.from.X, s.x.X, s.grad.X}, {s.from.Y, s.x.Y, s.grad.Y}} {
		for i := range n {
			t := (axis[1][i] - axis[0][i]) / reach
			next := s.points.next(d*n+i, 2*n, step, math.Atanh(t), axis[2][i]*reach*(1-t*t))
			if axis[2][i] != 0 {
				axis[1][i] = axis[0][i] + reach*math.Tanh(max(-3, min(next, 3)))
			}
		}
	}
	return loss
}

// regulariser computes the measure and its gradient, and moves what it has of its
// own.
func (s *descending) regulariser(gone float64) (loss float64) {
	switch s.measure {
	case measureBall:
		g := make([][3]float64, len(s.anchors))
		loss, _ = s.ball.Gradient(s.grad, g, s.x, s.anchors)
		for j := 0; j < len(g) && !s.fixed; j++ {
			for d := range 2 {
				s.anchors[j][d] = s.own.next(2*j+d, 2*len(g), int(gone*float64(s.steps-1)), s.anchors[j][d], g[j][d])
			}
		}
	case measureHalf, measureBoxes:
		// From ten times the temperature down, as for F.
		s.cell.Tau = s.tau * math.Pow(10, 1-gone)
		g := make([]entropy.HalfSpace, len(s.halves))
		loss = s.cell.Gradient(s.grad, g, s.x, s.halves, s.cells)
		for j := 0; j < len(g) && !s.fixed; j++ {
			h, at := &s.halves[j], int(gone*float64(s.steps-1))
			h.B = s.own.next(3*j, 3*len(g), at, h.B, g[j].B)
			for d := 0; d < 2 && s.measure == measureHalf; d++ {
				h.W[d] = s.own.next(3*j+1+d, 3*len(g), at, h.W[d], g[j].W[d])
			}
		}
	case measureF:
		s.f.Tau = .01 * math.Pow(s.tau/.01, gone)
		loss = s.f.Gradient(s.grad, s.x, s.witnesses)
	}
	return loss
}

// adam is Adam's rule (Kingma and Ba, 2015) for a vector of parameters.
type adam struct {
	rate        float64
	mean, power []float64
}

// next is parameter i of count after a step along its gradient.
func (a *adam) next(i, count, step int, value, gradient float64) float64 {
	if a.mean == nil {
		a.mean, a.power = make([]float64, count), make([]float64, count)
	}
	const b1, b2 = .9, .999
	a.mean[i] = b1*a.mean[i] + (1-b1)*gradient
	a.power[i] = b2*a.power[i] + (1-b2)*gradient*gradient
	t := float64(step + 1)
	m, p := a.mean[i]/(1-math.Pow(b1, t)), a.power[i]/(1-math.Pow(b2, t))
	return value - a.rate*m/(math.Sqrt(p)+1e-12)
}

// descentFamilies are the clouds of the descents.
var descentFamilies = []struct {
	name string
	make func(n int, seed uint64) geom.Cloud[float64]
}{
	{"uniform", geomtest.Square[float64]},
	{"parabola", geomtest.Parabola[float64]},
	{"ring", func(n int, seed uint64) geom.Cloud[float64] {
		r, c := rand.New(rand.NewPCG(seed, 3)), geomtest.Circle[float64](n, seed)
		for i := range c.X {
			d := 1 - r.Float64()/100
			c.X[i], c.Y[i] = d*c.X[i], d*c.Y[i]
		}
		return c
	}},
	{"circle", geomtest.Circle[float64]},
}

// descend runs a descent on a family for every seed, and returns the record.
func descend(d descent, family string, n int, seeds []uint64) record {
	var all []moved
	for _, f := range descentFamilies {
		for k := 0; k < len(seeds) && f.name == family; k++ {
			all = append(all, d.run(unitBox(f.make(n, seeds[k])), seeds[k]))
		}
	}
	var r record
	for name, of := range map[string]func(m *moved) float64{
		"before": func(m *moved) float64 { return m.before }, "after": func(m *moved) float64 { return m.after },
		"change":       func(m *moved) float64 { return (m.after - m.before) / m.before },
		"touched":      func(m *moved) float64 { return m.touched },
		"work":         func(m *moved) float64 { return m.toWork / m.touched },
		"err":          func(m *moved) float64 { return m.err },
		"regulariser":  func(m *moved) float64 { return m.loss },
		"regulariser1": func(m *moved) float64 { return m.toLoss },
		"shift":        func(m *moved) float64 { return m.shift },
	} {
		v := make([]float64, len(all))
		for k := range all {
			v[k] = of(&all[k])
		}
		r.add(name, seeds, v)
	}
	r.Values["lambda"], r.Values["k"], r.Values["alpha"], r.Values["tau"] = d.lambda, float64(d.k), d.alpha, d.tau
	r.Text = map[string]string{"family": family, "measure": d.measure}
	return r
}
