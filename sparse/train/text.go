package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
)

// Text is the training data of a language model: tokens, of which the last tenth
// is held out. A running text (ByteText, TokenText) is read in windows that begin
// anywhere, and the target of a token is the next token. A text of AnswerText
// consists of sequences with explicit targets.
type Text struct {
	Learn, Held []int32
	Vocab       int    // size of the vocabulary: ids are 0 to Vocab-1
	Tokenizer   []byte // contents of tokenizer.json; nil if there is none
	Name        string // name of the data, for the card
	SHA256      string // hash of the tokens and of explicit targets, in hexadecimal

	// Set by AnswerText alone: length is the tokens of a sequence, answers the
	// number of its targets other than NoTarget, learnt and asked are the targets
	// of Learn and Held.
	length, answers int
	learnt, asked   []int32
}

// NoTarget is the target of a token after which nothing is asked. Losses,
// gradients and accuracy ignore it.
const NoTarget = -1

// Bytes is the size of the vocabulary of ByteTokenizer: a token for every byte,
// and EndOfText.
const Bytes = 257

// EndOfText is the token that ends a text of bytes.
const EndOfText = 256

// ByteText returns a text whose tokens are the bytes of the documents. If there
// are several documents, EndOfText follows each. Fewer than 20 tokens are an error.
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

// TokenText returns a text of ids, which must be 0 to vocab-1. tokenizer is the
// contents of a tokenizer.json, or nil. Fewer than 20 tokens are an error. The
// Text keeps ids and tokenizer.
func TokenText(name string, ids []int32, vocab int, tokenizer []byte) (*Text, error) {
	const least = 20
	if len(ids) < least {
		return nil, fmt.Errorf("%s: %d tokens are too few to learn from", name, len(ids))
	}
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return nil, fmt.Errorf("%s: token %d is %d, and the vocabulary has %d", name, i, id, vocab)
		}
	}
	split := len(ids) - len(ids)/10
	return &Text{
		Learn: ids[:split], Held: ids[split:], Vocab: vocab,
		Tokenizer: tokenizer, Name: name, SHA256: hashOf(ids),
	}, nil
}

