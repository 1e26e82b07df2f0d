package train

import (
	"entropipe/models/mat"
)

// What a caller of PixelGradients can do wrong.
const (
	badNoImages = "train: the pixels of a training on text"
	badPixels   = "train: as many gradients as pixels, and a label for each image"
	badLabel    = "train: a label that is no class"
)

// PixelGradients returns the loss of each image, nats, and sets dst to the
// gradients of these losses by their pixels: what an image would have to change
// for the network to be more wrong (Goodfellow et al. 2015, Madry et al. 2018).
// An image's gradient is that of its own loss and has the same bits in any batch
// and for any number of workers. Nothing of the training changes.
//
// pixels are [len(labels)][Side][Side] on the scale of Normalised, where black
// and white are 2 apart: a gradient on the scale from 0 to 1 is twice what dst
// has. dst is as long as pixels and may be the same memory; no image is legal.
// Labels are numbers of classes. The network is the one that is trained, gates
// of L1 included; regularisers are no part of these losses.
//
// It costs what a step over as many images does, on the goroutines and in the
// memory of one: not for use beside Step. It panics for a training on text and
// for lengths or labels that do not fit.
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
		g := t.parts[i] // what weights would have to change is of no use here
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
	p.loss(w, 1) // of a batch of one: the sum of the images' losses
	p.backward(w, &regulariser{kind: None})
	dx := p.of(f.dim, p.dx)
	for s := range p.seqs {
		patches := p.patchesOf(s) // read for the last time by backward
		back.Mul(patches, dx.Slice(s*f.n+1, (s+1)*f.n), mat.Epilogue{}, 1)
		fromPatches(dst[s*size:(s+1)*size], patches.Data, f.side, f.patch)
	}
}

// toPatches sets dst to the patches of an image as patched does.
func toPatches(dst, image []float32, side, patch int) {
	eachPatchPixel(side, patch, func(at, pixel int) { dst[at] = image[pixel] })
}

// fromPatches undoes toPatches.
func fromPatches(dst, patches []float32, side, patch int) {
	eachPatchPixel(side, patch, func(at, pixel int) { dst[pixel] = patches[at] })
}

// eachPatchPixel calls do for every number of an image's patches with the pixel
// that it is.
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
