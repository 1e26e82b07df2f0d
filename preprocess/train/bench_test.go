package train

import (
	"fmt"
	"testing"

	"entropipe/algos/entropy"
	"entropipe/models"
)

// A step of 8 clouds of 2048 points with each regulariser, and its parts.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		dims int
		op   entropy.Problem
		r    Regulariser
	}{{2, entropy.Hull2D, F}, {2, entropy.Maxima2D, F}, {3, entropy.Maxima3D, F}, {3, entropy.Hull3D, F},
		{2, entropy.Hull2D, None}, {2, entropy.Hull2D, HDiff}, {2, entropy.Hull2D, HSoft}} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/%s/workers=%d", c.op, c.r, workers), func(b *testing.B) {
				t, p := midway(b, Config{Mode: models.Perturb, Ops: []entropy.Problem{c.op}, Regulariser: c.r,
					Steps: 1 << 20, Every: 1 << 20, Workers: workers}, c.dims)
				for b.Loop() {
					t.parts(p)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ms/step")
			})
		}
	}
}

// A step of the paper's protocol in the experiments: 32 clouds of 64 points.
func BenchmarkStepOfSmallClouds(b *testing.B) {
	t, p := midway(b, Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull2D}, Regulariser: HDiff,
		Anchors: 16, Steps: 1 << 20, Every: 1 << 20, Workers: 2, Batch: 32, Points: 64, Sigma: 0.1, Lambda: 0.1}, 2)
	for b.Loop() {
		t.parts(p)
	}
}

// parts takes a step without record and judgement.
func (t *Trainer) parts(p plan) {
	t.batch()
	t.net.forward()
	t.losses(p)
	t.net.backward()
	t.update(p, lengthOf(t.net.grads))
}

func BenchmarkStepParts(b *testing.B) {
	for _, workers := range []int{1, 2} {
		t, p := midway(b, Config{Mode: models.Perturb, Ops: []entropy.Problem{entropy.Hull2D}, Steps: 1 << 20,
			Every: 1 << 20, Workers: workers}, 2)
		for _, part := range []struct {
			name string
			f    func()
		}{{"batch", t.batch}, {"forward", t.net.forward}, {"losses", func() { t.losses(p) }},
			{"backward", t.net.backward}, {"update", func() { t.update(p, lengthOf(t.net.grads)) }}} {
			b.Run(fmt.Sprintf("%s/workers=%d", part.name, workers), func(b *testing.B) {
				for b.Loop() {
					part.f()
				}
			})
		}
	}
}

// midway is a training where the regulariser has its weight, with a batch.
func midway(b *testing.B, c Config, dims int) (*Trainer, plan) {
	t, err := New(c, someData(b, dims, 10, 4096))
	if err != nil {
		b.Fatal(err)
	}
	t.step = t.cfg.Steps / 2
	t.batch()
	t.net.forward()
	p := planOf(&t.cfg, t.step)
	t.losses(p)
	t.net.backward()
	return t, p
}
