package model

import (
	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Images returns the last hidden state [n·positions][hidden] of n images
// [n][channels][height][width], after the model's last norm. Row 0 of each image
// belongs to the whole image, the other rows to its patches, row by row. The result
// is a view that is valid until the next call. Pixels must be normalised as in
// training, usually (x/255-mean)/std. Images panics if the model is no ViT or the
// number of pixels does not fit.
func (s *Session) Images(pixels []float32, n int, o Options) (mat.Matrix, error) {
	c := s.m.config
	if c.Arch != hf.ViT {
		panic(badClass)
	}
	if n < 0 || len(pixels) != n*c.Colors*c.Image[0]*c.Image[1] {
		panic(badImages)
	}
	starts := make([]int32, n+1)
	for i := range starts {
		starts[i] = int32(i * c.MaxPositions)
	}
	s.begin(nil, starts, nil, o)
	x := s.rows()
	mat.Share(n, s.workers, func(i, who int) {
		size := len(pixels) / n
		rows := x.Slice(i*c.MaxPositions, (i+1)*c.MaxPositions)
		s.embedImage(rows, pixels[i*size:(i+1)*size], &s.memory[who])
	})
	s.run(o, s.attend)
	return s.rows(), nil
}

// embedImage sets an image's rows to the products of its patches plus the
// positions.
func (s *Session) embedImage(x mat.Matrix, pixels []float32, t *tileMemory) {
	c := s.m.config
	for i := range x.Rows {
		copy(x.Row(i), s.m.positions.Row(i))
	}
	for j, v := range s.m.class {
		x.Row(0)[j] += v
	}
	wide := c.Colors * c.Patch[0] * c.Patch[1]
	t.up = grow(t.up, (x.Rows-1)*wide)
	patches := mat.Of(x.Rows-1, wide, t.up)
	_, across := c.Patches()
	for i := range patches.Rows {
		row := patches.Row(i)
		top, left := i/across*c.Patch[0], i%across*c.Patch[1]
		for color := range c.Colors {
			for y := range c.Patch[0] {
				from := (color*c.Image[0]+top+y)*c.Image[1] + left
				row = row[copy(row, pixels[from:from+c.Patch[1]]):]
			}
		}
	}
	s.m.patch.w.Mul(x.Slice(1, x.Rows), patches, mat.Epilogue{Add: true, Bias: s.m.patch.bias}, 1)
}
