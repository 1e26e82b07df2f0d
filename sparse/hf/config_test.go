package hf_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
)

// What writers of several years put into config.json.
var written = map[string]struct {
	text string
	want hf.Config
}{
	"MiniLM, transformers 4.8": {
		`{"_name_or_path": "nreimers/MiniLM-L6-H384-uncased", "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1,
		"gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 384, "initializer_range": 0.02,
		"intermediate_size": 1536, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12,
		"num_hidden_layers": 6, "pad_token_id": 0, "position_embedding_type": "absolute", "transformers_version": "4.8.2", "type_vocab_size": 2,
		"use_cache": true, "vocab_size": 30522}`,
		hf.Config{Arch: hf.BERT, Model: "bert", Layers: 6, Hidden: 384, Inner: 1536, Heads: 12, KVHeads: 12, Dim: 32,
			Vocab: 30522, MaxPositions: 512,
			Types: 2, Act: hf.GELU, Eps: 1e-12, Scale: float32(1 / math.Sqrt(32)), QKVBias: true, OutBias: true,
			MLPBias: true, BOS: -1}},
	"GPT-2, transformers 2": {
		`{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
		"embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
		"n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null,
		"summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
		"task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257}`,
		hf.Config{Arch: hf.GPT2, Model: "gpt2", Layers: 12, Hidden: 768, Inner: 3072, Heads: 12, KVHeads: 12, Dim: 64,
			Vocab: 50257, MaxPositions: 1024,
			Causal: true, Act: hf.GELUTanh, Eps: 1e-5, Scale: .125, QKVBias: true, OutBias: true, MLPBias: true,
			Tied: true, Head: true, BOS: 50256, EOS: []int32{50256}}},
	"LLaMA 3.1, transformers 4": {
		`{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
		"eos_token_id": [128001, 128008, 128009], "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
		"max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
		"num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
		"high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
		"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256}`,
		hf.Config{Arch: hf.LLaMA, Model: "llama", Layers: 32, Hidden: 4096, Inner: 14336, Heads: 32, KVHeads: 8,
			Dim: 128, Vocab: 128256,
			MaxPositions: 131072, Causal: true, Act: hf.SiLU, Eps: 1e-5, Scale: float32(1 / math.Sqrt(128)), Head: true,
			Rope: hf.Rope{Theta: 500000, Factor: 8, LowFreq: 1, HighFreq: 4, Original: 8192}, BOS: 128000,
			EOS: []int32{128001, 128008, 128009}}},
	"Mistral, transformers 5": {
		`{"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "dtype": "bfloat16", "eos_token_id": 2,
		"head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
		"max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
		"pad_token_id": null, "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "sliding_window": 4096,
		"tie_word_embeddings": false, "transformers_version": "5.23.0", "use_cache": true, "vocab_size": 32000}`,
		hf.Config{Arch: hf.LLaMA, Model: "mistral", Layers: 32, Hidden: 4096, Inner: 14336, Heads: 32, KVHeads: 8,
			Dim: 128, Vocab: 32000,
			MaxPositions: 4096, Causal: true, Act: hf.SiLU, Eps: 1e-6, Scale: float32(1 / math.Sqrt(128)), Head: true,
			Rope: hf.Rope{Theta: 10000}, BOS: 1, EOS: []int32{2}}},
	"Qwen2, transformers 4": {
		`{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
		"hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864, "max_position_embeddings": 32768,
		"max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
		"rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
		"transformers_version": "4.40.1", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936}`,
		hf.Config{Arch: hf.LLaMA, Model: "qwen2", Layers: 24, Hidden: 896, Inner: 4864, Heads: 14, KVHeads: 2,
			Dim: 64, Vocab: 151936,
			MaxPositions: 32768, Causal: true, Act: hf.SiLU, Eps: 1e-6, Scale: .125, QKVBias: true,
			Tied: true, Head: true,
			Rope: hf.Rope{Theta: 1e6}, BOS: 151643, EOS: []int32{151645}}},
	"GPT-2 medium, transformers 2": {
		`{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "bos_token_id": 50256, "eos_token_id": 50256,
		"layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 1024, "n_head": 16, "n_layer": 24, "n_positions": 1024,
		"n_special": 0, "predict_special_tokens": true, "vocab_size": 50257}`,
		hf.Config{Arch: hf.GPT2, Model: "gpt2", Layers: 24, Hidden: 1024, Inner: 4096, Heads: 16, KVHeads: 16, Dim: 64,
			Vocab: 50257, MaxPositions: 1024,
			Causal: true, Act: hf.GELUTanh, Eps: 1e-5, Scale: .125, QKVBias: true, OutBias: true, MLPBias: true,
			Tied: true, Head: true, BOS: 50256, EOS: []int32{50256}}},
	"Qwen2.5, transformers 4": {
		`{"architectures": ["Qwen2ForCausalLM"], "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu",
		"hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2",
		"num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
		"sliding_window": 32768, "tie_word_embeddings": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936}`,
		hf.Config{Arch: hf.LLaMA, Model: "qwen2", Layers: 24, Hidden: 896, Inner: 4864, Heads: 14, KVHeads: 2,
			Dim: 64, Vocab: 151936,
			MaxPositions: 32768, Causal: true, Act: hf.SiLU, Eps: 1e-6, Scale: .125, QKVBias: true,
			Tied: true, Head: true,
			Rope: hf.Rope{Theta: 1e6}, BOS: 151643, EOS: []int32{151643}}},
	"SmolLM2, transformers 4": {
		`{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu",
		"hidden_size": 576, "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192, "mlp_bias": false,
		"model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3, "pretraining_tp": 1,
		"rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true,
		"transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "vocab_size": 49152}`,
		hf.Config{Arch: hf.LLaMA, Model: "llama", Layers: 30, Hidden: 576, Inner: 1536, Heads: 9, KVHeads: 3,
			Dim: 64, Vocab: 49152,
			MaxPositions: 8192, Causal: true, Act: hf.SiLU, Eps: 1e-5, Scale: .125, Tied: true, Head: true,
			Rope: hf.Rope{Theta: 1e5}, BOS: 0, EOS: []int32{0}}},
	"ViT, transformers 4": {
		`{"architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0, "encoder_stride": 16, "hidden_act": "gelu",
		"hidden_dropout_prob": 0.0, "hidden_size": 192, "id2label": {"0": "tench", "1": "goldfish", "2": "shark"}, "image_size": 224,
		"initializer_range": 0.02, "intermediate_size": 768, "label2id": {"tench": 0, "goldfish": 1, "shark": 2}, "layer_norm_eps": 1e-12,
		"model_type": "vit", "num_attention_heads": 3, "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true,
		"torch_dtype": "float32", "transformers_version": "4.13.0"}`,
		hf.Config{Arch: hf.ViT, Model: "vit", Layers: 12, Hidden: 192, Inner: 768, Heads: 3, KVHeads: 3, Dim: 64,
			MaxPositions: 197, Act: hf.GELU,
			Eps: 1e-12, Scale: .125, QKVBias: true, OutBias: true, MLPBias: true, Head: true, Image: [2]int{224, 224},
			Patch: [2]int{16, 16}, Colors: 3, Labels: 3,
			LabelNames: []string{"tench", "goldfish", "shark"}, BOS: -1}},
}

