package model

import (
	"errors"
	"fmt"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// loader reads tensors. After the first error it returns empty slices, which
// nothing uses.
type loader struct {
	*hf.Checkpoint
	c       *hf.Config
	weights Weights
	err     error
}

func load(c *hf.Checkpoint, w Weights) (_ *Model, err error) {
	defer func() { err = errors.Join(err, c.Close()) }()
	l := &loader{Checkpoint: c, c: c.Config(), weights: w}
	m := &Model{config: l.c, weights: w, pooling: c.Pooling(), sha: c.SHA256(), layers: make([]layer, l.c.Layers)}
	for range l.c.Hidden {
		m.ones = append(m.ones, 1)
	}
	l.tables(m)
	for i := range m.layers {
		if l.err != nil {
			break
		}
		switch l.c.Arch {
		case hf.BERT:
			l.bert(&m.layers[i], fmt.Sprintf("encoder.layer.%d.", i))
		case hf.ViT:
			l.vit(&m.layers[i], fmt.Sprintf("encoder.layer.%d.", i))
		case hf.GPT2:
			l.gpt2(&m.layers[i], fmt.Sprintf("h.%d.", i))
		case hf.LLaMA:
			l.llama(&m.layers[i], fmt.Sprintf("layers.%d.", i))
		}
	}
	if l.err != nil {
		return nil, l.err
	}
	return m, nil
}

// tables reads the weights outside the layers.
func (l *loader) tables(m *Model) {
	h := l.c.Hidden
	switch l.c.Arch {
	case hf.BERT:
		m.words = l.matrix("embeddings.word_embeddings.weight", h)
		m.positions = l.matrix("embeddings.position_embeddings.weight", h)
		types := l.matrix("embeddings.token_type_embeddings.weight", h)
		if l.err == nil {
			addRow(m.positions, types.Row(0))
		}
		m.embedded = l.norm("embeddings.LayerNorm")
	case hf.ViT:
		m.class = l.values("embeddings.cls_token")
		m.positions = l.matrix("embeddings.position_embeddings", h)
		m.patch = l.biased(l.c.Colors*l.c.Patch[0]*l.c.Patch[1], "embeddings.patch_embeddings.projection")
		m.last = l.norm("layernorm")
		if l.c.Head {
			m.head = l.biased(h, "classifier")
		}
	case hf.GPT2:
		m.words, m.positions = l.matrix("wte.weight", h), l.matrix("wpe.weight", h)
		m.last = l.norm("ln_f")
		l.output(m)
	case hf.LLaMA:
		m.words = l.matrix("embed_tokens.weight", h)
		m.last = norm{gamma: l.values("norm.weight")}
		m.inverse = l.c.Rope.Inverse(l.c.Dim)
		l.output(m)
	}
}

// output packs the matrix of the logits: its own tensor, or the embeddings.
func (l *loader) output(m *Model) {
	if !l.c.Head || l.err != nil {
		return
	}
	table := m.words
	if !l.c.Tied {
		table = l.matrix("lm_head.weight", l.c.Hidden)
	}
	m.head.w.PackT(table)
	if l.c.Tied && l.weights != BF16 {
		m.words = mat.Matrix{} // word reads rows from the packed form
	}
	l.round(&m.head.w)
}

func addRow(m mat.Matrix, row []float32) {
	for i := range m.Rows {
		for j, x := range row {
			m.Row(i)[j] += x
		}
	}
}

func (l *loader) bert(y *layer, p string) {
	h := l.c.Hidden
	y.qkv = l.biased(h, p+"attention.self.query", p+"attention.self.key", p+"attention.self.value")
	y.out = l.biased(h, p+"attention.output.dense")
	y.first = l.norm(p + "attention.output.LayerNorm")
	y.up, y.down = l.biased(h, p+"intermediate.dense"), l.biased(l.c.Inner, p+"output.dense")
	y.second = l.norm(p + "output.LayerNorm")
}

func (l *loader) vit(y *layer, p string) {
	h, self := l.c.Hidden, p+"attention.attention."
	y.qkv = l.linearIf(l.c.QKVBias)(h, self+"query", self+"key", self+"value")
	y.out = l.biased(h, p+"attention.output.dense")
	y.first, y.second = l.norm(p+"layernorm_before"), l.norm(p+"layernorm_after")
	y.up, y.down = l.biased(h, p+"intermediate.dense"), l.biased(l.c.Inner, p+"output.dense")
}

func (l *loader) gpt2(y *layer, p string) {
	h := l.c.Hidden
	conv := func(name string, out int) linear { // [in][out]
		var f linear
		if w := l.matrix(name+".weight", out); l.err == nil {
			f.w.Pack(w)
			l.round(&f.w)
		}
		f.bias = l.values(name + ".bias")
		return f
	}
	y.qkv, y.out = conv(p+"attn.c_attn", 3*h), conv(p+"attn.c_proj", h)
	y.up, y.down = conv(p+"mlp.c_fc", l.c.Inner), conv(p+"mlp.c_proj", h)
	y.first, y.second = l.norm(p+"ln_1"), l.norm(p+"ln_2")
}

func (l *loader) llama(y *layer, p string) {
	h, c := l.c.Hidden, l.c
	attention, mlp := p+"self_attn.", l.linearIf(c.MLPBias)
	y.qkv = l.linearIf(c.QKVBias)(h, attention+"q_proj", attention+"k_proj", attention+"v_proj")
	y.out = l.linearIf(c.OutBias)(c.Heads*c.Dim, attention+"o_proj")
	y.up, y.times = mlp(h, p+"mlp.gate_proj"), mlp(h, p+"mlp.up_proj")
	y.down = mlp(c.Inner, p+"mlp.down_proj")
	y.first = norm{gamma: l.values(p + "input_layernorm.weight")}
	y.second = norm{gamma: l.values(p + "post_attention_layernorm.weight")}
}

// values reads the numbers of a tensor.
func (l *loader) values(name string) []float32 {
	if l.err != nil {
		return nil
	}
	v, err := l.Float32s(name)
	l.err = err
	return v
}

func (l *loader) matrix(name string, cols int) mat.Matrix {
	v := l.values(name)
	return mat.Of(len(v)/cols, cols, v)
}

func (l *loader) norm(name string) norm {
	return norm{l.values(name + ".weight"), l.values(name + ".bias")}
}

// biased packs layers [out][in] with the same inputs as one layer, whose outputs
// are the outputs of all. Each layer has a bias.
func (l *loader) biased(in int, names ...string) linear {
	f := l.unbiased(in, names...)
	for _, name := range names {
		f.bias = append(f.bias, l.values(name+".bias")...)
	}
	return f
}

// unbiased is biased for layers without a bias.
func (l *loader) unbiased(in int, names ...string) (f linear) {
	var all []float32
	for _, name := range names {
		all = append(all, l.values(name+".weight")...)
	}
	if l.err == nil {
		f.w.PackT(mat.Of(len(all)/in, in, all))
		l.round(&f.w)
	}
	return f
}

// linearIf returns biased if the configuration has a bias, or unbiased.
func (l *loader) linearIf(bias bool) func(in int, names ...string) linear {
	if bias {
		return l.biased
	}
	return l.unbiased
}

// round rounds packed weights if the model keeps them in BF16.
func (l *loader) round(w *mat.Weights) {
	if l.weights == BF16 {
		w.Round()
	}
}
