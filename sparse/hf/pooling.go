package hf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Pooling says how the rows of a sequence become one embedding.
type Pooling struct {
	Mode      string // Mean, CLS or None
	Normalize bool   // to unit length
	LowerCase bool   // texts are to be in lower case before they are tokenized
	MaxTokens int    // longer sequences lose what is beyond so many tokens; 0: the directory names no limit
	CutLeft   bool   // they lose their beginning, not their end
	Stated    bool   // the directory says so; else it is this package's choice
}

// Modes of pooling: the mean of all rows, the first row, or no embedding.
const (
	Mean = "mean"
	CLS  = "cls"
	None = "none"
)

const (
	modulesFile   = "modules.json"
	sentenceFile  = "sentence_bert_config.json"
	tokenizerFile = "tokenizer_config.json"
)

// module is one step of a model of sentence-transformers.
type module struct{ Path, Type string }

// checkLayout refuses directories whose transformer lies in a folder of its own,
// as old versions of sentence-transformers wrote it: what lies beside
// modules.json would be another model, or none.
func checkLayout(fsys fs.FS) error {
	var modules []module
	if err := readIfThere(fsys, modulesFile, &modules); err != nil {
		return err
	}
	if len(modules) > 0 && path.Clean(modules[0].Path) != "." {
		return fmt.Errorf("%s: the transformer lies in %s: move its files, with those of the tokenizer, beside %[1]s, and make this path empty", modulesFile, modules[0].Path)
	}
	return nil
}

// readPooling follows modules.json, as sentence-transformers writes it. Without
// one the rows' mean is taken, not normalised.
func readPooling(fsys fs.FS, c *Config) (Pooling, error) {
	p := Pooling{Mode: Mean}
	var modules []module
	if err := readIfThere(fsys, modulesFile, &modules); err != nil || modules == nil {
		return p, err
	}
	var err error
	p = Pooling{Mode: None, Stated: true}
	for i, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; {
		case kind == "Transformer" && i == 0:
		case kind == "Pooling" && i == 1:
			if p.Mode, err = readPoolingMode(fsys, m.Path, c); err != nil {
				return p, err
			}
		case kind == "Normalize" && i == 2:
			p.Normalize = true
		default:
			return p, fmt.Errorf("modules.json: module %d, %q, is not understood: want Transformer, Pooling and perhaps Normalize", i, m.Type)
		}
	}
	return p, p.readTexts(fsys, c.MaxPositions)
}

// readTexts reads what sentence-transformers does to a text before the transformer
// gets it, with as many positions. A prompt that goes before every text is an error:
// it would be missing in silence.
func (p *Pooling) readTexts(fsys fs.FS, positions int) error {
	var transformer struct {
		LowerCase bool     `json:"do_lower_case"`
		MaxTokens *float64 `json:"max_seq_length"`
	}
	var tokenizer struct {
		MaxTokens *float64 `json:"model_max_length"`
		Side      string   `json:"truncation_side"`
	}
	var all struct {
		Default *string           `json:"default_prompt_name"`
		Prompts map[string]string `json:"prompts"`
	}
	if err := cmp.Or(readIfThere(fsys, sentenceFile, &transformer), readIfThere(fsys, tokenizerFile, &tokenizer), readIfThere(fsys, "config_sentence_transformers.json", &all)); err != nil {
		return err
	}
	p.LowerCase = transformer.LowerCase
	p.CutLeft = tokenizer.Side == "left"
	most, file, key := transformer.MaxTokens, sentenceFile, "max_seq_length"
	if most == nil { // what sentence-transformers falls back to
		most, file, key = tokenizer.MaxTokens, tokenizerFile, "model_max_length"
	}
	switch {
	case most == nil || *most >= float64(positions): // 1e30 stands for no limit
	case !(*most >= 1):
		return fmt.Errorf("%s: %s: %v, want at least 1", file, key, *most)
	default:
		p.MaxTokens = int(*most)
	}
	if all.Default != nil && all.Prompts[*all.Default] != "" {
		return fmt.Errorf("config_sentence_transformers.json: default_prompt_name: %q, but nothing is put before texts here: send them with %q in front, and make this null",
			*all.Default, all.Prompts[*all.Default])
	}
	return nil
}

// readIfThere reads JSON into what is as it was where there is no such file.
func readIfThere(fsys fs.FS, name string, into any) error {
	data, err := readFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func readPoolingMode(fsys fs.FS, folder string, c *Config) (string, error) {
	name := path.Join(folder, "config.json")
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("modules.json: path %q is not in the directory", folder)
	}
	data, err := readFile(fsys, name)
	if err != nil {
		return "", err
	}
	mode, err := parsePoolingMode(data, c)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return mode, nil
}

func parsePoolingMode(data []byte, c *Config) (string, error) {
	k, err := readKeys(data)
	if err != nil {
		return "", err
	}
	for _, key := range []string{"word_embedding_dimension", "embedding_dimension"} {
		if n := number(k, key, c.Hidden); n != c.Hidden {
			k.fail(key, "%d, but the model has %d", n, c.Hidden)
		}
	}
	mode := number(k, "pooling_mode", "")
	for _, m := range []struct{ key, mode string }{{"pooling_mode_mean_tokens", Mean}, {"pooling_mode_cls_token", CLS}} {
		if number(k, m.key, false) {
			if mode != "" && mode != m.mode {
				k.fail(m.key, "is not the only mode, and others cannot be joined here")
			}
			mode = m.mode
		}
	}
	for _, key := range []string{"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"} {
		only(k, key, false, false)
	}
	k.pass("include_prompt")
	if mode != Mean && mode != CLS {
		k.fail("pooling_mode", "%q is not understood, want mean or cls", mode)
	}
	return mode, k.end()
}
