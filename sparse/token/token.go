// Package token converts text to the token ids of a Hugging Face model, and ids
// to text, by the model's own tokenizer.json.
//
// It is not a port of the reference, the Python package tokenizers: it reads the
// components of the model families that this project serves. These are WordPiece
// (BERT); byte-level byte pair encoding (GPT-2, LLaMA-3, Qwen2 with NFC, SmolLM
// with Digits, o200k, and a bare alphabet of 256 bytes); and byte pair encoding
// over characters with byte fallback (LLaMA-2). Any other component gives an error
// that names the component and its type. Truncation and padding are left to the
// caller. For files that it reads, ids equal the ids of the reference; the tests
// of this package compare the two, and unicode.go lists where they use different
// versions of Unicode.
//
// Words, in the order in which text passes the stations:
//
//	added tokens    are cut out of the raw text, then out of the normalized text
//	normalizer      cleans, decomposes, lowers the case, replaces
//	pre-tokenizer   cuts text into words, which no token crosses
//	model           cuts a word into tokens
//	post-processor  adds the special tokens around a sequence
//
// Sources: WordPiece by Schuster and Nakajima (2012) and Wu et al. (arXiv
// 1609.08144); byte pair encoding for text by Sennrich, Haddow and Birch (2016);
// its byte-level form by Radford et al. (GPT-2, 2019).
package token

import (
	"fmt"
	"path/filepath"
	"sync"

	"entropipe/models/plainfile"
)

// MaxFile is the size in bytes of the largest tokenizer.json that Open and Parse
// accept. The largest files in use have about 35 MB.
const MaxFile = 256 << 20

// Tokenizer is the contents of one tokenizer.json. It is immutable and safe for
// concurrent use.
type Tokenizer struct {
	raw, normalized addedSet
	normalizers     []normalizer
	splitters       []splitter
	model           model
	before, after   []int32 // special tokens of the post-processor
	decoders        []decoder

	texts   map[string]int32 // id of each token, by its spelling in the file
	tokens  []string         // [id] spelling in the file
	special []bool           // [id] true for a special added token
	known   []bool           // [id] true if a token has the id

	respelled map[int32]string // normalized spelling of added tokens that are matched in normalized text, by id

	trained int // tokens of the model's own vocabulary
	sha     string

	encoders sync.Pool // holds *encoder
}

// Open reads the tokenizer.json of a Hugging Face directory. An error names the
// file and the component that is malformed, contradictory or not supported.
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

// OpenWithin is Open for a model with most rows of embeddings. If the file has an
// id of most or more, it returns a *TooManyError before it allocates tables.
func OpenWithin(dir string, most int) (*Tokenizer, error) {
	if err := checkIDs(filepath.Join(dir, "tokenizer.json"), most); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return Open(dir)
}

// Parse reads the contents of a tokenizer.json. An error names the component that
// is malformed, contradictory or not supported. The Tokenizer keeps no reference
// to data.
func Parse(data []byte) (*Tokenizer, error) {
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// Encode appends the ids of text to dst, including the special tokens of the
// post-processor, and returns dst. An empty text has the special tokens alone.
// Encode neither truncates nor pads. Text that spells a special token gives that
// token, as in the reference. Bytes that are not UTF-8 count as U+FFFD, one for
// every maximal part of a broken sequence, as in Python's
// bytes.decode("utf-8", "replace").
//
// Cost: O(n log n) in the length of any text, with the longest token as a factor,
// and no allocation apart from dst once buffers have grown. Neither bound holds
// for a file whose Split pattern is not the pattern of GPT-2, LLaMA-3, Qwen2,
// o200k or tekken, because a backtracking engine searches for other patterns.
// Parse refuses patterns that can take exponential time. If a match still takes
// ten seconds, the search ends, and the rest of the text is one word.
func (t *Tokenizer) Encode(dst []int32, text string) []int32 {
	return append(t.EncodePart(append(dst, t.before...), text), t.after...)
}

// EncodePart is Encode without the special tokens of the post-processor, for a
// part of a longer sequence. Special tokens that the text spells are kept.
func (t *Tokenizer) EncodePart(dst []int32, text string) []int32 {
	e := t.encoders.Get().(*encoder)
	e.dst = dst
	e.encode(text)
	dst, e.dst = e.dst, nil
	t.encoders.Put(e)
	return dst
}

// Around returns the special tokens that Encode adds before and after every text.
// The slices belong to the Tokenizer: do not change them.
func (t *Tokenizer) Around() (before, after []int32) { return t.before, t.after }

// Vocab returns 1 + the largest id: every id of Encode is below it.
func (t *Tokenizer) Vocab() int { return len(t.tokens) }

// Trained returns the number of tokens of the model's own vocabulary, without
// added tokens: vocab_size in the reference.
func (t *Tokenizer) Trained() int { return t.trained }

// SHA256 returns the hash of the tokenizer.json, in lower-case hexadecimal.
func (t *Tokenizer) SHA256() string { return t.sha }

// ID returns the id of the token with this spelling in the file ("##ing", "Ġthe",
// "[SEP]"), or false if there is none.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.texts[token]
	return id, ok
}

// Token returns the spelling of a token in the file, or false if no token has the
// id.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(t.tokens) || !t.known[id] {
		return "", false
	}
	return t.tokens[id], true
}
