// Package token turns text into the token ids of a Hugging Face model and ids
// back into text, from the model's own tokenizer.json.
//
// It reads what the model families served here use: WordPiece (BERT), byte-level
// byte pair encoding (GPT-2, LLaMA-3, Qwen2 with its NFC, SmolLM with its digits, o200k,
// and a bare alphabet of 256 bytes), and byte pair encoding over characters with byte fallback
// (LLaMA-2). Every other component is one error that names the component and its
// type. Ids are meant to equal those of the reference, the Python package
// tokenizers, id for id; the tests beside this package say how that is checked,
// and unicode.go where the two read different versions of Unicode.
//
// Text passes five stations, in the file's own words:
//
//	added tokens    cut out of the text as it is, then out of the normalized text
//	normalizer      cleaning, decomposition, lower case, replacements
//	pre-tokenizer   cuts text into words, which no token crosses
//	model           cuts a word into tokens
//	post-processor  sets the special tokens around a sequence
//
// Truncation and padding, which some files ask for, are left to the caller.
//
// WordPiece is of Schuster and Nakajima (2012) and Wu et al. (arXiv
// 1609.08144), byte pair encoding for text of Sennrich, Haddow and Birch (2016),
// its byte-level form of Radford et al. (GPT-2, 2019).
package token

import (
	"fmt"
	"path/filepath"
	"sync"

	"entropipe/models/plainfile"
)

// MaxFile is the largest tokenizer.json that is read: the largest in use are
// some 35 MB.
const MaxFile = 256 << 20

// Tokenizer is one tokenizer.json. It is immutable and safe for concurrent use.
type Tokenizer struct {
	raw, normalized addedSet
	normalizers     []normalizer
	splitters       []splitter
	model           model
	before, after   []int32 // of the post-processor
	decoders        []decoder

	texts   map[string]int32 // token as in the file -> id
	tokens  []string         // id -> token as in the file
	special []bool           // id -> a special added token
	known   []bool           // id -> some token has it

	respelled map[int32]string // id -> an added token that is looked for in normalized text, as it stands there

	trained int // tokens of the model's own vocabulary
	sha     string

	encoders sync.Pool // of *encoder
}

// Open reads the tokenizer.json of a Hugging Face directory.
func Open(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, "tokenizer.json")
	data, err := plainfile.Read(path, MaxFile)
	if err != nil {
		return nil, err
	}
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// OpenWithin is Open for a model with so many embeddings: a *TooManyError says
// that the file has an id beyond them, before memory is taken for its tables.
func OpenWithin(dir string, most int) (*Tokenizer, error) {
	if err := checkIDs(filepath.Join(dir, "tokenizer.json"), most); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return Open(dir)
}

// Parse reads the bytes of a tokenizer.json. An error names the component that
// is malformed, contradictory or not supported. data is not kept.
func Parse(data []byte) (*Tokenizer, error) {
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// Encode appends the ids of text to dst, among them the special tokens that the
// post-processor sets, and returns dst: for an empty text only those. Nothing is
// truncated and nothing padded. Text that spells a special token yields that
// token, as in the reference. Bytes that are no UTF-8 count as U+FFFD, one for
// every maximal part of a broken sequence: what Python's
// bytes.decode("utf-8", "replace") hands to the reference.
//
// Time is O(n log n) in the length of the text whatever it holds, with the
// longest token as a factor, and apart from dst nothing is allocated once
// buffers have grown. Neither holds for a file whose Split pattern is not that
// of GPT-2, LLaMA-3, Qwen2, o200k or tekken: a machine that goes back and tries again searches
// for it. Patterns that could cost it exponential time are refused by Parse; a
// match that takes ten seconds all the same ends the search, and the rest of the
// text is one word.
func (t *Tokenizer) Encode(dst []int32, text string) []int32 {
	return append(t.EncodePart(append(dst, t.before...), text), t.after...)
}

// EncodePart is Encode without the special tokens that the post-processor sets
// around a sequence: for a part of a longer one. Special tokens that the text
// spells are there.
func (t *Tokenizer) EncodePart(dst []int32, text string) []int32 {
	e := t.encoders.Get().(*encoder)
	e.dst = dst
	e.encode(text)
	dst, e.dst = e.dst, nil
	t.encoders.Put(e)
	return dst
}

// Around returns the special tokens that Encode sets before every text and behind
// it. They are not to be changed.
func (t *Tokenizer) Around() (before, after []int32) { return t.before, t.after }

// Vocab returns one more than the largest id: every id of Encode is below it.
func (t *Tokenizer) Vocab() int { return len(t.tokens) }

// Trained returns the number of tokens of the model's own vocabulary, without
// those that were added to it: what the reference calls vocab_size.
func (t *Tokenizer) Trained() int { return t.trained }

// SHA256 returns the hash of the tokenizer.json, in lower-case hexadecimal.
func (t *Tokenizer) SHA256() string { return t.sha }

// ID returns the id of a token spelled as in the file ("##ing", "Ġthe",
// "[SEP]"), or false when no token is spelled so.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.texts[token]
	return id, ok
}

// Token returns a token as the file spells it, or false for an id that no token
// has.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(t.tokens) || !t.known[id] {
		return "", false
	}
	return t.tokens[id], true
}
