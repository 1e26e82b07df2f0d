package hf

import (
	"fmt"
	"strings"
)

// Tensor is a tensor that a checkpoint must hold. Its name is canonical: the name
// in files of transformers, without the prefix of the class (bert., transformer.,
// model., vit.).
type Tensor struct {
	Name  string
	Shape []int
}

// Tensors returns the tensors that a checkpoint of c must hold, in a fixed order.
// Linear layers are [out][in]; linear layers of GPT-2 are [in][out]. It panics if
// c.Arch is unknown.
func (c *Config) Tensors() []Tensor {
	switch c.Arch {
	case BERT:
		return c.bertTensors()
	case ViT:
		return c.vitTensors()
	case GPT2:
		return c.gpt2Tensors()
	case LLaMA:
		return c.llamaTensors()
	}
	panic("hf: the configuration is not valid")
}

// tensorList is a list of tensors that grows by layers.
type tensorList []Tensor

func (l *tensorList) add(name string, shape ...int) { *l = append(*l, Tensor{name, shape}) }

// linear is a linear layer: a matrix [out][in] and, if bias is true, a bias [out].
type linear struct {
	name    string
	out, in int
	bias    bool
}

func (l *tensorList) linear(f linear) {
	l.add(f.name+".weight", f.out, f.in)
	if f.bias {
		l.add(f.name+".bias", f.out)
	}
}

func (l *tensorList) norm(name string, n int) {
	l.add(name+".weight", n)
	l.add(name+".bias", n)
}

func (c *Config) bertTensors() (l tensorList) {
	l.add("embeddings.word_embeddings.weight", c.Vocab, c.Hidden)
	l.add("embeddings.position_embeddings.weight", c.MaxPositions, c.Hidden)
	l.add("embeddings.token_type_embeddings.weight", c.Types, c.Hidden)
	l.norm("embeddings.LayerNorm", c.Hidden)
	for i := range c.Layers {
		p := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"query", "key", "value"} {
			l.linear(linear{p + "attention.self." + name, c.Hidden, c.Hidden, true})
		}
		l.linear(linear{p + "attention.output.dense", c.Hidden, c.Hidden, true})
		l.norm(p+"attention.output.LayerNorm", c.Hidden)
		l.linear(linear{p + "intermediate.dense", c.Inner, c.Hidden, true})
		l.linear(linear{p + "output.dense", c.Hidden, c.Inner, true})
		l.norm(p+"output.LayerNorm", c.Hidden)
	}
	return l
}

func (c *Config) vitTensors() (l tensorList) {
	l.add("embeddings.cls_token", 1, 1, c.Hidden)
	l.add("embeddings.position_embeddings", 1, c.MaxPositions, c.Hidden)
	l.add("embeddings.patch_embeddings.projection.weight", c.Hidden, c.Colors, c.Patch[0], c.Patch[1])
	l.add("embeddings.patch_embeddings.projection.bias", c.Hidden)
	for i := range c.Layers {
		p := fmt.Sprintf("encoder.layer.%d.", i)
		for _, name := range []string{"query", "key", "value"} {
			l.linear(linear{p + "attention.attention." + name, c.Hidden, c.Hidden, c.QKVBias})
		}
		l.linear(linear{p + "attention.output.dense", c.Hidden, c.Hidden, true})
		l.norm(p+"layernorm_before", c.Hidden)
		l.norm(p+"layernorm_after", c.Hidden)
		l.linear(linear{p + "intermediate.dense", c.Inner, c.Hidden, true})
		l.linear(linear{p + "output.dense", c.Hidden, c.Inner, true})
	}
	l.norm("layernorm", c.Hidden)
	if c.Head {
		l.linear(linear{"classifier", c.Labels, c.Hidden, true})
	}
	return l
}

