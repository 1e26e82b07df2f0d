package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/schemas"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/sched"
	"entropipe/sparse/token"
)

// Task names the output that the model computes for a sequence.
type Task string

const (
	Embed    Task = "embed"    // one vector, pooled from the last hidden states
	Logits   Task = "logits"   // the likeliest next tokens
	Generate Task = "generate" // the tokens that follow, chosen greedily
)

// TokenConfig configures the processing of sequences. All workers share its
// pointers; model, tokenizer and masks never change. Metrics and Totals are
// required.
type TokenConfig struct {
	Model     *model.Model     // nil: sequences become rejects
	Name      string           // the model's name in table tokens
	Tokenizer *token.Tokenizer // nil: texts become rejects

	Task    Task       // a task that the model can do
	Pooling hf.Pooling // for Embed
	TopK    int        // tokens that Logits returns, at least 1
	MaxNew  int        // tokens that Generate returns, at least 1

	// returns the blocks that a sequence of n tokens reads; nil: all blocks
	Plan   func(n int) *plan.Plan
	Route  func(layer, sequence int, j *kern.Job) // gives jobs layouts that depend on their keys; may be nil
	Attend func(jobs []kern.Job, workers int)     // computes attention, but for Generate; nil: package kern
	Audit  int64                                  // one sequence in Audit is compared with dense attention; 0: none
	// Ladder lets rows of an encoder read more blocks than their masks have; nil: no
	// row does. It cannot be used with Attend.
	Ladder *kern.Ladder

	Truncate bool // cut a sequence that is longer than the model's positions, instead of refusing it
	CutLeft  bool // cut the beginning of a sequence, instead of its end
	Longest  int  // cut sequences to Longest tokens, even if the model has more positions; 0: no bound

	Budget   int   // tokens of a batch
	Threads  int   // cores for one batch
	MaxBytes int64 // memory of one decoded message

	Metrics *metrics.Metrics
	Totals  *BatchTotals
	// OnPanic, if not nil, is called in the worker with the value and the stack of a
	// panic.
	OnPanic func(key schemas.FrameKey, what any, stack []byte)
	// Tap, if not nil, is offered the sequences that somebody watches.
	Tap *live.Tap
}

// BatchTotals are totals of all workers since the start. Any goroutine may read
// them.
type BatchTotals struct {
	Batches, Tokens, Padding atomic.Int64 // batches, their tokens with padding, and padding alone
	Room                     atomic.Int64 // Σ max(tokens of a batch, budget)
	Rows, Extended, Dense    atomic.Int64 // a ladder's rows; the rows that read further blocks, and all keys
	Unverified               atomic.Int64 // id sequences whose tokenizer could not be compared with the model's
}

// Fill returns Tokens/Room, the share of the token budgets that batches used.
func (b *BatchTotals) Fill() float64 {
	return float64(b.Tokens.Load()) / float64(max(b.Room.Load(), 1))
}

// count counts a batch of that many tokens, padding included.
func (b *BatchTotals) count(tokens, padding, budget int) {
	b.Batches.Add(1)
	b.Tokens.Add(int64(tokens))
	b.Padding.Add(int64(padding))
	b.Room.Add(int64(max(tokens, budget)))
}

// climbed adds the rungs of one sequence's rows.
func (b *BatchTotals) climbed(r kern.Rungs) {
	b.Rows.Add(int64(r.Rows))
	b.Extended.Add(int64(r.Extended))
	b.Dense.Add(int64(r.Dense))
}

// Outcome holds the results and rejects of one message, each in order of their
// index.
type Outcome struct {
	Results []schemas.Result
	Rejects []schemas.Reject
}

// Tokens turns messages of sequences into results: decode, tokenise, check,
// pack into batches, run the model. Each worker has its own Tokens, since a Tokens
// owns scratch memory and is not for concurrent use.
//
// A row has the same bits whatever else its batch holds. A sequence that cannot be
// used becomes a reject of its own, even if it makes the model panic.
type Tokens struct {
	cfg     TokenConfig
	decoder schemas.Decoder
	packer  sched.Packer
	session *model.Session // made for the first batch: a run of clouds alone needs none
	opening []int32        // tokens that begin every text, truncated or not
	closing []int32        // tokens that end every text, truncated or not
	most    int            // a message with more rows is large; 0: no message is

	msgs  []part
	items []item
	ids   []int32 // the tokens of all items, one after the other
	batch model.Batch
	rows  rows
	audit audit
}

// item is one sequence under way.
type item struct {
	schemas.FrameKey
	id        string
	tokenizer string // SHA-256 of the tokenizer that made the ids; empty if unknown
	trusted   bool   // the tokenizer could not be compared with the model's
	message   int    // index of the item's message in Tokens.msgs
	from, to  int    // the item's tokens are Tokens.ids[from:to]
	truncated bool
	plan      string // sparse, dense or none, as metrics.Planned counts it
	rungs     kern.Rungs
	err       *schemas.FormatError
	result    *schemas.TokenResult
}

