package hf_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
)

func TestGenerationConfigSaysWhereTextsEnd(t *testing.T) {
	dir := hftest.Dir(t, hftest.Config(t, hftest.GPT2))
	for text, want := range map[string][]int32{
		`{"eos_token_id": 7}`:                      {7},
		`{"eos_token_id": [7, 8], "do_sample": 1}`: {7, 8},
		`{"bos_token_id": 1}`:                      nil,
	} {
		put(t, dir, "generation_config.json", text)
		if got := open(t, dir).Config().EOS; !slices.Equal(got, want) {
			t.Errorf("%s: ends %v, want %v", text, got, want)
		}
	}
	put(t, dir, "generation_config.json", `{"eos_token_id": "x"}`)
	if _, err := hf.Open(dir); err == nil || !strings.Contains(err.Error(), "generation_config.json: eos_token_id") {
		t.Errorf("got %v", err)
	}
}

// The longest sequence is what sentence-transformers cuts at: max_seq_length, else
// the tokenizer's model_max_length; without modules.json neither means anything.
func TestLongestSequence(t *testing.T) {
	const modules = `[{"path":"","type":"x.Transformer"},{"path":"1_Pooling","type":"x.Pooling"}]`
	positions := open(t, hftest.Dir(t, hftest.Config(t, hftest.BERT))).Config().MaxPositions
	for _, c := range []struct {
		modules             bool
		sentence, tokenizer string
		most                int
		left                bool
		broken              string
	}{
		{true, `{"max_seq_length": 5, "do_lower_case": false}`, "", 5, false, ""},
		{true, `{"max_seq_length": 5}`, `{"model_max_length": 3, "truncation_side": "left"}`, 5, true, ""},
		{true, `{"max_seq_length": null}`, `{"model_max_length": 3, "truncation_side": "right"}`, 3, false, ""},
		{true, "", `{"model_max_length": 3}`, 3, false, ""},
		{true, "", `{"model_max_length": 1000000000000000019884624838656}`, 0, false, ""},
		{true, fmt.Sprintf(`{"max_seq_length": %d}`, positions), `{"model_max_length": 3}`, 0, false, ""},
		{true, "", "", 0, false, ""},
		{false, `{"max_seq_length": 5}`, `{"model_max_length": 3}`, 0, false, ""},
		{true, `{"max_seq_length": 0}`, "", 0, false, "sentence_bert_config.json: max_seq_length: 0"},
		{true, `{"max_seq_length": "5"}`, "", 0, false, "sentence_bert_config.json"},
		{true, "", `{"model_max_length": -1}`, 0, false, "tokenizer_config.json: model_max_length: -1"},
	} {
		dir := hftest.Dir(t, hftest.Config(t, hftest.BERT))
		put(t, dir, "1_Pooling/config.json", `{"pooling_mode":"mean"}`)
		for name, text := range map[string]string{"modules.json": modules, "sentence_bert_config.json": c.sentence,
			"tokenizer_config.json": c.tokenizer} {
			if text != "" && (name != "modules.json" || c.modules) {
				put(t, dir, name, text)
			}
		}
		k, err := hf.Open(dir)
		if c.broken != "" {
			if err == nil || !strings.Contains(err.Error(), c.broken) {
				t.Errorf("%s %s: got %v, want %q", c.sentence, c.tokenizer, err, c.broken)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.sentence, c.tokenizer, err)
			continue
		}
		if p := k.Pooling(); p.MaxTokens != c.most || p.CutLeft != c.left {
			t.Errorf("%s %s: %+v, want %d tokens, left %v", c.sentence, c.tokenizer, p, c.most, c.left)
		}
		k.Close()
	}
}

