package hf

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ParseConfig reads the contents of a config.json. A key that is not understood is
// an error, unless it is known to change nothing. Errors name the key.
func ParseConfig(data []byte) (*Config, error) {
	if len(data) > maxConfig {
		return nil, fmt.Errorf("it is longer than %d bytes", maxConfig)
	}
	k, err := readKeys(data)
	if err != nil {
		return nil, err
	}
	c := &Config{Model: number(k, "model_type", "")}
	k.common(c)
	switch c.Model {
	case "bert":
		k.bert(c)
	case "vit":
		k.vit(c)
	case "gpt2":
		k.gpt2(c)
	case "llama", "mistral", "qwen2":
		k.llama(c)
	default:
		return nil, fmt.Errorf("model_type: %q is not understood: it must be bert, vit, gpt2, llama, mistral or qwen2",
			c.Model)
	}
	if err := k.end(); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// architecture reports whether a class in the file ends with one of the names.
func (k *keys) architecture(names ...string) bool {
	var classes []string
	k.get("architectures", &classes)
	return slices.ContainsFunc(names, func(n string) bool {
		return slices.ContainsFunc(classes, func(c string) bool { return strings.HasSuffix(c, n) })
	})
}

// heads sets the sizes of attention in which every head has its own keys.
func (c *Config) heads() {
	c.KVHeads = c.Heads
	if c.Heads > 0 {
		c.Dim = c.Hidden / c.Heads
	}
	c.Scale = scale(c.Dim)
}

// scale returns 1/√dim, rounded once.
func scale(dim int) float32 { return float32(1 / math.Sqrt(float64(max(dim, 1)))) }

// sizes reads the sizes that all classes but GPT-2's have under the same names.
func (k *keys) sizes(c *Config) {
	c.Layers, c.Hidden = k.need("num_hidden_layers"), k.need("hidden_size")
	c.Inner, c.Heads = k.need("intermediate_size"), k.need("num_attention_heads")
}

func (k *keys) bert(c *Config) {
	c.Arch, c.QKVBias, c.OutBias, c.MLPBias = BERT, true, true, true
	k.sizes(c)
	c.Vocab, c.MaxPositions, c.Types = k.need("vocab_size"), k.need("max_position_embeddings"),
		k.need("type_vocab_size")
	c.heads()
	c.Act = k.activation("hidden_act", GELU, GELU, GELUTanh, SiLU, ReLU)
	c.Eps = float32(number(k, "layer_norm_eps", 1e-12))
	only(k, "position_embedding_type", "absolute", "absolute")
	k.pass("tie_word_embeddings", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
		"pooler_size_per_head", "pooler_type", "directionality")
}

func (k *keys) vit(c *Config) {
	c.Arch, c.OutBias, c.MLPBias = ViT, true, true
	k.sizes(c)
	c.heads()
	c.QKVBias = number(k, "qkv_bias", true)
	c.Act = k.activation("hidden_act", GELU, GELU, GELUTanh, SiLU, ReLU)
	c.Eps = float32(number(k, "layer_norm_eps", 1e-12))
	c.Image, c.Patch, c.Colors = k.size("image_size", 224), k.size("patch_size", 16), number(k, "num_channels", 3)
	if c.Patch[0] < 1 || c.Patch[1] < 1 {
		k.fail("patch_size", "%v is not above 0", c.Patch)
	} else {
		rows, cols := c.Patches()
		c.MaxPositions = rows*cols + 1
	}
	if c.Head = k.architecture("ForImageClassification"); c.Head {
		labels := map[string]any{}
		c.Labels = 2 // transformers' default without a table
		if k.get("id2label", &labels) {
			c.Labels = len(labels)
		}
		c.Labels = number(k, "num_labels", c.Labels)
		c.LabelNames = labelNames(labels, c.Labels)
	}
	k.pass("tie_word_embeddings", "pooler_output_size", "pooler_act", "num_labels")
}

// labelNames returns the names of a table from number to name. It returns nil if
// the table does not have n names, or only default names.
func labelNames(byID map[string]any, n int) []string {
	if len(byID) != n {
		return nil
	}
	names := make([]string, n)
	for i := range names {
		name, ok := byID[strconv.Itoa(i)].(string)
		if !ok {
			return nil
		}
		names[i] = name
	}
	return named(names)
}

// named returns names, or nil if all of them are default names.
func named(names []string) []string {
	for i, name := range names {
		if name != unnamed(i) {
			return names
		}
	}
	return nil
}

// unnamed returns transformers' default name of label i.
func unnamed(i int) string { return "LABEL_" + strconv.Itoa(i) }

// size reads a number, or a height and a width.
func (k *keys) size(name string, absent int) [2]int {
	k.seen[name] = true
	raw, ok := k.raw[name]
	if !ok || string(raw) == "null" {
		return [2]int{absent, absent}
	}
	var one int
	if json.Unmarshal(raw, &one) == nil {
		return [2]int{one, one}
	}
	var two []int
	if json.Unmarshal(raw, &two) != nil || len(two) != 2 {
		k.fail(name, "%s is neither one number nor two", clip(raw))
		return [2]int{}
	}
	return [2]int{two[0], two[1]}
}

func (k *keys) gpt2(c *Config) {
	c.Arch, c.Causal, c.QKVBias, c.OutBias, c.MLPBias = GPT2, true, true, true, true
	c.Layers, c.Hidden, c.Heads = k.need("n_layer"), k.need("n_embd"), k.need("n_head")
	c.Vocab, c.MaxPositions = k.need("vocab_size"), k.need("n_positions")
	c.Inner = number(k, "n_inner", 4*c.Hidden)
	c.heads()
	if !number(k, "scale_attn_weights", true) {
		c.Scale = 1
	}
	c.ScaleByLayer = number(k, "scale_attn_by_inverse_layer_idx", false)
	c.Act = k.activation("activation_function", GELUTanh, GELU, GELUTanh, SiLU, ReLU)
	c.Eps = float32(number(k, "layer_norm_epsilon", 1e-5))
	c.Tied = number(k, "tie_word_embeddings", true)
	c.Head = c.Tied || k.architecture("LMHeadModel")
	if n := number(k, "n_ctx", c.MaxPositions); n != c.MaxPositions {
		k.fail("n_ctx", "%d is not n_positions", n)
	}
	k.pass("reorder_and_upcast_attn") // it changes the order of the same products
}

func (k *keys) llama(c *Config) {
	c.Arch, c.Causal, c.Act = LLaMA, true, k.activation("hidden_act", SiLU, SiLU)
	k.sizes(c)
	c.Vocab, c.MaxPositions = k.need("vocab_size"), k.need("max_position_embeddings")
	c.KVHeads = number(k, "num_key_value_heads", c.Heads)
	c.Dim = number(k, "head_dim", c.Hidden/max(c.Heads, 1))
	c.Scale = scale(c.Dim)
	c.Eps = float32(number(k, "rms_norm_eps", 1e-6))
	c.QKVBias = c.Model == "qwen2"
	if c.Model == "llama" {
		c.QKVBias = number(k, "attention_bias", false)
		c.OutBias = c.QKVBias
		c.MLPBias = number(k, "mlp_bias", false)
	}
	c.Tied = number(k, "tie_word_embeddings", false)
	c.Head = c.Tied || k.architecture("ForCausalLM")
	k.rope(c)
	k.window(c)
}

// absentWindow is the sliding window of Mistral and Qwen2 if the file has no key
// for it. The value null means no window.
const absentWindow = 4096

// window lowers MaxPositions to the length of a sliding window. Within that length
// every token sees all tokens before it, so that the window has no effect.
func (k *keys) window(c *Config) {
	used := c.Model != "qwen2" || number(k, "use_sliding_window", false)
	w := number(k, "sliding_window", 0)
	if _, written := k.raw["sliding_window"]; !written && c.Model != "llama" {
		w = absentWindow
	}
	if w != 0 && used {
		if w < 1 {
			k.fail("sliding_window", "%d is not above 0", w)
		}
		c.MaxPositions = min(c.MaxPositions, w)
	}
	k.pass("max_window_layers") // no layer slides within the window
	var types []string
	if k.get("layer_types", &types) {
		for _, t := range types {
			if t != "full_attention" && t != "sliding_attention" {
				k.fail("layer_types", "%q is not understood", t)
			}
		}
	}
}

// rope reads the settings of rotary positions, in the form of transformers 5
// (rope_parameters) or of earlier versions (rope_theta and rope_scaling).
func (k *keys) rope(c *Config) {
	c.Rope.Theta = number(k, "rope_theta", 10000.0)
	for _, name := range []string{"rope_parameters", "rope_scaling"} {
		var raw json.RawMessage
		if !k.get(name, &raw) {
			continue
		}
		inner, err := readKeys(raw)
		if err != nil {
			k.fail(name, "%v", err)
			return
		}
		inner.ropeScaling(c)
		if err := inner.end(); err != nil {
			k.fail(name, "%v", err)
		}
	}
	if part := number(k, "partial_rotary_factor", 1.0); part != 1 {
		k.fail("partial_rotary_factor", "%v is not understood: it must be 1", part)
	}
	only(k, "use_mrope", false, false)        // files of Qwen2.5 have it
	only(k, "rope_interleaved", false, false) // files of SmolLM2 have it
}

func (k *keys) ropeScaling(c *Config) {
	kind := number(k, "type", "default") // the key had this name in earlier versions
	kind = only(k, "rope_type", kind, "default", "llama3")
	c.Rope.Theta = number(k, "rope_theta", c.Rope.Theta)
	if part := number(k, "partial_rotary_factor", 1.0); part != 1 {
		k.fail("partial_rotary_factor", "%v is not understood: it must be 1", part)
	}
	if kind != "llama3" {
		k.pass("original_max_position_embeddings")
		return
	}
	c.Rope.Factor = number(k, "factor", 0.0)
	c.Rope.LowFreq, c.Rope.HighFreq = number(k, "low_freq_factor", 0.0), number(k, "high_freq_factor", 0.0)
	c.Rope.Original = number(k, "original_max_position_embeddings", c.MaxPositions)
	if c.Rope.Factor == 0 {
		k.fail("factor", "llama3 needs it")
	}
}