func (it *item) tokens() int { return it.to - it.from }

// NewTokens returns a Tokens with the configuration cfg. It allocates no session of
// the model before the first sequence.
func NewTokens(cfg TokenConfig) *Tokens {
	t := &Tokens{cfg: cfg, decoder: schemas.Decoder{MaxBytes: cfg.MaxBytes}, packer: sched.Packer{Budget: cfg.Budget}}
	if cfg.Tokenizer != nil {
		t.opening, t.closing = cfg.Tokenizer.Around()
	}
	return t
}

// room returns the bytes of messages that fill a batch, 4·Budget: an id takes four
// bytes in a message, and a token of a text about as many.
func (t *Tokens) room() int {
	if t.cfg.Model == nil {
		return 0
	}
	return 4 * t.cfg.Budget
}

// Process returns the outcome of every message, in their order. Results and rejects
// own their memory.
func (t *Tokens) Process(msgs []schemas.Message) []Outcome {
	parts := make([]part, len(msgs))
	for i, m := range msgs {
		parts[i].Message = m
	}
	return t.process(parts)
}

// process is Process for parts of messages. The outcome of a whole message that is
// large is empty; process only sets its number of rows.
func (t *Tokens) process(parts []part) []Outcome {
	t.msgs, t.items, t.ids = parts, t.items[:0], t.ids[:0]
	out := make([]Outcome, len(parts))
	for i := range parts {
		rows, err := t.read(i)
		switch {
		case err != nil:
			out[i].Rejects = []schemas.Reject{schemas.NewReject(&parts[i].Message, err)}
		case rows < 0:
			parts[i].rows = -rows
		default:
			out[i].Results = make([]schemas.Result, 0, rows)
		}
	}
	t.infer()
	for i := range t.items {
		it := &t.items[i]
		m, o := &parts[it.message].Message, &out[it.message]
		if it.err != nil {
			o.Rejects = refuse(o.Rejects, m, it.Index, it.err)
			continue
		}
		t.cfg.Metrics.Planned(it.Topic, it.plan)
		if it.trusted {
			t.cfg.Metrics.Unverified(it.Topic)
			t.cfg.Totals.Unverified.Add(1)
		}
		if t.cfg.Ladder != nil {
			r := it.rungs
			t.cfg.Metrics.Climbed(it.Topic, r.Rows-r.Extended-r.Dense, r.Extended, r.Dense)
			t.cfg.Totals.climbed(r)
		}
		o.Results = append(o.Results, schemas.Result{FrameKey: it.FrameKey, Tokens: it.result})
		if t.cfg.Tap.Wants(&it.FrameKey) {
			t.show(m, it)
		}
	}
	clear(t.items) // a reference would keep the results' memory
	t.msgs = nil
	return out
}

// read decodes message i and appends its sequences to the items. It returns their
// number, or, if the message is large, -rows and appends none. An error refuses the
// whole message.
func (t *Tokens) read(i int) (rows int, err error) {
	m := &t.msgs[i]
	if t.cfg.Model == nil {
		return 0, modelErr(schemas.ReasonNoModel,
			"the message holds sequences, but no model is loaded; name one with --lm")
	}
	from, to := m.from, m.to
	if m.whole() {
		from, to = 0, cmp.Or(t.most, math.MaxInt)
	}
	sequences, rows, err := t.decoder.SequencesOf(m.Message, from, to)
	if err != nil {
		return 0, err
	}
	made := t.decoder.Vocabulary()
	if err := t.checkVocabulary(made); err != nil {
		return 0, err
	}
	if m.whole() && rows > len(sequences) {
		return -rows, nil
	}
	for k := range sequences {
		s := &sequences[k]
		it := item{FrameKey: s.FrameKey, id: s.ID, message: i, from: len(t.ids), err: s.Err}
		it.tokenizer, it.trusted = t.madeBy(s, made)
		if it.err == nil {
			it.err = t.take(&it, s)
		}
		if it.err != nil {
			t.ids = t.ids[:it.from]
		}
		it.to = len(t.ids)
		t.items = append(t.items, it)
	}
	return len(sequences), nil
}

// checkVocabulary refuses a message whose ids come from another tokenizer than the
// model's: the model would read other tokens, and the rows would look like any
// others. It accepts every vocab_size from the size of the model's vocabulary
// without added tokens to the rows of its embedding, because programs count
// differently.
func (t *Tokens) checkVocabulary(v schemas.Vocabulary) error {
	most, own := t.cfg.Model.Config().Vocab, t.cfg.Tokenizer
	switch {
	case own != nil && v.SHA256 != "" && v.SHA256 != own.SHA256():
		return modelErr(schemas.ReasonOtherTokenizer,
			"the message says tokenizer_sha256 %s, but the tokenizer.json of the model has %s", v.SHA256, own.SHA256())
	case v.Size > most:
		return modelErr(schemas.ReasonOtherVocabulary,
			"the message says vocab_size %d, but the model's embedding has %d rows", v.Size, most)
	case own != nil && v.Size != 0 && v.Size < own.Trained():
		return modelErr(schemas.ReasonOtherVocabulary,
			"the message says vocab_size %d, but the tokenizer.json of the model has %d tokens", v.Size, own.Trained())
	}
	return nil
}