func TestParseConfigOfEveryWriter(t *testing.T) {
	for name, c := range written {
		got, err := hf.ParseConfig([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, *got, c.want)
		}
	}
}

// Each change would change the arithmetic, and is refused by name.
func TestParseConfigRefuses(t *testing.T) {
	for _, c := range []struct{ base, from, to, want string }{
		{hftest.BERT, `{`, `{"hidden_act":"quick_gelu",`, "hidden_act"},
		{hftest.BERT, `{`, `{"position_embedding_type":"relative_key",`, "position_embedding_type: relative_key"},
		{hftest.BERT, `{`, `{"is_decoder":true,`, "is_decoder"},
		{hftest.BERT, `{`, `{"pruned_heads":{"1":[0]},`, "pruned_heads"},
		{hftest.BERT, `{`, `{"quantization_config":{"bits":4},`, "quantization_config"},
		{hftest.BERT, `{`, `{"rotary_value":true,`, "rotary_value: this key is not understood"},
		{hftest.BERT, `"type_vocab_size":2`, `"type_vocab_size":2,"type_vocab_size":3`, "twice"},
		{hftest.BERT, `"type_vocab_size":2`, `"type_vocab_size":0`, "types"},
		{hftest.BERT, `"hidden_size":48,`, ``, "hidden_size: the number is missing"},
		{hftest.BERT, `"hidden_size":48`, `"hidden_size":"48"`, `hidden_size: "48" is not of type int`},
		{hftest.BERT, `"hidden_size":48`, `"hidden_size":4.5`, `hidden_size: 4.5 is not of type int`},
		{hftest.BERT, `"hidden_size":48`, `"hidden_size":50`, "not 4 heads"},
		{hftest.BERT, `"hidden_size":48`, `"hidden_size":99999999999999999999`, "hidden_size"},
		{hftest.BERT, `"num_attention_heads":4`, `"num_attention_heads":0`, "heads: 0"},
		{hftest.BERT, `"num_hidden_layers":2`, `"num_hidden_layers":1000000000`, "layers"},
		{hftest.BERT, `"vocab_size":61`, `"vocab_size":-1`, "vocabulary"},
		{hftest.BERT, `{`, `{"layer_norm_eps":-1,`, "epsilon"},
		{hftest.BERT, `"bert"`, `"roberta"`, `model_type: "roberta"`},
		{hftest.BERT, `{"model_type":"bert",`, `{`, `model_type: ""`},
		{hftest.BERT, `}`, ``, "ends within"},
		{hftest.GPT2, `{`, `{"n_ctx":64,`, "n_ctx"},
		{hftest.GPT2, `{`, `{"add_cross_attention":true,`, "add_cross_attention"},
		{hftest.GPT2, `{`, `{"activation_function":"tanh",`, "activation_function"},
		{hftest.LLaMA, `{`, `{"hidden_act":"gelu",`, "hidden_act"},
		{hftest.LLaMA, `{`, `{"rope_scaling":{"type":"linear","factor":2.0},`, "rope_scaling: rope_type: linear"},
		{hftest.LLaMA, `{`, `{"rope_parameters":{"rope_type":"yarn","factor":2.0},`,
			"rope_parameters: rope_type: yarn"},
		{hftest.LLaMA, `{`, `{"rope_scaling":{"rope_type":"llama3"},`, "factor"},
		{hftest.LLaMA, `{`, `{"rope_parameters":{"rope_type":"default","mscale":2},`, "mscale"},
		{hftest.LLaMA, `{`, `{"partial_rotary_factor":0.5,`, "partial_rotary_factor"},
		{hftest.LLaMA, `{`, `{"rope_theta":-5,`, "rope_theta"},
		{hftest.LLaMA, `{`, `{"use_mrope":true,`, "use_mrope"},
		{hftest.LLaMA, `{`, `{"rope_interleaved":true,`, "rope_interleaved"},
		{hftest.LLaMA, `{`, `{"head_dim":7,`, "halves"},
		{hftest.LLaMA, `"num_key_value_heads":2`, `"num_key_value_heads":3`, "share"},
		{hftest.LLaMA, `{`, `{"layer_types":["chunked_attention"],`, "layer_types"},
		{hftest.LLaMA, `{`, `{"eos_token_id":"x",`, "eos_token_id"},
		{strings.Replace(hftest.LLaMA, `"llama"`, `"mistral"`, 1), `{`, `{"sliding_window":-3,`, "sliding_window"},
		{hftest.ViT, `"patch_size":4`, `"patch_size":0`, "patch_size"},
		{hftest.ViT, `"image_size":[8,12]`, `"image_size":[8,12,3]`, "image_size"},
		{hftest.ViT, `"num_channels":2`, `"num_channels":0`, "channels"},
		{hftest.ViT, `{"model_type"`, `["model_type"`, "not a JSON object"},
		{hftest.ViT, `{"model_type"`, "\ufeff" + `{"model_type"`, "not a JSON object: invalid character"},
		{hftest.ViT, `"patch_size":4`, `"patch_size":4}, {`, "further bytes after"},
	} {
		text := strings.Replace(c.base, c.from, c.to, 1)
		if text == c.base {
			t.Fatalf("%q does not change %s", c.to, c.base)
		}
		_, err := hf.ParseConfig([]byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.to, err, c.want)
		}
	}
}

