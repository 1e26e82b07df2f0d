// Package hftest makes small checkpoints whose weights are a formula, for tests:
// nothing large is stored, and a program in another language makes the same.
package hftest

import (
	"strings"
	"testing"

	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
)

// Values returns the numbers of the tensor with a canonical name (hf.Tensor):
// uniform, in a range that keeps activations about 1, from the FNV-1a hash of the
// name and the finaliser of SplitMix64.
func Values(name string, n int) []float32 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	lower := strings.ToLower(name)
	center, spread := 0.0, 0.25
	switch {
	case strings.HasSuffix(name, ".bias"):
		spread = 0.125
	case strings.Contains(lower, "norm") || strings.Contains(name, "ln_"):
		center = 1
	}
	v := make([]float32, n)
	for i := range v {
		z := h + uint64(i+1)*0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		u := float64(z>>40)/(1<<23) - 1
		v[i] = float32(center + spread*u) // exact before it is rounded
	}
	return v
}

// Tensors returns all tensors of a configuration.
func Tensors(c *hf.Config) map[string][]float32 {
	tensors := map[string][]float32{}
	for _, t := range c.Tensors() {
		size := 1
		for _, n := range t.Shape {
			size *= n
		}
		tensors[t.Name] = Values(t.Name, size)
	}
	return tensors
}

// Config parses a config.json.
func Config(t testing.TB, text string) *hf.Config {
	t.Helper()
	c, err := hf.ParseConfig([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return c
}

// Dir writes the model of a configuration to a folder of the test, in F32.
func Dir(t testing.TB, c *hf.Config) string {
	t.Helper()
	dir := t.TempDir()
	if err := hf.Save(dir, c, Tensors(c), safetensors.F32); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Small configurations of each architecture: 2 layers, 48 wide, 4 heads (LLaMA
// with 2 of keys), 61 ids, 96 positions; images of 8x12 pixels with 2 channels.
const (
	BERT  = `{"model_type":"bert","architectures":["BertModel"],"hidden_size":48,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":80,"vocab_size":61,"max_position_embeddings":96,"type_vocab_size":2}`
	ViT   = `{"model_type":"vit","architectures":["ViTForImageClassification"],"hidden_size":48,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":80,"image_size":[8,12],"patch_size":4,"num_channels":2,"id2label":{"0":"a","1":"b","2":"c"}}`
	GPT2  = `{"model_type":"gpt2","architectures":["GPT2LMHeadModel"],"n_embd":48,"n_layer":2,"n_head":4,"n_inner":80,"vocab_size":61,"n_positions":96}`
	LLaMA = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":80,"vocab_size":61,"max_position_embeddings":96}`
)