func (c *Config) gpt2Tensors() (l tensorList) {
	l.add("wte.weight", c.Vocab, c.Hidden)
	l.add("wpe.weight", c.MaxPositions, c.Hidden)
	conv := func(name string, in, out int) { // [in][out], because transformers has a convolution of width 1
		l.add(name+".weight", in, out)
		l.add(name+".bias", out)
	}
	for i := range c.Layers {
		p := fmt.Sprintf("h.%d.", i)
		l.norm(p+"ln_1", c.Hidden)
		conv(p+"attn.c_attn", c.Hidden, 3*c.Hidden)
		conv(p+"attn.c_proj", c.Hidden, c.Hidden)
		l.norm(p+"ln_2", c.Hidden)
		conv(p+"mlp.c_fc", c.Hidden, c.Inner)
		conv(p+"mlp.c_proj", c.Inner, c.Hidden)
	}
	l.norm("ln_f", c.Hidden)
	if c.Head && !c.Tied {
		l.add("lm_head.weight", c.Vocab, c.Hidden)
	}
	return l
}

func (c *Config) llamaTensors() (l tensorList) {
	l.add("embed_tokens.weight", c.Vocab, c.Hidden)
	for i := range c.Layers {
		p := fmt.Sprintf("layers.%d.", i)
		l.add(p+"input_layernorm.weight", c.Hidden)
		l.linear(linear{p + "self_attn.q_proj", c.Heads * c.Dim, c.Hidden, c.QKVBias})
		l.linear(linear{p + "self_attn.k_proj", c.KVHeads * c.Dim, c.Hidden, c.QKVBias})
		l.linear(linear{p + "self_attn.v_proj", c.KVHeads * c.Dim, c.Hidden, c.QKVBias})
		l.linear(linear{p + "self_attn.o_proj", c.Hidden, c.Heads * c.Dim, c.OutBias})
		l.add(p+"post_attention_layernorm.weight", c.Hidden)
		l.linear(linear{p + "mlp.gate_proj", c.Inner, c.Hidden, c.MLPBias})
		l.linear(linear{p + "mlp.up_proj", c.Inner, c.Hidden, c.MLPBias})
		l.linear(linear{p + "mlp.down_proj", c.Hidden, c.Inner, c.MLPBias})
	}
	l.add("norm.weight", c.Hidden)
	if c.Head && !c.Tied {
		l.add("lm_head.weight", c.Vocab, c.Hidden)
	}
	return l
}

// prefix holds, by architecture, the prefix of names in classes with a head.
var prefix = map[string]string{BERT: "bert.", ViT: "vit.", GPT2: "transformer.", LLaMA: "model."}

// vitNames maps parts of ViT's names in transformers 5 to canonical names.
var vitNames = strings.NewReplacer(
	".attention.q_proj.", ".attention.attention.query.",
	".attention.k_proj.", ".attention.attention.key.",
	".attention.v_proj.", ".attention.attention.value.",
	".attention.o_proj.", ".attention.output.dense.",
	".mlp.fc1.", ".intermediate.dense.",
	".mlp.fc2.", ".output.dense.",
)

// canonical returns the canonical name for a name in a file.
func (c *Config) canonical(name string) string {
	name = strings.TrimPrefix(name, prefix[c.Arch])
	switch c.Arch {
	case BERT: // older checkpoints were converted from TensorFlow
		if stem, ok := strings.CutSuffix(name, "LayerNorm.gamma"); ok {
			return stem + "LayerNorm.weight"
		}
		if stem, ok := strings.CutSuffix(name, "LayerNorm.beta"); ok {
			return stem + "LayerNorm.bias"
		}
	case ViT:
		if rest, ok := strings.CutPrefix(name, "layers."); ok {
			name = "encoder.layer." + rest
		}
		return vitNames.Replace(name)
	}
	return name
}

// leftOver reports whether a file may hold a tensor with this canonical name that
// nothing reads: heads of the pre-training, and saved buffers.
func (c *Config) leftOver(name string) bool {
	switch c.Arch {
	case BERT:
		return name == "embeddings.position_ids" || strings.HasPrefix(name, "pooler.dense.") ||
			strings.HasPrefix(name, "cls.predictions.") || strings.HasPrefix(name, "cls.seq_relationship.")
	case ViT:
		return strings.HasPrefix(name, "pooler.dense.")
	case GPT2:
		buffer := strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias")
		return strings.HasPrefix(name, "h.") && buffer
	case LLaMA:
		return name == "rotary_emb.inv_freq" ||
			strings.HasPrefix(name, "layers.") && strings.HasSuffix(name, ".rotary_emb.inv_freq")
	}
	return false
}