func TestAWindowShortensThePositions(t *testing.T) {
	mistral := strings.Replace(hftest.LLaMA, `"llama"`, `"mistral"`, 1)
	long := func(text string) string {
		return strings.Replace(text, `"max_position_embeddings":96`, `"max_position_embeddings":8192`, 1)
	}
	for _, c := range []struct {
		text string
		want int
	}{
		{strings.Replace(mistral, `{`, `{"sliding_window":40,`, 1), 40},
		{strings.Replace(mistral, `{`, `{"sliding_window":4000,`, 1), 96},
		{strings.Replace(mistral, `{`, `{"sliding_window":null,`, 1), 96},
		{strings.Replace(strings.Replace(hftest.LLaMA, `"llama"`, `"qwen2"`, 1), `{`,
			`{"sliding_window":40,"use_sliding_window":true,`, 1), 40},
		// Without the key transformers takes 4096, for a class that has windows.
		{long(mistral), 4096},
		{long(strings.Replace(mistral, `{`, `{"sliding_window":null,`, 1)), 8192},
		{long(strings.Replace(hftest.LLaMA, `"llama"`, `"qwen2"`, 1)), 8192},
		{long(strings.Replace(strings.Replace(hftest.LLaMA, `"llama"`, `"qwen2"`, 1), `{`,
			`{"use_sliding_window":true,`, 1)), 4096},
		{long(hftest.LLaMA), 8192},
	} {
		if got := hftest.Config(t, c.text).MaxPositions; got != c.want {
			t.Errorf("%s: %d positions, want %d", c.text, got, c.want)
		}
	}
}

