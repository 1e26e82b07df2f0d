package model

import (
	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Rows of a tile: so many that the weights, which every tile reads, are used
// often, and so few that its rows of the MLP stay in a core's cache.
const (
	tileRows = 240
	tileStep = 24 // a multiple of the rows that products take together
	fewRows  = 48 // for each worker; below it products share their columns
)

// tile returns how many rows a tile of n has, and the workers within it.
func tile(n, workers int) (rows, within int) {
	if workers == 1 || n < fewRows*workers {
		return min(max(n, 1), tileRows), workers
	}
	turns := (n + workers*tileRows - 1) / (workers * tileRows)
	rows = (n + workers*turns - 1) / (workers * turns)
	return (rows + tileStep - 1) / tileStep * tileStep, 1
}

// run takes the embedded rows through all layers and the last norm; attend does
// what lies between two tiles' chains, when the rows of all have come so far.
func (s *Session) run(o Options, attend func(layer int, o Options)) {
	n := len(s.x) / s.m.config.Hidden
	s.turnsTo(s.longest())
	rows, within := tile(n, s.workers)
	outer := max(1, s.workers/within)
	for l := 0; l <= len(s.m.layers); l++ {
		mat.Tiles(n, rows, outer, func(lo, hi int) {
			memory := <-s.free
			s.chain(l, lo, hi, memory, within)
			s.free <- memory
		})
		if l < len(s.m.layers) {
			attend(l, o)
		}
	}
}

// chain computes rows lo to hi-1 from the attention of layer l-1 up to that of
// layer l.
func (s *Session) chain(l, lo, hi int, t *tileMemory, workers int) {
	c := s.m.config
	x := s.rows().Slice(lo, hi)
	t.norm = grow(t.norm, (hi-lo)*c.Hidden)
	scratch := mat.Of(hi-lo, c.Hidden, t.norm)
	if l == 0 {
		s.m.normalize(x, x, s.m.embedded)
	} else {
		q := c.Heads * c.Dim
		ctx := mat.Of(len(s.ctx)/q, q, s.ctx).Slice(lo, hi)
		s.finish(&s.m.layers[l-1], x, ctx, scratch, t, workers)
	}
	if l == len(s.m.layers) {
		s.m.normalize(x, x, s.m.last)
		return
	}
	y := &s.m.layers[l]
	in := x
	if c.Arch != hf.BERT {
		s.m.normalize(scratch, x, y.first)
		in = scratch
	}
	width := s.qkvWidth()
	qkv := mat.Of(len(s.qkv)/width, width, s.qkv).Slice(lo, hi)
	y.qkv.w.Mul(qkv, in, mat.Epilogue{Bias: y.qkv.bias}, workers)
	if c.Arch == hf.LLaMA {
		s.turn(qkv, lo)
	}
}

// finish adds what follows an attention: its projection, and the MLP. BERT
// normalises each sum, the others what goes into the products.
func (s *Session) finish(y *layer, x, ctx, scratch mat.Matrix, t *tileMemory, workers int) {
	c := s.m.config
	y.out.w.Mul(x, ctx, mat.Epilogue{Add: true, Bias: y.out.bias}, workers)
	in := x
	if c.Arch == hf.BERT {
		s.m.normalize(x, x, y.first)
	} else {
		s.m.normalize(scratch, x, y.second)
		in = scratch
	}
	_, width := y.up.w.Shape()
	t.up = grow(t.up, x.Rows*width)
	up := mat.Of(x.Rows, width, t.up)
	y.up.w.Mul(up, in, mat.Epilogue{Bias: y.up.bias, ReLU: c.Act == hf.ReLU, Apply: function(c)}, workers)
	if c.Arch == hf.LLaMA {
		up = gated(c, up)
	}
	y.down.w.Mul(x, up, mat.Epilogue{Add: true, Bias: y.down.bias}, workers)
	if c.Arch == hf.BERT {
		s.m.normalize(x, x, y.second)
	}
}

// function is what the product of the MLP's first layer applies, nil where it
// has another way to.
func function(c *hf.Config) func(dst, src []float32) {
	switch {
	case c.Arch == hf.LLaMA: // to half of the columns only
		return nil
	case c.Act == hf.GELU:
		return mat.GELU
	case c.Act == hf.GELUTanh:
		return mat.GELUTanh
	case c.Act == hf.SiLU:
		return mat.SiLU
	}
	return nil
}

// gated multiplies SiLU of the first half of the columns with the second, in
// place.
func gated(c *hf.Config, up mat.Matrix) mat.Matrix {
	for i := range up.Rows {
		gate, by := up.Row(i)[:c.Inner], up.Row(i)[c.Inner:]
		mat.SiLU(gate, gate)
		mat.Multiply(gate, gate, by)
	}
	return up.Columns(0, c.Inner)
}

// normalize applies a norm; the zero value is none, and then dst is src.
func (m *Model) normalize(dst, src mat.Matrix, n norm) {
	switch {
	case n.gamma == nil:
	case n.beta == nil:
		mat.RMSNorm(dst, src, n.gamma, m.config.Eps)
	default:
		mat.LayerNorm(dst, src, n.gamma, n.beta, m.config.Eps)
	}
}
