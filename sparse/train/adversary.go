package train

import (
	"math/rand/v2"

	"entropipe/models/mat"
)

// adversary changes the images of a chunk against the network before the network
// learns from them. It belongs to one pass.
type adversary struct {
	grads []float32 // gradients of the weights, which nothing reads
	view  weights
	clean []float32 // the images before the change
	back  mat.Weights
}

func newAdversary(f *form) *adversary {
	a := &adversary{grads: make([]float32, f.size())}
	a.view = f.view(a.grads)
	return a
}

// pixelScale is the distance of black and white for the networks, -1 and 1.
const pixelScale = 2

// move changes the images of the chunk whose first sequence has the number first in
// its step. Its random numbers are a function of seed, step and sequence. Cost: a
// forward and a backward pass.
func (a *adversary) move(p *pass, t *Trainer, first int) {
	const overshoot = 1.25 // length of the step over the distance, after Wong et al. 2020
	f := &p.net.form
	size := (f.n - 1) * f.pixels()
	far := float32(pixelScale * t.cfg.Adversarial)
	a.clean = append(a.clean[:0], p.pixels[:p.seqs*size]...)
	for s := range p.seqs {
		r := rand.New(rand.NewPCG(t.cfg.Seed, uint64(t.step+1)<<20+uint64(first+s)|1<<62))
		for i := s * size; i < (s+1)*size; i++ {
			p.pixels[i] += far * float32(2*r.Float64()-1)
		}
	}
	a.project(p.pixels, far)
	p.forward(t.gates)
	p.loss(&a.view, 1, t.cfg.Smoothing)
	p.backward(&a.view, &regulariser{kind: None})
	a.back.PackT(p.net.w.patches)
	gradient := mat.Of(f.n-1, f.pixels(), make([]float32, size))
	for s := range p.seqs {
		a.back.Mul(gradient, p.of(f.dim, p.dx).Slice(s*f.n+1, (s+1)*f.n), mat.Epilogue{}, 1)
		for i, g := range gradient.Data {
			switch {
			case g > 0:
				p.pixels[s*size+i] += overshoot * far
			case g < 0:
				p.pixels[s*size+i] -= overshoot * far
			}
		}
	}
	a.project(p.pixels, far)
}

// project moves every pixel to the nearest one within far of the clean one, and
// between black and white.
func (a *adversary) project(pixels []float32, far float32) {
	for i, v := range a.clean {
		pixels[i] = min(max(pixels[i], v-far, -1), v+far, 1)
	}
}
