package hf

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"entropipe/models/atomicfile"
	"entropipe/models/safetensors"
)

// Save writes config.json and model.safetensors of a model, which this package and
// transformers read. tensors holds the values of each name of Config.Tensors. They
// are stored as F32, F16 or BF16, rounded to the nearest number, ties to even. It
// is an error if config.json cannot express c, if tensors do not fit c, or if a
// number is not finite in the stored type. Save makes dir if it does not exist. It
// writes the weights first and replaces each file as a whole.
func Save(dir string, c *Config, tensors map[string][]float32, dtype safetensors.DType) error {
	config, err := c.marshal(dtype)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	arrays, err := c.arrays(tensors, dtype)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	// transformers reads from the metadata which library's layout this is.
	if err := safetensors.WriteFile(filepath.Join(dir, weightsFile), map[string]string{"format": "pt"},
		arrays); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, configFile), func(w io.Writer) error {
		_, err := w.Write(config)
		return err
	})
}

// arrays encodes the tensors under the names of the class.
func (c *Config) arrays(tensors map[string][]float32, dtype safetensors.DType) ([]safetensors.Array, error) {
	var arrays []safetensors.Array
	left := maps.Clone(tensors)
	for _, t := range c.Tensors() {
		values, ok := left[t.Name]
		delete(left, t.Name)
		size := 1
		for _, n := range t.Shape {
			size *= n
		}
		if !ok || len(values) != size {
			return nil, fmt.Errorf("tensor %q has %d numbers but must have %v", t.Name, len(values), t.Shape)
		}
		data, err := encode(values, dtype)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		arrays = append(arrays, safetensors.Array{Name: c.stored(t.Name), DType: dtype, Shape: t.Shape, Data: data})
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		return nil, fmt.Errorf("tensor %q does not belong to a %s model", name, c.Arch)
	}
	return arrays, nil
}

// stored returns the name of a tensor in a file of the class that marshal writes.
func (c *Config) stored(name string) string {
	if !c.Head || strings.HasPrefix(name, "lm_head.") || strings.HasPrefix(name, "classifier.") {
		return name
	}
	return prefix[c.Arch] + name
}

// classes are the Python types without and with a head.
var classes = map[string][2]string{
	"bert": {"BertModel"}, "vit": {"ViTModel", "ViTForImageClassification"}, "gpt2": {"GPT2Model", "GPT2LMHeadModel"},
	"llama": {"LlamaModel", "LlamaForCausalLM"}, "mistral": {"MistralModel", "MistralForCausalLM"},
	"qwen2": {"Qwen2Model", "Qwen2ForCausalLM"},
}

// marshal returns the config.json of the class. It returns an error if the text
// does not read back as the same configuration.
func (c *Config) marshal(dtype safetensors.DType) ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	names := map[safetensors.DType]string{safetensors.F32: "float32", safetensors.F16: "float16",
		safetensors.BF16: "bfloat16"}
	if names[dtype] == "" {
		return nil, fmt.Errorf("weights are of type %s but must be F32, F16 or BF16", dtype)
	}
	class := classes[c.Model][0]
	if c.Head {
		class = classes[c.Model][1]
	}
	m := map[string]any{"model_type": c.Model, "architectures": []string{class}, "dtype": names[dtype],
		"bos_token_id": nil, "eos_token_id": nil}
	if c.BOS >= 0 {
		m["bos_token_id"] = c.BOS
	}
	switch {
	case len(c.EOS) == 1:
		m["eos_token_id"] = c.EOS[0]
	case len(c.EOS) > 1:
		m["eos_token_id"] = c.EOS
	}
	switch c.Arch {
	case GPT2:
		c.marshalGPT2(m)
	case LLaMA:
		c.marshalLLaMA(m)
	default:
		c.marshalEncoder(m)
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	back, err := ParseConfig(data)
	if err != nil {
		return nil, err
	}
	want := *c
	want.LabelNames = named(c.LabelNames)
	if !reflect.DeepEqual(*back, want) {
		return nil, fmt.Errorf("config.json cannot express %+v, only %+v", *c, *back)
	}
	return append(data, '\n'), nil
}