func TestPooling(t *testing.T) {
	const modules = `[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
		{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}`
	const normalize = `,{"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]`
	for _, c := range []struct {
		name, modules, pooling, broken string
		want                           hf.Pooling
	}{
		{"none is stated", "", "", "", hf.Pooling{Mode: hf.Mean}},
		{"mean", modules + `]`,
			`{"word_embedding_dimension":48,"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false}`, "",
			hf.Pooling{Mode: hf.Mean, Stated: true}},
		{"cls, normalised", modules + normalize,
			`{"word_embedding_dimension":48,"pooling_mode_cls_token":true,"pooling_mode_max_tokens":false,"include_prompt":true}`, "",
			hf.Pooling{Mode: hf.CLS, Normalize: true, Stated: true}},
		{"the new form", modules + `]`, `{"embedding_dimension":48,"pooling_mode":"mean"}`, "",
			hf.Pooling{Mode: hf.Mean, Stated: true}},
		{"a transformer alone", `[{"path":"","type":"sentence_transformers.models.Transformer"}]`, "", "",
			hf.Pooling{Mode: hf.None, Stated: true}},
		{"max", modules + `]`, `{"pooling_mode_max_tokens":true,"pooling_mode_mean_tokens":true}`,
			"pooling_mode_max_tokens", hf.Pooling{}},
		{"two modes", modules + `]`, `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true}`,
			"not the only mode", hf.Pooling{}},
		{"no mode", modules + `]`, `{}`, "pooling_mode", hf.Pooling{}},
		{"another dimension", modules + `]`, `{"word_embedding_dimension":47,"pooling_mode_mean_tokens":true}`,
			"word_embedding_dimension", hf.Pooling{}},
		{"an unknown key", modules + `]`, `{"pooling_mode_mean_tokens":true,"weights":[1]}`, "weights", hf.Pooling{}},
		{"a dense layer", strings.Replace(modules, "Pooling", "Dense", 2) + `]`, "", "Dense", hf.Pooling{}},
		{"outside", strings.Replace(modules, "1_Pooling", "../x", 1) + `]`, "", "not in the directory", hf.Pooling{}},
		{"a transformer in a folder", strings.Replace(modules, `"path":""`, `"path":"0_Transformer"`, 1) + `]`, "",
			"the transformer lies in 0_Transformer", hf.Pooling{}},
		{"a transformer here", strings.Replace(modules, `"path":""`, `"path":"./"`, 1) + `]`, `{"pooling_mode":"mean"}`,
			"", hf.Pooling{Mode: hf.Mean, Stated: true}},
		{"no file", modules + `]`, "", "1_Pooling", hf.Pooling{}},
		{"no list", `{}`, "", "modules.json", hf.Pooling{}},
	} {
		dir := hftest.Dir(t, hftest.Config(t, hftest.BERT))
		if c.modules != "" {
			put(t, dir, "modules.json", c.modules)
		}
		if c.pooling != "" {
			put(t, dir, "1_Pooling/config.json", c.pooling)
		}
		k, err := hf.Open(dir)
		switch {
		case c.broken != "":
			if err == nil || !strings.Contains(err.Error(), c.broken) {
				t.Errorf("%s: got %v, want an error with %q", c.name, err, c.broken)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		default:
			if k.Pooling() != c.want {
				t.Errorf("%s: got %+v, want %+v", c.name, k.Pooling(), c.want)
			}
			k.Close()
		}
	}
}

// What sentence-transformers does to a text before the tokenizer is known or
// refused.
func TestTextsOfSentenceTransformers(t *testing.T) {
	for _, c := range []struct {
		file, text string
		lower      bool
		broken     string
	}{
		{"sentence_bert_config.json", `{"max_seq_length":128,"do_lower_case":false}`, false, ""},
		{"sentence_bert_config.json", `{"max_seq_length":128,"do_lower_case":true}`, true, ""},
		{"sentence_bert_config.json", `{"do_lower_case":3}`, false, "sentence_bert_config.json: "},
		{"config_sentence_transformers.json", `{"prompts":{"query":"query: "},"default_prompt_name":null}`, false, ""},
		{"config_sentence_transformers.json",
			`{"prompts":{"query":"query: ","document":""},"default_prompt_name":"document"}`, false, ""},
		{"config_sentence_transformers.json", `{"prompts":{"query":"query: "},"default_prompt_name":"query"}`, false,
			`default_prompt_name is "query", but this program adds no prompts`},
		{"config_sentence_transformers.json", `[]`, false, "config_sentence_transformers.json: "},
	} {
		dir := hftest.Dir(t, hftest.Config(t, hftest.BERT))
		put(t, dir, "modules.json",
			`[{"path":"","type":"sentence_transformers.models.Transformer"},{"path":"p","type":"sentence_transformers.models.Pooling"}]`)
		put(t, dir, "p/config.json", `{"embedding_dimension":48,"pooling_mode":"mean"}`)
		put(t, dir, c.file, c.text)
		k, err := hf.Open(dir)
		switch {
		case c.broken != "":
			if err == nil || !strings.Contains(err.Error(), c.broken) {
				t.Errorf("%s: got %v, want an error with %q", c.text, err, c.broken)
			}
		case err != nil:
			t.Errorf("%s: %v", c.text, err)
		default:
			if k.Pooling().LowerCase != c.lower {
				t.Errorf("%s: lower case %v", c.text, k.Pooling().LowerCase)
			}
			k.Close()
		}
	}
}
