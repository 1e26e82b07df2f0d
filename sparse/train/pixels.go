package train

import (
	"entropipe/models/mat"
)

// Panics of a caller's mistakes in PixelGradients.
const (
	badNoImages = "train: a training on text has no pixels"
	badPixels   = "train: the lengths of pixels, gradients and labels do not fit"
	badLabel    = "train: a label is no class"
)

// PixelGradients returns the loss of each image, in nats, and sets dst to the
// gradient of each image's loss by its pixels: the direction in which the image
// would have to change to raise its loss (Goodfellow et al. 2015, Madry et al.
// 2018). An image's gradient has the same bits in any batch and for any number of
// workers. The state of the training does not change.
//
// pixels are [len(labels)][Side][Side] on the scale of Normalised, where black
// and white are 2 apart: the gradient on the scale from 0 to 1 is twice dst. dst
// has the length of pixels and may be the same memory. Zero images are legal.
// Labels are numbers of classes. The losses include the gates of L1 and no
// regulariser.
//
// Cost: a step over as many images. PixelGradients uses the memory of a step and
// must not run at the same time as Step. It panics for a training on text and for
// lengths or labels that do not fit.
func (t *Trainer) PixelGradients(dst, pixels []float32, labels []int32) (losses []float64) {
	f := &t.net.form
	image := f.side * f.side
	f.checkPixels(dst, pixels, labels)
	losses = make([]float64, len(labels))
	t.net.pack(t.cfg.Workers)
	var back mat.Weights // tokens to patches
	back.PackT(t.net.w.patches)
	size := chunkOf(f, t.cfg.Batch)
	chunks := (len(labels) + size - 1) / size
	mat.Tiles(len(t.parts), 1, t.cfg.Workers, func(i, _ int) {
		p := <-t.passes
		defer func() { t.passes <- p }()
		g := t.parts[i] // memory for the gradients of the weights, which nothing reads
		clear(g.grads)
		for c := i * chunks / len(t.parts); c < (i+1)*chunks/len(t.parts); c++ {
			lo, hi := c*size, min((c+1)*size, len(labels))
			p.begin(hi - lo)
			copy(p.labels, labels[lo:hi])
			p.pixelGradients(&g.view, &back, dst[lo*image:hi*image], pixels[lo*image:hi*image], losses[lo:hi], t.gates)
		}
	})
	return losses
}

func (f *form) checkPixels(dst, pixels []float32, labels []int32) {
	switch {
	case f.causal():
		panic(badNoImages)
	case len(pixels) != f.side*f.side*len(labels) || len(dst) != len(pixels):
		panic(badPixels)
	}
	for _, l := range labels {
		if l < 0 || int(l) >= f.classes {
			panic(badLabel)
		}
	}
}

// pixelGradients is PixelGradients for a chunk.
func (p *pass) pixelGradients(w *weights, back *mat.Weights, dst, pixels []float32, losses []float64, g *gates) {
	f := &p.net.form
	size := f.side * f.side
	for s := range p.seqs {
		toPatches(p.patchesOf(s).Data, pixels[s*size:(s+1)*size], f.side, f.patch)
	}
	p.forward(g)
	p.judge(losses, make([]int, p.seqs))
	p.loss(w, 1, 0) // a batch of 1 gives each image's own gradient, not its share in a mean
	p.backward(w, &regulariser{kind: None})
	dx := p.of(f.dim, p.dx)
	for s := range p.seqs {
		patches := p.patchesOf(s) // backward has read the patches for the last time
		back.Mul(patches, dx.Slice(s*f.n+1, (s+1)*f.n), mat.Epilogue{}, 1)
		fromPatches(dst[s*size:(s+1)*size], patches.Data, f.side, f.patch)
	}
}

// toPatches sets dst to the patches of an image, in the order of patched.
func toPatches(dst, image []float32, side, patch int) {
	eachPatchPixel(side, patch, func(at, pixel int) { dst[at] = image[pixel] })
}

// fromPatches is the inverse of toPatches.
func fromPatches(dst, patches []float32, side, patch int) {
	eachPatchPixel(side, patch, func(at, pixel int) { dst[pixel] = patches[at] })
}

// eachPatchPixel calls do for every number of an image's patches with the place of
// its pixel in the image.
func eachPatchPixel(side, patch int, do func(at, pixel int)) {
	across, at := side/patch, 0
	for v := range across {
		for u := range across {
			for y := range patch {
				for x := range patch {
					do(at, (v*patch+y)*side+u*patch+x)
					at++
				}
			}
		}
	}
}