// madeBy returns the SHA-256 of the tokenizer that made the ids of s, empty if it is
// unknown. trusted tells that s came as ids and that the message or the model lacks
// a hash to compare.
func (t *Tokens) madeBy(s *schemas.Sequence, v schemas.Vocabulary) (sha string, trusted bool) {
	if !s.IsText {
		return v.SHA256, v.SHA256 == "" || t.cfg.Tokenizer == nil
	}
	if t.cfg.Tokenizer == nil { // take makes the text a reject
		return "", false
	}
	return t.cfg.Tokenizer.SHA256(), false
}

// take appends the tokens of s to t.ids, or returns why the model cannot read them.
func (t *Tokens) take(it *item, s *schemas.Sequence) (err *schemas.FormatError) {
	switch {
	case !s.IsText:
		t.ids = append(t.ids, s.IDs...)
	case t.cfg.Tokenizer == nil:
		return modelErr(schemas.ReasonNoTokenizer,
			"the sequence is a text, but the model's folder has no tokenizer.json; send ids, or add the file")
	default:
		defer t.recovered(it, &err)
		t.ids = t.cfg.Tokenizer.Encode(t.ids, s.Text)
	}
	ids, most := t.ids[it.from:], t.positions()
	if len(ids) == 0 {
		return modelErr(schemas.ReasonEmptySequence, "the sequence has no token")
	}
	if len(ids) > most && !t.cfg.Truncate {
		return t.tooLong(len(ids), most)
	}
	if t.cfg.Longest > 0 {
		most = min(most, t.cfg.Longest)
	}
	if len(ids) > most {
		it.truncated = true
		ids = t.cut(ids, most)
		t.ids = t.ids[:it.from+most]
	}
	vocab := int32(t.cfg.Model.Config().Vocab)
	for i, id := range ids {
		if id < 0 || id >= vocab {
			return modelErr(schemas.ReasonIDOutOfRange,
				"id %d at position %d is not in the model's vocabulary, 0 to %d", id, i, vocab-1)
		}
	}
	return nil
}

// cut shortens ids to most tokens, in place: it drops the last ones, or with CutLeft
// the first ones. Special tokens that the tokenizer puts around every text remain at
// the ends, also if ids came with them, so that a text and its ids make the same row.
func (t *Tokens) cut(ids []int32, most int) []int32 {
	opening, closing := 0, 0
	if n := len(t.opening); slices.Equal(ids[:min(n, len(ids))], t.opening) {
		opening = min(n, most)
	}
	if n := len(t.closing); slices.Equal(ids[max(len(ids)-n, 0):], t.closing) {
		closing = min(n, most-opening)
	}
	if t.cfg.CutLeft {
		kept := most - opening
		copy(ids[opening:], ids[len(ids)-kept:])
	} else {
		copy(ids[most-closing:], ids[len(ids)-closing:])
	}
	return ids[:most]
}

// positions returns the most tokens of a sequence that the model can read. Generated
// tokens take positions, too.
func (t *Tokens) positions() int {
	n := t.cfg.Model.Config().MaxPositions
	if t.cfg.Task == Generate {
		n -= t.cfg.MaxNew
	}
	return n
}

func (t *Tokens) tooLong(n, most int) *schemas.FormatError {
	if t.cfg.Task == Generate {
		return modelErr(schemas.ReasonTooLong,
			"the sequence has %d tokens, but the model reads at most %d before it generates %d; --truncate cuts "+
				"longer ones",
			n, most, t.cfg.MaxNew)
	}
	return modelErr(schemas.ReasonTooLong,
		"the sequence has %d tokens, but the model reads at most %d; --truncate cuts longer ones", n, most)
}

func modelErr(reason, format string, args ...any) *schemas.FormatError {
	return &schemas.FormatError{Stage: schemas.StageModel, Reason: reason, Detail: fmt.Sprintf(format, args...), At: -1}
}

// recovered, when deferred, turns a panic into the error that rejects it, the item
// at fault, or nil if the batch has several.
func (t *Tokens) recovered(it *item, err **schemas.FormatError) {
	p := recover()
	if p == nil {
		return
	}
	if it != nil && t.cfg.OnPanic != nil {
		t.cfg.OnPanic(it.FrameKey, p, debug.Stack())
	}
	t.session = nil // the panic may have left its state half written
	*err = &schemas.FormatError{Stage: schemas.StageOperate, Reason: schemas.ReasonPanic, Detail: fmt.Sprint(p), At: -1}
}
