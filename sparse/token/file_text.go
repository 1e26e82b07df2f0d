package token

import (
	"encoding/json"
	"errors"
	"fmt"
)

func (t *Tokenizer) readNormalizer(data json.RawMessage) error {
	return each(data, "normalizers", 0, func(kind string, data json.RawMessage) error {
		n, err := readNormalizer(kind, data)
		if err != nil {
			return err
		}
		t.normalizers = append(t.normalizers, n)
		return nil
	})
}

func readNormalizer(kind string, data json.RawMessage) (normalizer, error) {
	switch kind {
	case "BertNormalizer":
		c := struct {
			Clean   bool  `json:"clean_text"`
			Han     bool  `json:"handle_chinese_chars"`
			Accents *bool `json:"strip_accents"`
			Lower   bool  `json:"lowercase"`
		}{true, true, nil, true}
		if err := json.Unmarshal(data, &c); err != nil {
			return normalizer{}, err
		}
		accents := c.Lower // null means: strip accents if letters become lower case, as BERT did
		if c.Accents != nil {
			accents = *c.Accents
		}
		return normalizer{kind: normBERT, bert: bertNormalizer{c.Clean, c.Han, accents, c.Lower}}, nil
	case "Prepend":
		var c struct {
			Prepend string `json:"prepend"`
		}
		err := json.Unmarshal(data, &c)
		return normalizer{kind: normPrepend, to: []byte(c.Prepend)}, err
	case "Replace":
		from, to, err := readReplace(data)
		return normalizer{kind: normReplace, from: from, to: to}, err
	case "NFC":
		return normalizer{kind: normNFC}, nil
	}
	return normalizer{}, errUnsupported
}

// filePattern is a pattern of the file: exactly one of String and Regex is set.
type filePattern struct {
	String *string
	Regex  *string
}

func readReplace(data json.RawMessage) (from, to []byte, err error) {
	var c struct {
		Pattern filePattern `json:"pattern"`
		Content string      `json:"content"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, nil, err
	}
	if c.Pattern.String == nil || *c.Pattern.String == "" {
		return nil, nil, errors.New("a pattern other than a String is not supported")
	}
	return []byte(*c.Pattern.String), []byte(c.Content), nil
}

func (t *Tokenizer) readPreTokenizer(data json.RawMessage) error {
	return each(data, "pretokenizers", 0, func(kind string, data json.RawMessage) error {
		if n := len(t.splitters); n > 0 && t.splitters[n-1].kind == splitByteLevel {
			return fmt.Errorf("after ByteLevel %w", errUnsupported)
		}
		s, err := readSplitter(kind, data)
		if err != nil {
			return err
		}
		t.splitters = append(t.splitters, s)
		return nil
	})
}

func readSplitter(kind string, data json.RawMessage) (splitter, error) {
	switch kind {
	case "BertPreTokenizer":
		return splitter{kind: splitBERT}, nil
	case "ByteLevel":
		c := struct {
			Prefix bool `json:"add_prefix_space"`
			Regex  bool `json:"use_regex"`
		}{true, true}
		if err := json.Unmarshal(data, &c); err != nil {
			return splitter{}, err
		}
		s := splitter{kind: splitByteLevel, prefix: c.Prefix}
		if c.Regex {
			s.scan = scanGPT2
		}
		return s, nil
	case "Split":
		return readSplit(data)
	case "Metaspace":
		c, err := readMetaspace(data)
		return splitter{kind: splitMetaspace, mark: []byte(c.Replacement), scheme: c.scheme, cut: c.Split}, err
	case "Digits":
		var c struct {
			Individual bool `json:"individual_digits"`
		}
		err := json.Unmarshal(data, &c)
		return splitter{kind: splitDigits, cut: c.Individual}, err
	}
	return splitter{}, errUnsupported
}

func readSplit(data json.RawMessage) (splitter, error) {
	var c struct {
		Pattern  filePattern `json:"pattern"`
		Behavior string      `json:"behavior"`
		Invert   bool        `json:"invert"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return splitter{}, err
	}
	how, ok := behaviors[c.Behavior]
	if !ok {
		return splitter{}, fmt.Errorf("behavior %q is not supported", c.Behavior)
	}
	s := splitter{kind: splitPattern, invert: c.Invert, behavior: how}
	switch {
	case c.Pattern.String != nil && *c.Pattern.String != "":
		s.pattern.text = []byte(*c.Pattern.String)
	case c.Pattern.Regex != nil:
		covers := how == isolated || how == removed && c.Invert // every match becomes a word
		if k, known := scanPatterns[*c.Pattern.Regex]; known && covers {
			return splitter{kind: splitScan, scan: k}, nil
		}
		var err error
		if s.pattern, err = compilePattern(*c.Pattern.Regex); err != nil {
			return splitter{}, err
		}
	default:
		return splitter{}, errors.New("the pattern is missing")
	}
	return s, nil
}