// Numbers of torch 2.15: 1/theta**(arange(0, 8, 2)/8), and as
// _compute_llama3_parameters of transformers 5.23 stretches them.
func TestInverseFrequencies(t *testing.T) {
	for _, c := range []struct {
		rope hf.Rope
		want []float64
	}{
		{hf.Rope{Theta: 10000}, []float64{1, 0.1, 0.01, 0.001}},
		{hf.Rope{Theta: 1000, Factor: 4, LowFreq: 1, HighFreq: 4, Original: 32},
			[]float64{1, 0.04445698, 0.007905695, 0.001405853}},
	} {
		got := c.rope.Inverse(8)
		for i, w := range c.want {
			if d := math.Abs(float64(got[i])-w) / w; !(d < 2e-6) {
				t.Errorf("%+v: frequency %d is %v, want %v", c.rope, i, got[i], w)
			}
		}
	}
}

// Whatever ParseConfig takes is valid, and names tensors of possible shapes.
func FuzzParseConfig(f *testing.F) {
	for _, c := range written {
		f.Add([]byte(c.text))
	}
	for _, text := range []string{hftest.BERT, hftest.ViT, hftest.GPT2, hftest.LLaMA, `{}`, `[]`, `{"model_type":null}`,
		`{"model_type":"gpt2","n_embd":1e3}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := hf.ParseConfig(data)
		if err != nil {
			if c != nil {
				t.Fatal("a configuration beside an error")
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Tensors() {
			for _, n := range w.Shape {
				if n <= 0 {
					t.Fatalf("tensor %s has the shape %v", w.Name, w.Shape)
				}
			}
		}
	})
}
