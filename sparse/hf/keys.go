package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxConfig bounds the bytes of a JSON file; label lists are the longest.
const maxConfig = 16 << 20

// keys is a JSON object that records which keys are read, so that end can report a
// key that nothing reads. err is the first error.
type keys struct {
	raw  map[string]json.RawMessage
	seen map[string]bool
	err  error
}

func readKeys(data []byte) (*keys, error) {
	if err := oneObject(data); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("it ends within its JSON object")
	} else if err != nil {
		return nil, err
	}
	k := &keys{seen: map[string]bool{}}
	if err := json.Unmarshal(data, &k.raw); err != nil {
		return nil, err
	}
	return k, nil
}

// oneObject returns an error unless data is one object without duplicate keys at
// its top level. encoding/json would silently use the last of two.
func oneObject(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err == io.EOF {
		return err
	} else if err != nil {
		return fmt.Errorf("it is not a JSON object: %w", err)
	} else if t != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	names := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name := t.(string) // the decoder accepts nothing else here
		if names[name] {
			return fmt.Errorf("%q occurs twice", name)
		}
		names[name] = true
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("it has further bytes after its object")
	}
	return nil
}

func (k *keys) fail(name, format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
	}
}

// get decodes a value into dst and reports whether there is one. null counts as
// absent.
func (k *keys) get(name string, dst any) bool {
	k.seen[name] = true
	raw, ok := k.raw[name]
	if !ok || string(raw) == "null" {
		return false
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			k.fail(name, "%s is not of type %s", clip(raw), wrong.Type)
		} else {
			k.fail(name, "%v", err)
		}
		return false
	}
	return true
}

func clip(raw []byte) string {
	if len(raw) > 60 {
		return string(raw[:60]) + "…"
	}
	return string(raw)
}

// need reads a required whole number.
func (k *keys) need(name string) int {
	n := 0
	if !k.get(name, &n) {
		k.fail(name, "the number is missing")
	}
	return n
}

// number reads a value; it returns absent if there is none.
func number[T int | float64 | bool | string](k *keys, name string, absent T) T {
	v := absent
	if !k.get(name, &v) {
		return absent
	}
	return v
}

// only reads a value and fails unless it is one of known, whose arithmetic this
// program implements.
func only[T int | float64 | bool | string](k *keys, name string, absent T, known ...T) T {
	v := number(k, name, absent)
	if !slices.Contains(known, v) {
		k.fail(name, "%v is not understood: it must be one of %v", v, known)
	}
	return v
}

// pass marks keys as read that change nothing in this program.
func (k *keys) pass(names ...string) {
	for _, name := range names {
		k.seen[name] = true
	}
}

// end returns the first error, or an error for the first key that nothing has read.
func (k *keys) end() error {
	if k.err != nil {
		return k.err
	}
	for _, name := range slices.Sorted(maps.Keys(k.raw)) {
		if !k.seen[name] && !strings.HasPrefix(name, "_") {
			return fmt.Errorf("%s: this key is not understood, and may change the arithmetic", name)
		}
	}
	return nil
}

// ids reads one id or a list of ids. It returns nil for null and for an absent key.
func (k *keys) ids(name string) []int32 {
	k.seen[name] = true
	raw, ok := k.raw[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	var list []int32
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	var one int32
	if err := json.Unmarshal(raw, &one); err != nil {
		k.fail(name, "%s is neither an id nor a list of ids", clip(raw))
		return nil
	}
	return []int32{one}
}

// harmless are keys of every class that do not change the results of these models:
// settings of training and of sampling, and labels.
var harmless = []string{
	"architectures", "transformers_version", "torch_dtype", "dtype", "torchscript", "use_bfloat16", "tf_legacy_loss",
	"attn_implementation",
	"output_hidden_states", "output_attentions", "return_dict", "use_cache", "gradient_checkpointing",
	"chunk_size_feed_forward",
	"initializer_range", "finetuning_task", "problem_type", "label2id", "id2label", "tokenizer_class", "prefix",
	"task_specific_params", "summary_type",
	"summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout", "classifier_dropout",
	"name_or_path", "model_max_length",
	"sep_token_id", "pad_token_id", "unk_token_id", "decoder_start_token_id", "tie_encoder_decoder",
	"pretraining_tp", "encoder_stride",
	"max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
	"temperature", "top_k", "top_p",
	"typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
	"encoder_no_repeat_ngram_size", "bad_words_ids",
	"num_return_sequences", "output_scores", "output_past", "return_dict_in_generate", "forced_bos_token_id",
	"forced_eos_token_id", "remove_invalid_values",
	"exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
	// Files of gpt2-medium and SmolLM2 have the next four; transformers reads none of them.
	"n_special", "predict_special_tokens", "is_llama_config", "transformers.js_config",
	"hidden_dropout_prob", "attention_probs_dropout_prob", "attention_dropout", "hidden_dropout", "attn_pdrop",
	"embd_pdrop", "resid_pdrop",
}

// common reads the keys that all classes share.
func (k *keys) common(c *Config) {
	k.pass(harmless...)
	for _, name := range []string{"is_encoder_decoder", "is_decoder", "add_cross_attention"} {
		only(k, name, false, false)
	}
	for _, name := range []string{"quantization_config", "pruned_heads", "cross_attention_hidden_size"} {
		k.seen[name] = true
		if raw, ok := k.raw[name]; ok && string(raw) != "null" && string(raw) != "{}" {
			k.fail(name, "%s is not understood", clip(raw))
		}
	}
	c.BOS = -1
	if ids := k.ids("bos_token_id"); len(ids) > 0 {
		c.BOS = ids[0]
	}
	c.EOS = k.ids("eos_token_id")
}

// activation reads the name of an activation.
func (k *keys) activation(name string, absent Activation, known ...Activation) Activation {
	alias := map[string]Activation{
		"gelu": GELU, "gelu_python": GELU, "gelu_new": GELUTanh, "gelu_fast": GELUTanh,
		"gelu_pytorch_tanh": GELUTanh, "gelu_python_tanh": GELUTanh, "silu": SiLU, "swish": SiLU, "relu": ReLU,
	}
	text := number(k, name, string(absent))
	a, ok := alias[text]
	if !ok || !slices.Contains(known, a) {
		k.fail(name, "%q is not understood: it must be one of %v", text, known)
	}
	return a
}
