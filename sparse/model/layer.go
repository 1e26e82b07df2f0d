package model

import (
	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Numbers of rows of a tile. Every tile reads all weights, so that more rows use
// them more often; fewer rows let the MLP's rows stay in a core's cache.
const (
	tileRows = 240
	tileStep = 4  // tiles are a multiple of it, so that they fill register blocks
	fewRows  = 48 // with fewer rows for each worker, products are shared by columns
)

// tile returns the number of rows of a tile for a batch of n rows, and the number
// of workers within a tile.
func tile(n, workers int) (rows, within int) {
	if n < fewRows*workers {
		return max(n, 1), workers
	}
	turns := (n + workers*tileRows - 1) / (workers * tileRows)
	rows = (n + workers*turns - 1) / (workers * turns)
	return (rows + tileStep - 1) / tileStep * tileStep, 1
}

// run computes all layers and the last norm of the batch. It calls attend for each
// layer, after all tiles have computed their queries, keys and values.
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
	s.ids = nil // keep no reference to the caller's ids
}

// chain computes rows lo to hi-1 from the results of attention in layer l-1 up to
// the queries, keys and values of layer l.
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

// finish adds the projection of attention and the MLP of a layer to x. BERT
// normalises each sum; the other architectures normalise the inputs of the
// products.
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

// functions are the activations for Epilogue.Apply. ReLU is missing because the
// kernels of products apply it.
var functions = map[hf.Activation]func(dst, src []float32){
	hf.GELU: mat.GELU, hf.GELUTanh: mat.GELUTanh, hf.SiLU: mat.SiLU,
}

// normalize applies a norm. For the zero value it does nothing, and dst must be
// src.
func (m *Model) normalize(dst, src mat.Matrix, n norm) {
	switch {
	case n.gamma == nil:
	case n.beta == nil:
		mat.RMSNorm(dst, src, n.gamma, m.config.Eps)
	default:
		mat.LayerNorm(dst, src, n.gamma, n.beta, m.config.Eps)
	}
}
