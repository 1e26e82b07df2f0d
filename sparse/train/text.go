package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
)

// Text is what a language model learns from: tokens, the last tenth of which is
// held out.
type Text struct {
	Learn, Held []int32
	Vocab       int    // ids are below it
	Tokenizer   []byte // tokenizer.json
	Name        string // for the card
	SHA256      string // of the tokens
}

// Bytes is the size of the vocabulary of ByteTokenizer: a token for every byte,
// and the end of a text.
const Bytes = 257

// EndOfText is the token that ends a text of bytes.
const EndOfText = 256

// ByteText makes a text of documents whose tokens are their bytes, each ended
// by EndOfText if there are several.
func ByteText(name string, documents ...[]byte) (*Text, error) {
	var ids []int32
	for _, d := range documents {
		for _, b := range d {
			ids = append(ids, int32(b))
		}
		if len(documents) > 1 {
			ids = append(ids, EndOfText)
		}
	}
	return TokenText(name, ids, Bytes, ByteTokenizer())
}

// TokenText makes a text of tokens below vocab.
func TokenText(name string, ids []int32, vocab int, tokenizer []byte) (*Text, error) {
	const least = 20
	if len(ids) < least {
		return nil, fmt.Errorf("%s: %d tokens are too few to learn from", name, len(ids))
	}
	hash := sha256.New()
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return nil, fmt.Errorf("%s: token %d is %d, and the vocabulary has %d", name, i, id, vocab)
		}
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		hash.Write(b[:])
	}
	held := len(ids) / 10
	return &Text{Learn: ids[:len(ids)-held], Held: ids[len(ids)-held:], Vocab: vocab, Tokenizer: tokenizer, Name: name, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}

// Windows returns the held-out windows of n tokens, and for each the tokens
// that follow its own, views. They do not overlap.
func (t *Text) Windows(n int) (ids, next [][]int32) {
	for lo := 0; lo+n+1 <= len(t.Held); lo += n {
		ids, next = append(ids, t.Held[lo:lo+n]), append(next, t.Held[lo+1:lo+n+1])
	}
	return ids, next
}

// windows is a text as a source of sequences of n tokens.
type windows struct {
	text *Text
	n    int
}

func (w windows) batch(p *pass, seed uint64, step, first int) {
	for s := range p.seqs {
		r := rand.New(rand.NewPCG(seed, uint64(step+1)<<20+uint64(first+s)))
		at := r.IntN(len(w.text.Learn) - w.n)
		w.fill(p, s, w.text.Learn[at:])
	}
}

func (w windows) held(p *pass, i, number int) { w.fill(p, i, w.text.Held[number*w.n:]) }

func (w windows) fill(p *pass, s int, ids []int32) {
	copy(p.ids[s*w.n:(s+1)*w.n], ids)
	copy(p.next[s*w.n:(s+1)*w.n], ids[1:])
}

func (w windows) heldOut() int { return max(0, (len(w.text.Held)-1)/w.n) }

// NewLM begins the training of a language model. Errors say what is wrong with
// the configuration or does not fit the text.
func NewLM(cfg Config, text *Text) (*Trainer, error) {
	cfg, err := cfg.withDefaults(true)
	if err != nil {
		return nil, err
	}
	w := windows{text, cfg.Context}
	if w.heldOut() == 0 {
		return nil, fmt.Errorf("%s: the %d tokens that are held out, a tenth, are no window of %d: use more text or a shorter context", text.Name, len(text.Held), cfg.Context)
	}
	f := form{layers: cfg.Layers, dim: cfg.Dim, heads: cfg.Heads, n: cfg.Context, vocab: text.Vocab, eps: 1e-5}
	if f.size() > maxParams {
		return nil, fmt.Errorf("a network of %d parameters is larger than what is trained here, %d", f.size(), maxParams)
	}
	return begin(cfg, f, w), nil
}

// maxParams bounds a network, and with it memory.
const maxParams = 1 << 28
