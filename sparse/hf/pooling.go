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

// Pooling describes how texts are prepared and how the rows of a sequence become
// one embedding.
type Pooling struct {
	Mode      string // Mean, CLS or None
	Normalize bool   // the embedding is scaled to length 1
	LowerCase bool   // texts are converted to lower case before they are tokenized
	MaxTokens int    // longer sequences are cut to MaxTokens; 0 if the directory has no limit
	CutLeft   bool   // longer sequences lose their beginning, not their end
	Stated    bool   // the directory states Mode; if false, Mode is this package's default
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

// checkLayout returns an error if the transformer lies in a folder of its own, as
// old versions of sentence-transformers wrote it. A config.json beside modules.json
// would then belong to another model.
func checkLayout(fsys fs.FS) error {
	var modules []module
	if err := readIfThere(fsys, modulesFile, &modules); err != nil {
		return err
	}
	if len(modules) > 0 && path.Clean(modules[0].Path) != "." {
		return fmt.Errorf("%s: the transformer lies in %s: move its files, with those of the tokenizer, beside "+
			"%[1]s, and make this path empty", modulesFile, modules[0].Path)
	}
	return nil
}

// readPooling reads modules.json of sentence-transformers. Without that file it
// returns Mean, not normalised.
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
			return p, fmt.Errorf("modules.json: module %d, %q, is not understood: modules must be Transformer, "+
				"Pooling and optionally Normalize",
				i, m.Type)
		}
	}
	return p, p.readTexts(fsys, c.MaxPositions)
}

// readTexts reads how sentence-transformers prepares a text for a transformer with
// this number of positions. A prompt that must precede every text is an error,
// because embeddings without it would be wrong without notice.
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
	err := cmp.Or(
		readIfThere(fsys, sentenceFile, &transformer), readIfThere(fsys, tokenizerFile, &tokenizer),
		readIfThere(fsys, "config_sentence_transformers.json", &all))
	if err != nil {
		return err
	}
	p.LowerCase = transformer.LowerCase
	p.CutLeft = tokenizer.Side == "left"
	most, file, key := transformer.MaxTokens, sentenceFile, "max_seq_length"
	if most == nil { // as sentence-transformers does
		most, file, key = tokenizer.MaxTokens, tokenizerFile, "model_max_length"
	}
	switch {
	case most == nil || *most >= float64(positions): // 1e30 stands for no limit
	case !(*most >= 1):
		return fmt.Errorf("%s: %s: %v is not at least 1", file, key, *most)
	default:
		p.MaxTokens = int(*most)
	}
	if all.Default != nil && all.Prompts[*all.Default] != "" {
		return fmt.Errorf("config_sentence_transformers.json: default_prompt_name is %q, but this program adds "+
			"no prompts: "+
			"send texts with %q in front, and set this key to null", *all.Default, all.Prompts[*all.Default])
	}
	return nil
}

// readIfThere decodes a JSON file into a value. Without the file it leaves the
// value unchanged.
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
			k.fail(key, "it is %d, but the model has %d", n, c.Hidden)
		}
	}
	mode := number(k, "pooling_mode", "")
	for _, m := range []struct{ key, mode string }{{"pooling_mode_mean_tokens", Mean},
		{"pooling_mode_cls_token", CLS}} {
		if number(k, m.key, false) {
			if mode != "" && mode != m.mode {
				k.fail(m.key, "it is not the only mode, and modes cannot be combined")
			}
			mode = m.mode
		}
	}
	for _, key := range []string{
		"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
		"pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken",
	} {
		only(k, key, false, false)
	}
	k.pass("include_prompt")
	if mode != Mean && mode != CLS {
		k.fail("pooling_mode", "%q is not understood: it must be mean or cls", mode)
	}
	return mode, k.end()
}
