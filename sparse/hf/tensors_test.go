package hf_test

import (
	_ "embed"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
)

// tensorsOfTransformers is what transformers writes, by testdata/tensors.py.
//
//go:embed testdata/tensors.json
var tensorsOfTransformers []byte

// Every tensor that transformers writes for a configuration is wanted, in its
// shape, and no other; and so where the keys are absent whose values are those
// of an absent one.
func TestTensorsAreThoseOfTransformers(t *testing.T) {
	var cases []struct {
		Name    string
		Config  map[string]any
		Tensors map[string][]int
	}
	if err := json.Unmarshal(tensorsOfTransformers, &cases); err != nil {
		t.Fatal(err)
	}
	absent := map[string][]string{"vit": {"qkv_bias"}, "gpt2": {"tie_word_embeddings", "n_inner"},
		"llama": {"attention_bias", "mlp_bias", "tie_word_embeddings", "head_dim"}}
	for _, c := range cases {
		for _, keys := range [][]string{nil, absent[c.Name]} {
			for _, key := range keys {
				if _, ok := c.Config[key]; !ok {
					t.Fatalf("%s: there is no key %s to leave out", c.Name, key)
				}
				delete(c.Config, key)
			}
			config, err := json.Marshal(c.Config)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			put(t, dir, "config.json", string(config))
			var arrays []safetensors.Array
			for _, name := range slices.Sorted(maps.Keys(c.Tensors)) {
				size := 1
				for _, n := range c.Tensors[name] {
					size *= n
				}
				arrays = append(arrays, safetensors.Array{Name: name, Shape: c.Tensors[name],
					Data: hftest.Values(name, size)})
			}
			if err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), nil, arrays); err != nil {
				t.Fatal(err)
			}
			k, err := hf.Open(dir)
			if err != nil {
				t.Errorf("%s, without %v: %v", c.Name, keys, err)
				continue
			}
			if got := len(k.Config().Tensors()); got != len(arrays) {
				t.Errorf("%s, without %v: wants %d tensors of %d", c.Name, keys, got, len(arrays))
			}
			k.Close()
		}
	}
}

// Behind a copy of tied embeddings, too, what is left over is an error; and
// values that say nothing are none.
func TestNothingIsPassedOver(t *testing.T) {
	dir := rewrite(t, hftest.GPT2, func(m map[string]*safetensors.Array) {
		with("lm_head.weight", hftest.Values("wte.weight", 61*48), 61, 48)(m)
		with("zeros", []float32{0}, 1)(m)
	})
	if _, err := hf.Open(dir); err == nil || !strings.Contains(err.Error(), `"zeros" is left over`) {
		t.Errorf("got %v", err)
	}
	c := hftest.Config(t, strings.Replace(hftest.BERT, `{`,
		`{"quantization_config":null,"pruned_heads":{},"cross_attention_hidden_size":null,`, 1))
	if want := hftest.Config(t, hftest.BERT); c.Layers != want.Layers || c.Hidden != want.Hidden {
		t.Errorf("%+v, want %+v", c, want)
	}
}

// The smallest id, and several ends, are written and read back.
func TestEndsOfTextsAreKept(t *testing.T) {
	for _, want := range [][]int32{nil, {0}, {3}, {5, 0, 7}} {
		c := hftest.Config(t, hftest.GPT2)
		if c.BOS, c.EOS = 0, want; len(want) == 0 {
			c.BOS = -1
		}
		dir := t.TempDir()
		if err := hf.Save(dir, c, hftest.Tensors(c), safetensors.F32); err != nil {
			t.Fatal(err)
		}
		if got := open(t, dir).Config(); got.BOS != c.BOS || !slices.Equal(got.EOS, want) {
			t.Errorf("begins with %d and ends with %v, want %d and %v", got.BOS, got.EOS, c.BOS, want)
		}
	}
}
