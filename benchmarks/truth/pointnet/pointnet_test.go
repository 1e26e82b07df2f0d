package pointnet

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func cloud(n int, r *rand.Rand) []float32 {
	x := make([]float32, Dims*n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// checkGradient compares the derivative of loss by some numbers of p with differences.
// Kinks of ReLU, maxima and matches may spoil a few.
func checkGradient(t *testing.T, name string, p, g []float32, step float64, r *rand.Rand, loss func() float64) {
	t.Helper()
	most := 0.0
	for _, v := range g {
		most = max(most, math.Abs(float64(v)))
	}
	if most == 0 {
		t.Fatalf("%s: no gradient", name)
	}
	wrong := 0
	const looks = 60
	for range looks {
		i := r.IntN(len(p))
		was := p[i]
		p[i] = was + float32(step)
		up := loss()
		p[i] = was - float32(step)
		down := loss()
		p[i] = was
		if d := (up - down) / (2 * step); math.Abs(d-float64(g[i])) > .02*most {
			wrong++
		}
	}
	if wrong > looks/15 {
		t.Errorf("%s: %d of %d derivatives are wrong", name, wrong, looks)
	}
}

// Law: Backward computes the derivative of a sum of outputs and features by the weights.
func TestGradientsOfTheNetwork(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	n := New([]int{16, 24}, []int{12, 5}, r)
	for i := range n.params {
		n.params[i] = float32(.4 * r.NormFloat64())
	}
	x := cloud(3*20, r)
	dOut, dFeatures := make([]float32, 3*5), make([]float32, 3*20*24)
	for i := range dOut {
		dOut[i] = float32(r.NormFloat64())
	}
	for i := range dFeatures {
		dFeatures[i] = float32(.1 * r.NormFloat64())
	}
	loss := func() (sum float64) {
		n.changed()
		for i, v := range n.Forward(x, 20) {
			sum += float64(v) * float64(dOut[i])
		}
		for i, v := range n.Features() {
			sum += float64(v) * float64(dFeatures[i])
		}
		return sum
	}
	loss()
	n.Backward(dOut, dFeatures)
	checkGradient(t, "network", n.params, slices.Clone(n.grads), 1e-3, r, loss)
}

// Law: outputs depend neither on the order of the points nor on the clouds beside one.
func TestOutputsOfOrdersAndBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	n := New([]int{16, 32}, []int{8, 4}, r)
	x := cloud(2*30, r)
	both := slices.Clone(n.Forward(x, 30))
	second := x[Dims*30:]
	for i := 29; i > 0; i-- {
		j := r.IntN(i + 1)
		for d := range Dims {
			second[Dims*i+d], second[Dims*j+d] = second[Dims*j+d], second[Dims*i+d]
		}
	}
	if alone := n.Forward(second, 30); !slices.Equal(alone, both[4:]) {
		t.Errorf("alone and in another order %v, in a batch %v", alone, both[4:])
	}
}

// Law: the bits of a training do not depend on the number of workers, and the loss falls.
func TestTrainingLearns(t *testing.T) {
	run := func(workers int) (first, last float64, params []float32) {
		r := rand.New(rand.NewPCG(3, 3))
		n := New([]int{16, 32}, []int{16, 2}, r)
		n.Workers = workers
		var classes []int
		var x []float32
		for c := range 16 {
			classes = append(classes, c%2)
			for _, v := range cloud(40, r) {
				if c%2 == 1 {
					v = float32(math.Copysign(1, float64(v)))
				}
				x = append(x, v)
			}
		}
		d := make([]float32, 2*16)
		for step := range 60 {
			last, _ = CrossEntropy(d, n.Forward(x, 40), classes)
			if step == 0 {
				first = last
			}
			n.Backward(d, nil)
			n.Update(3e-3)
		}
		return first, last, n.params
	}
	first, last, params := run(1)
	if last > first/4 {
		t.Errorf("the loss went from %v to %v", first, last)
	}
	if _, _, others := run(2); !slices.Equal(params, others) {
		t.Error("two workers end with other weights than one")
	}
}

// Law: the losses' gradients are those of their values.
func TestGradientsOfLosses(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	out := make([]float32, 6*4)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	classes := []int{0, 3, 1, 2, 2, 0}
	d := make([]float32, len(out))
	CrossEntropy(d, out, classes)
	checkGradient(t, "cross-entropy", out, d, 1e-2, r, func() float64 {
		l, _ := CrossEntropy(make([]float32, len(out)), out, classes)
		return l
	})

	var m Matcher
	made, truth := cloud(30, r), cloud(50, r)
	d = make([]float32, len(made))
	m.Chamfer(d, made, truth, 1)
	checkGradient(t, "Chamfer", made, slices.Clone(d), 1e-3, r, func() float64 {
		return m.Chamfer(nil, made, truth, 1)
	})

	const width, points = 8, 25
	x := make([]float32, 2*points*width)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	b := Balls{Alpha: 3, Count: 5}
	d = make([]float32, len(x))
	b.Gradient(d, x, width, points, 1, r)
	g, of := slices.Clone(b.grads), func() float64 { return b.Gradient(d, x, width, points, 1, r) }
	checkGradient(t, "anchors of H_diff", b.anchors, g, 1e-2, r, of)
	// The scale of the features is a constant for the gradient, so x moves on spheres.
	of()
	dx := slices.Clone(d)
	along, length := 0.0, 0.0
	for i, v := range x {
		along += float64(dx[i]) * float64(v)
		length += float64(v) * float64(v)
	}
	for i, v := range x {
		dx[i] -= float32(along / length * float64(v))
	}
	checkGradient(t, "features of H_diff", x, dx, 1e-2, r, of)
}

// Chamfer and F1 of two clouds that can be counted by hand.
func TestDistancesByHand(t *testing.T) {
	made, truth := []float32{0, 0, 0, 1, 0, 0}, []float32{0, 0, 0, 0, 2, 0, 1, 0, 0}
	var m Matcher
	if got := m.Chamfer(nil, made, truth, 1); math.Abs(got-4./3) > 1e-6 {
		t.Errorf("Chamfer %v, want 4/3: one point of three is 2 away", got)
	}
	if got := m.F1(.01); math.Abs(got-.8) > 1e-9 { // precision 1, recall 2/3
		t.Errorf("F1 %v, want 0.8", got)
	}
	if got := m.F1(2); got != 1 {
		t.Errorf("F1 within 2 is %v, want 1", got)
	}
}
