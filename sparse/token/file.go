package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// file is tokenizer.json; truncation and padding are not read.
type file struct {
	Version       string          `json:"version"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	Model         json.RawMessage `json:"model"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
}

// maxID bounds the ids of a file, which tables are made for; the largest
// vocabularies in use have a quarter of a million tokens.
const maxID = 1 << 22

func parse(data []byte) (*Tokenizer, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("more than %d bytes", MaxFile)
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
	t.encoders.New = func() any { return &encoder{t: t, class: classes(), mix: make([][]byte, len(t.splitters))} }
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

// absent says whether a component is null or not in the file.
func absent(data json.RawMessage) bool {
	return len(data) == 0 || bytes.Equal(data, []byte("null"))
}

func componentType(data json.RawMessage) (string, error) {
	var c component
	if err := json.Unmarshal(data, &c); err != nil {
		return "", err
	}
	if c.Type == "" {
		return "", errors.New("no type")
	}
	return c.Type, nil
}

var errUnsupported = errors.New("not supported")

// each calls read with every component of a Sequence, or with the one that
// data is; key names the list. Errors name the types on the way.
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
		return fmt.Errorf("more than %d sequences inside each other", maxDepth)
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

// setAdded gives the added tokens their places.
func (t *Tokenizer) setAdded(added []addedToken) error {
	if err := t.checkAdded(added); err != nil {
		return err
	}
	var raw, normalized []addedToken
	for _, special := range []bool{true, false} { // special ones win over their equals
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
				return fmt.Errorf("%q: nothing is left of it when normalized", a.Content)
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

// checkAdded enters the added tokens among the others. The reference overlooks
// their ids: a token of the model's keeps the model's, and the others count on
// from the size of the vocabulary. A file that says otherwise would mean one
// thing here and another there, and is refused.
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
			return errors.New("a token without content")
		case seen[a.Content]:
			return fmt.Errorf("%q: twice", a.Content)
		case known && id != a.ID:
			return fmt.Errorf("%q: id %d, but the vocabulary says %d", a.Content, a.ID, id)
		case !known && a.ID != next:
			return fmt.Errorf("%q: id %d, but counting on from the vocabulary gives %d", a.Content, a.ID, next)
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

// index makes the tables from id to token.
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