// hashOf returns the SHA-256 of numbers, as four bytes each, little-endian.
func hashOf(numbers ...[]int32) string {
	hash := sha256.New()
	var bytes [4]byte
	for _, list := range numbers {
		for _, v := range list {
			binary.LittleEndian.PutUint32(bytes[:], uint32(v))
			hash.Write(bytes[:])
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// AnswerText returns a text for a task that asks after some tokens. ids holds
// sequences of length tokens, one after the other, each token 0 to vocab-1.
// targets holds for each token the token that the model should predict after it,
// which need not be the next token, or NoTarget. Every sequence must have the same
// number of targets, at least one, so that losses and accuracies are means over all
// targets. The last tenth of the sequences, and at least one, is held out. Training
// requires Config.Context = length and learns from whole sequences, drawn at
// random. The Text keeps the slices.
func AnswerText(name string, ids, targets []int32, length, vocab int, tokenizer []byte) (*Text, error) {
	if length < 2 || len(ids)%length != 0 || len(ids) < 2*length || len(targets) != len(ids) {
		return nil, fmt.Errorf("%s: %d tokens with %d targets are not two or more sequences of %d, two or more "+
			"tokens each",
			name, len(ids), len(targets), length)
	}
	text, err := TokenText(name, ids, vocab, tokenizer)
	if err != nil {
		return nil, err
	}
	asked := 0
	for i, target := range targets {
		if target < NoTarget || int(target) >= vocab {
			return nil, fmt.Errorf("%s: target %d is %d, and the vocabulary has %d", name, i, target, vocab)
		}
		if target != NoTarget {
			asked++
		}
		if (i+1)%length != 0 {
			continue
		}
		if text.answers == 0 {
			text.answers = asked
		}
		if asked == 0 || asked != text.answers {
			return nil, fmt.Errorf("%s: sequence %d asks %d times, and the first %d times: each must ask equally "+
				"often, at least once",
				name, i/length, asked, text.answers)
		}
		asked = 0
	}
	split := len(ids) - max(1, len(ids)/length/10)*length
	text.length, text.SHA256 = length, hashOf(ids, targets)
	text.Learn, text.Held, text.learnt, text.asked = ids[:split], ids[split:], targets[:split], targets[split:]
	return text, nil
}

// Windows returns the held-out windows of n tokens, which do not overlap, and the
// targets of each. For a text of AnswerText these are the held-out sequences; if n
// is not their length, Windows returns none. The results are views of t.
func (t *Text) Windows(n int) (ids, next [][]int32) {
	if t.length > 0 {
		for lo := 0; n == t.length && lo < len(t.Held); lo += n {
			ids, next = append(ids, t.Held[lo:lo+n]), append(next, t.asked[lo:lo+n])
		}
		return ids, next
	}
	for lo := 0; lo+n+1 <= len(t.Held); lo += n {
		ids, next = append(ids, t.Held[lo:lo+n]), append(next, t.Held[lo+1:lo+n+1])
	}
	return ids, next
}

// windows is a source of sequences of n tokens from a text.
type windows struct {
	text *Text
	n    int
}

func (w windows) batch(p *pass, seed uint64, step, first int) {
	for s := range p.seqs {
		r := rand.New(rand.NewPCG(seed, uint64(step+1)<<20+uint64(first+s)))
		if w.text.length > 0 {
			at := r.IntN(len(w.text.Learn)/w.n) * w.n
			w.fill(p, s, w.text.Learn[at:], w.text.learnt[at:])
			continue
		}
		at := r.IntN(len(w.text.Learn) - w.n)
		w.fill(p, s, w.text.Learn[at:], w.text.Learn[at+1:])
	}
}

func (w windows) held(p *pass, i, number int) {
	at := number * w.n
	if w.text.length > 0 {
		w.fill(p, i, w.text.Held[at:], w.text.asked[at:])
		return
	}
	w.fill(p, i, w.text.Held[at:], w.text.Held[at+1:])
}

func (w windows) fill(p *pass, s int, ids, targets []int32) {
	copy(p.ids[s*w.n:(s+1)*w.n], ids)
	copy(p.next[s*w.n:(s+1)*w.n], targets)
}

func (w windows) heldOut() int {
	if w.text.length > 0 {
		return len(w.text.Held) / w.n
	}
	return max(0, (len(w.text.Held)-1)/w.n)
}

// NewLM starts the training of a language model. It returns an error if a setting
// is out of range or does not fit the text. The Trainer keeps text.
func NewLM(cfg Config, text *Text) (*Trainer, error) {
	cfg, err := cfg.withDefaults(ofText)
	if err != nil {
		return nil, err
	}
	if cfg.Adversarial > 0 {
		return nil, fmt.Errorf("%s: adversarial is for images, not for text", text.Name)
	}
	w := windows{text, cfg.Context}
	if text.length > 0 && text.length != cfg.Context {
		return nil, fmt.Errorf("%s: context is %d but must be %d, the length of the sequences",
			text.Name, cfg.Context, text.length)
	}
	if w.heldOut() == 0 {
		return nil, fmt.Errorf("%s: the held-out tenth has %d tokens and no window of %d: use more text or a "+
			"shorter context",
			text.Name, len(text.Held), cfg.Context)
	}
	f := form{
		layers: cfg.Layers, dim: cfg.Dim, heads: cfg.Heads, n: cfg.Context,
		vocab: text.Vocab, answers: text.answers, eps: 1e-5,
	}
	if f.size() > maxParams {
		return nil, fmt.Errorf("the network has %d parameters, more than %d", f.size(), maxParams)
	}
	return begin(cfg, f, w), nil
}

// maxParams bounds the parameters of a network, and so the memory of a training.
const maxParams = 1 << 28
