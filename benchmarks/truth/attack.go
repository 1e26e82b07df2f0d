package main

import (
	"math/rand/v2"

	"entropipe/sparse/train"
)

// attack changes images so that a network is wrong about them: steps along the
// signs of the gradients of the loss, after each of which every pixel goes back
// to within eps of where it was, and to between black and white (projected
// gradient descent, Madry et al. 2018; of one step from the image itself the fast
// gradient sign method, Goodfellow et al. 2015).
type attack struct {
	steps     int
	eps, step float64 // in units of pixels, which range from 0 to 1
	random    bool    // begins anywhere within eps, and not at the image
}

// pixelScale is how far apart black and white are for the networks: -1 and 1.
const pixelScale = 2

// The attacks of the table: a step goes so far that the border is reached from
// anywhere in eight of ten steps.
var (
	fastSign   = attack{steps: 1, eps: .1, step: .1}
	projected  = attack{steps: 10, eps: .1, step: .025, random: true}
	projected8 = attack{steps: 10, eps: 8. / 255, step: 2. / 255, random: true}
)

// change returns changed images, as train.Normalised has them, and what the
// network loses on them. numbers, one an image, decide where it begins.
func (a attack) change(t *train.Trainer, pixels []float32, labels []int32, numbers []int) (changed []float32,
	losses []float64) {
	changed = make([]float32, len(pixels))
	copy(changed, pixels)
	if a.random {
		each := len(pixels) / max(len(labels), 1)
		for i, number := range numbers {
			r := rand.New(rand.NewPCG(uint64(number), 0xa77ac))
			for p := i * each; p < (i+1)*each; p++ {
				changed[p] += float32(pixelScale * a.eps * (2*r.Float64() - 1))
			}
		}
		a.project(changed, pixels)
	}
	gradients := make([]float32, len(pixels))
	for range a.steps {
		t.PixelGradients(gradients, changed, labels)
		for p, g := range gradients {
			switch {
			case g > 0:
				changed[p] += float32(pixelScale * a.step)
			case g < 0:
				changed[p] -= float32(pixelScale * a.step)
			}
		}
		a.project(changed, pixels)
	}
	return changed, t.PixelGradients(gradients, changed, labels)
}

// project moves every pixel to the nearest one that is allowed.
func (a attack) project(changed, pixels []float32) {
	eps := float32(pixelScale * a.eps)
	for p, v := range pixels {
		changed[p] = min(max(changed[p], v-eps, -1), v+eps, 1)
	}
}

// noisy is what an attack is compared with: every pixel brighter or darker by
// eps, by lot.
func (a attack) noisy(pixels []float32, numbers []int) []float32 {
	changed := make([]float32, len(pixels))
	each := len(pixels) / max(len(numbers), 1)
	for i, number := range numbers {
		r := rand.New(rand.NewPCG(uint64(number), 0x9015e))
		for p := i * each; p < (i+1)*each; p++ {
			changed[p] = pixels[p] + float32(pixelScale*a.eps)*float32(2*r.IntN(2)-1)
		}
	}
	a.project(changed, pixels)
	return changed
}