func (c *Config) marshalEncoder(m map[string]any) {
	m["num_hidden_layers"], m["hidden_size"], m["intermediate_size"], m["num_attention_heads"] = c.Layers,
		c.Hidden, c.Inner, c.Heads
	m["hidden_act"], m["layer_norm_eps"] = c.Act, decimal(c.Eps)
	if c.Arch == BERT {
		m["vocab_size"], m["max_position_embeddings"], m["type_vocab_size"] = c.Vocab, c.MaxPositions, c.Types
		return
	}
	m["qkv_bias"], m["num_channels"] = c.QKVBias, c.Colors
	for name, v := range map[string][2]int{"image_size": c.Image, "patch_size": c.Patch} {
		m[name] = v
		if v[0] == v[1] {
			m[name] = v[0]
		}
	}
	if c.Head {
		byID, byName := map[string]string{}, map[string]int{}
		for i := range c.Labels {
			name := unnamed(i)
			if c.LabelNames != nil {
				name = c.LabelNames[i]
			}
			byID[strconv.Itoa(i)], byName[name] = name, i
		}
		m["id2label"], m["label2id"] = byID, byName
	}
}

func (c *Config) marshalGPT2(m map[string]any) {
	m["n_layer"], m["n_embd"], m["n_inner"], m["n_head"] = c.Layers, c.Hidden, c.Inner, c.Heads
	m["vocab_size"], m["n_positions"], m["tie_word_embeddings"] = c.Vocab, c.MaxPositions, c.Tied
	m["activation_function"], m["layer_norm_epsilon"] = c.Act, decimal(c.Eps)
	m["scale_attn_weights"], m["scale_attn_by_inverse_layer_idx"] = c.Scale == scale(c.Dim), c.ScaleByLayer
}

func (c *Config) marshalLLaMA(m map[string]any) {
	m["num_hidden_layers"], m["hidden_size"], m["intermediate_size"] = c.Layers, c.Hidden, c.Inner
	m["num_attention_heads"], m["num_key_value_heads"], m["head_dim"] = c.Heads, c.KVHeads, c.Dim
	m["vocab_size"], m["max_position_embeddings"], m["tie_word_embeddings"] = c.Vocab, c.MaxPositions, c.Tied
	m["hidden_act"], m["rms_norm_eps"] = c.Act, decimal(c.Eps)
	switch c.Model {
	case "llama":
		m["attention_bias"], m["mlp_bias"] = c.QKVBias, c.MLPBias
	case "mistral":
		m["sliding_window"] = nil
	}
	rope := map[string]any{"rope_type": "default", "rope_theta": c.Rope.Theta}
	if c.Rope.Factor != 0 {
		rope["rope_type"], rope["factor"] = "llama3", c.Rope.Factor
		rope["low_freq_factor"], rope["high_freq_factor"] = c.Rope.LowFreq, c.Rope.HighFreq
		rope["original_max_position_embeddings"] = c.Rope.Original
	}
	m["rope_parameters"] = rope
}

// decimal returns the shortest decimal number that reads back as x.
func decimal(x float32) json.Number {
	return json.Number(strconv.FormatFloat(float64(x), 'g', -1, 32))
}

// encode returns the values in a type, little-endian. A value that is not finite in
// that type is an error.
func encode(values []float32, dtype safetensors.DType) ([]byte, error) {
	out := make([]byte, 0, len(values)*dtype.Size())
	for i, x := range values {
		fits := !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0)
		switch dtype {
		case safetensors.F32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
		case safetensors.F16:
			h := half(x)
			fits = fits && h&0x7fff != 0x7c00
			out = binary.LittleEndian.AppendUint16(out, h)
		default:
			b := math.Float32bits(x)
			b += 0x7fff + b>>16&1 // to the nearest, ties to even
			fits = fits && b>>16&0x7fff != 0x7f80
			out = binary.LittleEndian.AppendUint16(out, uint16(b>>16))
		}
		if !fits {
			return nil, fmt.Errorf("number %d, %v, is not finite as %s", i, x, dtype)
		}
	}
	return out, nil
}

// half returns the F16 nearest to x, ties to even, and infinity beyond the largest.
func half(x float32) uint16 {
	sign := uint16(math.Float32bits(x) >> 16 & 0x8000)
	a := math.Abs(float64(x))
	switch {
	case a >= 65520:
		return sign | 0x7c00
	case a < 1.0/(1<<14): // multiples of 2⁻²⁴; rounding up to 2¹⁰ gives the smallest normal
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	// n has eleven bits of fraction; the exponent implies the first one.
	f, e := math.Frexp(a)
	n := uint16(math.RoundToEven(f * (1 << 11)))
	return sign | (uint16(e+13)<<10 + n)
}
