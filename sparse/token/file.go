package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// file is the top level of a tokenizer.json without truncation and padding, which
// are ignored.
type file struct {
	Version       string          `json:"version"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	Model         json.RawMessage `json:"model"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
}

// maxID bounds the ids of a file, and so the size of its tables. The largest
// vocabularies in use have a quarter of a million tokens.
const maxID = 1 << 22

func parse(data []byte) (*Tokenizer, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("the file has more than %d bytes", MaxFile)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f.Version != "1.0" {
		return nil, fmt.Errorf("version: %q is not 1.0", f.Version)
	}
	sum := sha256.Sum256(data)
	t := &Tokenizer{texts: map[string]int32{}, sha: hex.EncodeToString(sum[:])}
	t.encoders.New = func() any {
		return &encoder{t: t, class: classes(), mix: make([][]byte, len(t.splitters))}
	}
	for _, station := range []struct {
		name string
		data json.RawMessage
		read func(json.RawMessage) error
	}{
		{"normalizer", f.Normalizer, t.readNormalizer},
		{"pre_tokenizer", f.PreTokenizer, t.readPreTokenizer},
		{"model", f.Model, t.readModel},
		{"decoder", f.Decoder, t.readDecoder},
	} {
		if err := station.read(station.data); err != nil {
			return nil, fmt.Errorf("%s: %w", station.name, err)
		}
	}
	if err := t.setAdded(f.AddedTokens); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	t.index()
	if err := t.readPostProcessor(f.PostProcessor); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	return t, nil
}

// A component is any part of the file that has a type.
type component struct {
	Type string `json:"type"`
}

// absent reports whether a component is null or missing.
func absent(data json.RawMessage) bool {
	return len(data) == 0 || bytes.Equal(data, []byte("null"))
}

func componentType(data json.RawMessage) (string, error) {
	var c component
	if err := json.Unmarshal(data, &c); err != nil {
		return "", err
	}
	if c.Type == "" {
		return "", errors.New("the component has no type")
	}
	return c.Type, nil
}

var errUnsupported = errors.New("it is not supported")

// each calls read with data, or, if data is a Sequence, with every component of
// the list under key. An absent component is no error. Errors name the types of
// the enclosing components.
func each(data json.RawMessage, key string, depth int, read func(kind string, data json.RawMessage) error) error {
	if absent(data) {
		return nil
	}
	kind, err := componentType(data)
	if err != nil {
		return err
	}
	if kind == "Sequence" {
		err = eachOf(data, key, depth, read)
	} else {
		err = read(kind, data)
	}
	if err != nil {
		return fmt.Errorf("type %q: %w", kind, err)
	}
	return nil
}

func eachOf(data json.RawMessage, key string, depth int, read func(kind string, data json.RawMessage) error) error {
	if depth == maxDepth {
		return fmt.Errorf("sequences are nested more than %d deep", maxDepth)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(parts[key], &list); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	for _, part := range list {
		if err := each(part, key, depth+1, read); err != nil {
			return err
		}
	}
	return nil
}

const maxDepth = 8

// setAdded makes the sets of added tokens for the raw and for the normalized text.
func (t *Tokenizer) setAdded(added []addedToken) error {
	if err := t.checkAdded(added); err != nil {
		return err
	}
	var raw, normalized []addedToken
	for _, special := range []bool{true, false} { // special tokens win over others with an equal pattern
		for _, a := range added {
			if a.Special != special {
				continue
			}
			a.pattern = []byte(a.Content)
			if !a.Normalized {
				raw = append(raw, a)
				continue
			}
			for i := range t.normalizers {
				a.pattern = t.normalizers[i].append(nil, a.pattern, classes(), new(decomposer))
			}
			if len(a.pattern) == 0 {
				return fmt.Errorf("%q: the normalized token is empty", a.Content)
			}
			normalized = append(normalized, a)
			if t.respelled == nil {
				t.respelled = map[int32]string{}
			}
			t.respelled[a.ID] = string(a.pattern)
		}
	}
	t.raw, t.normalized = newAddedSet(raw), newAddedSet(normalized)
	return nil
}

// checkAdded adds the added tokens to t.texts. The reference ignores their ids in
// the file: a token of the model's vocabulary keeps its id there, and the other
// tokens are numbered from the size of the vocabulary on. checkAdded returns an
// error for a file with other ids, which the reference would read differently.
func (t *Tokenizer) checkAdded(added []addedToken) error {
	taken := make(map[int32]bool, len(t.texts))
	for _, id := range t.texts {
		taken[id] = true
	}
	next := int32(len(t.texts))
	seen := make(map[string]bool, len(added))
	for _, a := range added {
		id, known := t.texts[a.Content]
		switch {
		case a.Content == "":
			return errors.New("a token has no content")
		case seen[a.Content]:
			return fmt.Errorf("%q: the token is listed twice", a.Content)
		case known && id != a.ID:
			return fmt.Errorf("%q: the id is %d, but %d in the vocabulary", a.Content, a.ID, id)
		case !known && a.ID != next:
			return fmt.Errorf("%q: the id is %d, but the next id after the vocabulary is %d", a.Content, a.ID, next)
		case !known && taken[a.ID]:
			return fmt.Errorf("%q: id %d belongs to another token", a.Content, a.ID)
		case a.ID >= maxID:
			return fmt.Errorf("%q: id %d is not below %d", a.Content, a.ID, maxID)
		}
		seen[a.Content], taken[a.ID], t.texts[a.Content] = true, true, a.ID
		next = max(next, a.ID+1)
	}
	return nil
}

// index makes the tables that are indexed by id.
func (t *Tokenizer) index() {
	size := int32(0)
	for _, id := range t.texts {
		size = max(size, id+1)
	}
	t.tokens, t.known, t.special = make([]string, size), make([]bool, size), make([]bool, size)
	for text, id := range t.texts {
		t.tokens[id], t.known[id] = text, true
	}
	for _, set := range []*addedSet{&t.raw, &t.normalized} {
		for _, a := range set.tokens {
			t.tokens[a.ID], t.special[a.ID] = a.Content, a.Special
		}
	}
}
