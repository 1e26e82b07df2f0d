package model

import (
	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Rows of a tile: so many that the weights, which every tile reads, are used
// often, and so few that its rows of the MLP stay in a core's cache.
const (
	tileRows = 240
	tileStep = 4  // rows are whole register blocks, or nearly, and tiles nearly equal
	fewRows  = 48 // for each worker; below it products share their columns
)

// tile returns how many rows a tile of n has, and the workers within it.
func tile(n, workers int) (rows, within int) {
	if n < fewRows*workers {
		return max(n, 1), workers
	}
	turns := (n + workers*tileRows - 1) / (workers * tileRows)
	rows = (n + workers*turns - 1) / (workers * turns)
	return (rows + tileStep - 1) / tileStep * tileStep, 1
}

// run takes the batch through all layers and the last norm; attend does
// what lies between two tiles' chains, when the rows of all have come so far.
func (s *Session) run(o Options, attend func(layer int, o Options)) {
	n := len(s.x) / s.m.config.Hidden
	s.turnsTo(s.longest())
	rows, within := tile(n, s.workers)
	outer := max(1, s.workers/within)
	for l := 0; l <= len(s.m.layers); l++ {
		mat.Share((n+rows-1)/rows, outer, func(i, who int) {
			s.chain(l, i*rows, min((i+1)*rows, n), &s.memory[who], within)
		})
		if l < len(s.m.layers) {
			attend(l, o)
		}
	}
	s.ids = nil // the caller's
}

// chain computes rows lo to hi-1 from the attention of layer l-1 up to that of
// layer l.
func (s *Session) chain(l, lo, hi int, t *tileMemory, workers int) {
	c := s.m.config
	x := s.rows().Slice(lo, hi)
	t.norm = grow(t.norm, (hi-lo)*c.Hidden)
	scratch := mat.Of(hi-lo, c.Hidden, t.norm)
	if l == 0 {
		if s.ids != nil {
			s.embed(lo, hi)
		}
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
	t.up = grow(t.up, x.Rows*c.Inner)
	up := mat.Of(x.Rows, c.Inner, t.up)
	e := mat.Epilogue{Bias: y.up.bias, ReLU: c.Act == hf.ReLU, Apply: functions[c.Act]}
	if c.Arch == hf.LLaMA { // silu(gate)·up
		t.gate = grow(t.gate, x.Rows*c.Inner)
		e.Times = mat.Of(x.Rows, c.Inner, t.gate)
		y.times.w.Mul(e.Times, in, mat.Epilogue{Bias: y.times.bias}, workers)
	}
	y.up.w.Mul(up, in, e, workers)
	y.down.w.Mul(x, up, mat.Epilogue{Add: true, Bias: y.down.bias}, workers)
	if c.Arch == hf.BERT {
		s.m.normalize(x, x, y.second)
	}
}

// functions are the activations that are no part of every product.
var functions = map[hf.Activation]func(dst, src []float32){hf.GELU: mat.GELU, hf.GELUTanh: mat.GELUTanh, hf.SiLU: mat.SiLU}

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
