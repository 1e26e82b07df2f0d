package train

import (
	"fmt"
	"math/rand/v2"
)

// gallery is a source of sequences of patches from images.
type gallery struct {
	images       *Images
	learn, apart []int // numbers of the images to learn from, numbers of the held-out images
	patch, shift int
}

func (g *gallery) batch(p *pass, seed uint64, step, first int) {
	for s := range p.seqs {
		r := rand.New(rand.NewPCG(seed, uint64(step+1)<<20+uint64(first+s)))
		i := g.learn[r.IntN(len(g.learn))]
		dx, dy := 0, 0
		if g.shift > 0 {
			dx, dy = r.IntN(2*g.shift+1)-g.shift, r.IntN(2*g.shift+1)-g.shift
		}
		g.fill(p, s, i, dx, dy)
	}
}

func (g *gallery) held(p *pass, i, number int) { g.fill(p, i, g.apart[number], 0, 0) }

func (g *gallery) heldOut() int { return len(g.apart) }

func (g *gallery) fill(p *pass, s, i, dx, dy int) {
	p.labels[s] = g.images.Labels[i]
	size := g.images.Side * g.images.Side
	pixels := p.pixels[s*size : (s+1)*size]
	patched(pixels, g.images.Image(i), g.images.Side, g.patch, dx, dy)
}

// patched sets dst to the patches of an image that is moved by dx and dy, with
// numbers from -1 to 1. Pixels from beyond the border repeat the border.
func patched(dst []float32, image []uint8, side, patch, dx, dy int) {
	across, at := side/patch, 0
	for v := range across {
		for u := range across {
			for y := range patch {
				for x := range patch {
					px := min(side-1, max(0, u*patch+x-dx))
					py := min(side-1, max(0, v*patch+y-dy))
					dst[at] = float32(image[py*side+px])/127.5 - 1
					at++
				}
			}
		}
	}
}

// Normalised sets dst to the pixels of an image on the scale of the models' input:
// (v/255 - 0.5)/0.5, from -1 to 1. dst is at least as long as image.
func Normalised(dst []float32, image []uint8) {
	for i, v := range image {
		dst[i] = float32(v)/127.5 - 1
	}
}

// HeldOut returns the numbers of the held-out images, ascending.
func (m *Images) HeldOut() []int { return m.numbers(Held) }

// numbers returns the numbers of the images that keep accepts, ascending.
func (m *Images) numbers(keep func(i int) bool) (numbers []int) {
	for i := range m.Len() {
		if keep(i) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// NewViT starts the training of an image classifier. It returns an error if a
// setting is out of range or does not fit the images. The Trainer keeps images.
func NewViT(cfg Config, images *Images) (*Trainer, error) {
	cfg, err := cfg.withDefaults(ofImages)
	if err != nil {
		return nil, err
	}
	if images.Side%cfg.Patch != 0 {
		return nil, fmt.Errorf("images of %d pixels a side do not divide into patches of %d", images.Side, cfg.Patch)
	}
	across := images.Side / cfg.Patch
	if across*across+1 > maxContext {
		return nil, fmt.Errorf("%d patches are more than %d: use a larger patch", across*across, maxContext-1)
	}
	f := form{
		layers: cfg.Layers, dim: cfg.Dim, heads: cfg.Heads, n: across*across + 1, side: images.Side, channels: 1,
		patch: cfg.Patch, classes: len(images.Names), eps: 1e-12,
	}
	if f.size() > maxParams {
		return nil, fmt.Errorf("the network has %d parameters, more than %d", f.size(), maxParams)
	}
	data := &gallery{images, images.numbers(learned), images.HeldOut(), cfg.Patch, cfg.Shift}
	return begin(cfg, f, data), nil
}
