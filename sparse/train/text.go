package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
)

// Text is what a language model learns from: tokens, the last tenth of which is
// held out. A running text is read in windows that begin anywhere, and the target
// of a token is the next one; one of AnswerText is sequences with targets of
// their own.
type Text struct {
	Learn, Held []int32
	Vocab       int    // ids are below it
	Tokenizer   []byte // tokenizer.json
	Name        string // for the card
	SHA256      string // of the tokens, and of targets of their own

	// Of AnswerText: tokens of a sequence, its targets that are not NoTarget, and
	// the targets of Learn and Held. Else 0 and nil.
	length, answers int
	learnt, asked   []int32
}

// NoTarget stands for the target of a token after which nothing is asked: it has
// no part in losses, gradients and accuracy.
const NoTarget = -1

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
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return nil, fmt.Errorf("%s: token %d is %d, and the vocabulary has %d", name, i, id, vocab)
		}
	}
	held := len(ids) / 10
	return &Text{Learn: ids[:len(ids)-held], Held: ids[len(ids)-held:], Vocab: vocab, Tokenizer: tokenizer, Name: name, SHA256: hashOf(ids)}, nil
}

// hashOf is the SHA-256 of numbers, four bytes each.
func hashOf(numbers ...[]int32) string {
	hash := sha256.New()
	var b [4]byte
	for _, some := range numbers {
		for _, v := range some {
			binary.LittleEndian.PutUint32(b[:], uint32(v))
			hash.Write(b[:])
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// AnswerText makes a text of sequences of length tokens below vocab, one after the
// other, for a task that asks at some tokens: targets has for each token what the
// model should name after it, which need not be the next token, or NoTarget. Every
// sequence must ask as often as the first, and at least once; then losses and
// accuracies are means over all that is asked. The last tenth of the sequences is
// held out, at least one. Training wants a context of length, and learns from
// sequences drawn by lot, whole ones. The slices are kept, not copied.
func AnswerText(name string, ids, targets []int32, length, vocab int, tokenizer []byte) (*Text, error) {
	if length < 2 || len(ids)%length != 0 || len(ids) < 2*length || len(targets) != len(ids) {
		return nil, fmt.Errorf("%s: %d tokens with %d targets are not two or more sequences of %d, two or more tokens each", name, len(ids), len(targets), length)
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
			return nil, fmt.Errorf("%s: sequence %d asks %d times, and the first %d times: want as often, and at least once", name, i/length, asked, text.answers)
		}
		asked = 0
	}
	split := len(ids) - max(1, len(ids)/length/10)*length
	text.length, text.SHA256 = length, hashOf(ids, targets)
	text.Learn, text.Held, text.learnt, text.asked = ids[:split], ids[split:], targets[:split], targets[split:]
	return text, nil
}

// Windows returns the held-out windows of n tokens, and for each the tokens
// that follow its own, views. They do not overlap. Of AnswerText: the sequences
// and their targets; n must be their length, or there are none.
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

// windows is a text as a source of sequences of n tokens.
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

// NewLM begins the training of a language model. Errors say what is wrong with
// the configuration or does not fit the text.
func NewLM(cfg Config, text *Text) (*Trainer, error) {
	cfg, err := cfg.withDefaults(true)
	if err != nil {
		return nil, err
	}
	w := windows{text, cfg.Context}
	if text.length > 0 && text.length != cfg.Context {
		return nil, fmt.Errorf("%s: a context of %d, and its sequences have %d tokens", text.Name, cfg.Context, text.length)
	}
	if w.heldOut() == 0 {
		return nil, fmt.Errorf("%s: the %d tokens that are held out, a tenth, are no window of %d: use more text or a shorter context", text.Name, len(text.Held), cfg.Context)
	}
	f := form{layers: cfg.Layers, dim: cfg.Dim, heads: cfg.Heads, n: cfg.Context, vocab: text.Vocab, answers: text.answers, eps: 1e-5}
	if f.size() > maxParams {
		return nil, fmt.Errorf("a network of %d parameters is larger than what is trained here, %d", f.size(), maxParams)
	}
	return begin(cfg, f, w), nil
}

// maxParams bounds a network, and with it memory.
const maxParams = 1 << 28