// fileMetaspace holds the fields of Metaspace, both as pre-tokenizer and as decoder.
type fileMetaspace struct {
	Replacement string  `json:"replacement"`
	Scheme      *string `json:"prepend_scheme"`
	AddPrefix   *bool   `json:"add_prefix_space"` // in place of Scheme in older files
	Split       bool    `json:"split"`

	scheme prependScheme
}

func readMetaspace(data json.RawMessage) (fileMetaspace, error) {
	c := fileMetaspace{Split: true}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, err
	}
	if len([]rune(c.Replacement)) != 1 {
		return c, fmt.Errorf("replacement %q is not one character", c.Replacement)
	}
	switch {
	case c.Scheme == nil && c.AddPrefix != nil && !*c.AddPrefix:
		c.scheme = prependNever
	case c.Scheme == nil || *c.Scheme == "always":
	case *c.Scheme == "first":
		c.scheme = prependFirst
	case *c.Scheme == "never":
		c.scheme = prependNever
	default:
		return c, fmt.Errorf("prepend_scheme %q is not supported", *c.Scheme)
	}
	return c, nil
}

func (t *Tokenizer) readPostProcessor(data json.RawMessage) error {
	return each(data, "processors", 0, func(kind string, data json.RawMessage) error {
		var before, after []int32
		var err error
		switch kind {
		case "ByteLevel": // it changes offsets, not ids
		case "TemplateProcessing":
			before, after, err = readTemplate(data)
		case "BertProcessing", "RobertaProcessing":
			before, after, err = readClsSep(data)
		default:
			err = errUnsupported
		}
		if err != nil {
			return err
		}
		t.before, t.after = append(before, t.before...), append(t.after, after...)
		for _, ids := range [][]int32{before, after} {
			for _, id := range ids {
				if _, known := t.Token(id); !known {
					return fmt.Errorf("no token has id %d", id)
				}
			}
		}
		return nil
	})
}

// readTemplate returns the tokens that a template adds before and after a single
// sequence.
func readTemplate(data json.RawMessage) (before, after []int32, err error) {
	type piece struct{ ID string }
	var c struct {
		Single []struct {
			SpecialToken *piece
			Sequence     *piece
		} `json:"single"`
		SpecialTokens map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, nil, err
	}
	sequences := 0
	for _, p := range c.Single {
		switch {
		case p.Sequence != nil && p.Sequence.ID == "A":
			sequences++
		case p.SpecialToken != nil:
			token, ok := c.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return nil, nil, fmt.Errorf("special token %q is not in its list", p.SpecialToken.ID)
			}
			if sequences == 0 {
				before = append(before, token.IDs...)
			} else {
				after = append(after, token.IDs...)
			}
		default:
			return nil, nil, errors.New("single: an item is neither a special token nor sequence A")
		}
	}
	if sequences != 1 {
		return nil, nil, fmt.Errorf("single: sequence A occurs %d times but must occur once", sequences)
	}
	return before, after, nil
}

// readClsSep returns the tokens of BertProcessing and RobertaProcessing, which the
// file gives as pairs of text and id.
func readClsSep(data json.RawMessage) (before, after []int32, err error) {
	var c struct {
		Sep, Cls tokenPair
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, nil, err
	}
	return []int32{c.Cls.id}, []int32{c.Sep.id}, nil
}

type tokenPair struct{ id int32 }

func (p *tokenPair) UnmarshalJSON(data []byte) error {
	var text string
	pair := []any{&text, &p.id}
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a token and its id are %d values but must be 2", len(pair))
	}
	return nil
}
