package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"entropipe/ops/metrics"
	"entropipe/schemas"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/sched"
	"entropipe/sparse/token"
)

// Task says what is made of a sequence.
type Task string

const (
	Embed    Task = "embed"    // one vector, pooled from the last hidden states
	Logits   Task = "logits"   // the likeliest next tokens
	Generate Task = "generate" // the tokens that follow, greedily
)

// TokenConfig says what is done with every sequence. Model, tokenizer and
// masks are shared by all workers; none of them changes.
type TokenConfig struct {
	Model     *model.Model                                       // nil: sequences are rejects
	Name      string                                             // of the model, for table tokens
	Tokenizer *token.Tokenizer                                   // nil: texts are rejects
	Route     func(layer, sequence int, j *kern.Job)             // gives jobs layouts that depend on their keys; nil: none do
	Attend    func(jobs []kern.Job, workers int)                 // computes attention but for Generate; nil: package kern
	Plan      func(n int) *plan.Plan                             // which blocks a sequence of n tokens reads; nil: all
	Ladder    *kern.Ladder                                       // lets rows of an encoder read more than their masks say, not beside Attend; nil: none does
	Task      Task                                               // that the model can do
	Pooling   hf.Pooling                                         // for Embed
	TopK      int                                                // of Logits, at least 1
	MaxNew    int                                                // of Generate, at least 1
	Truncate  bool                                               // cut what is longer than the model's positions, else refuse it
	CutLeft   bool                                               // what is cut loses its beginning, not its end
	Longest   int                                                // tokens that are kept of a sequence within the positions; 0: all
	Budget    int                                                // tokens of a batch
	Audit     int64                                              // one sequence in so many is compared with dense attention; 0: none
	Threads   int                                                // cores for one batch
	MaxBytes  int64                                              // memory of one decoded message
	Metrics   *metrics.Metrics                                   // needed
	Totals    *BatchTotals                                       // of all workers; needed
	OnPanic   func(key schemas.FrameKey, what any, stack []byte) // may be nil
}

// BatchTotals are what batches held since the start, sequences of ids whose
// tokenizer nothing tells (Unverified), and of rows of attention heads under a
// ladder how many there were, how many read further blocks, and how many all keys.
type BatchTotals struct {
	Batches, Tokens, Room, Padding atomic.Int64
	Rows, Extended, Dense          atomic.Int64
	Unverified                     atomic.Int64
}

// Fill is the share of the budgets that tokens took.
func (b *BatchTotals) Fill() float64 {
	return float64(b.Tokens.Load()) / float64(max(b.Room.Load(), 1))
}

// count counts a batch of so many tokens, of which padding are no sequence's.
func (b *BatchTotals) count(tokens, padding, budget int) {
	b.Batches.Add(1)
	b.Tokens.Add(int64(tokens))
	b.Padding.Add(int64(padding))
	b.Room.Add(int64(max(tokens, budget)))
}

// climbed counts what a ladder did with the rows of a sequence.
func (b *BatchTotals) climbed(r kern.Rungs) {
	b.Rows.Add(int64(r.Rows))
	b.Extended.Add(int64(r.Extended))
	b.Dense.Add(int64(r.Dense))
}

// Outcome is what came of one message.
type Outcome struct {
	Results []schemas.Result
	Rejects []schemas.Reject
}

// Tokens turns messages of sequences into results: decode, tokenise, check,
// pack into batches, run the model. One a worker; it owns scratch memory and is
// not for concurrent use.
//
// A row is the same bits whatever was read beside it. A sequence that cannot be
// used, down to one that makes the model panic, is a reject of its own.
type Tokens struct {
	cfg     TokenConfig
	decoder schemas.Decoder
	packer  sched.Packer
	session *model.Session // made for the first batch: a run of clouds alone needs none
	opening []int32        // tokens that begin every text: of a truncated one too
	closing []int32        // tokens that end every text: of a truncated one too
	most    int            // rows of a message that are read at once; 0: any number

	msgs  []part
	items []item
	ids   []int32 // of all items
	batch model.Batch
	rows  rows
	audit audit
}

// item is one sequence under way.
type item struct {
	schemas.FrameKey
	id        string
	tokenizer string // SHA-256 of the one that made the ids; empty: unknown
	trusted   bool   // nothing tells whether it is the model's
	message   int    // its place among the messages
	from, to  int    // in Tokens.ids
	truncated bool
	plan      string // of its attention: sparse, dense, none
	rungs     kern.Rungs
	err       *schemas.FormatError
	result    *schemas.TokenResult
}

func (it *item) tokens() int { return it.to - it.from }

// NewTokens returns a Tokens that works as cfg says.
func NewTokens(cfg TokenConfig) *Tokens {
	t := &Tokens{cfg: cfg, decoder: schemas.Decoder{MaxBytes: cfg.MaxBytes}, packer: sched.Packer{Budget: cfg.Budget}}
	if cfg.Tokenizer != nil {
		t.opening, t.closing = cfg.Tokenizer.Around()
	}
	return t
}

// room is how many bytes of messages fill a batch: an id takes four on the
// wire, and a token of a text is about as long.
func (t *Tokens) room() int {
	if t.cfg.Model == nil {
		return 0
	}
	return 4 * t.cfg.Budget
}

// Process returns what came of every message, in their order. Results and
// rejects are in order of their index and own their memory.
func (t *Tokens) Process(msgs []schemas.Message) []Outcome {
	parts := make([]part, len(msgs))
	for i, m := range msgs {
		parts[i].Message = m
	}
	return t.process(parts)
}

// process is Process for parts of messages. Of a whole one that is large nothing
// comes, but its number of rows.
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
	}
	clear(t.items) // results are their owners'
	t.msgs = nil
	return out
}

// read decodes message i into so many items; below 0: none, so many rows are too
// many to be read at once. The error refuses the whole message.
func (t *Tokens) read(i int) (rows int, err error) {
	m := &t.msgs[i]
	if t.cfg.Model == nil {
		return 0, modelErr(schemas.ReasonNoModel, "a message of sequences, but --lm names no model")
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

// checkVocabulary refuses a message whose ids come from another tokenizer than
// the model's: each of them would be taken for another token, and the rows would
// look like any others. A size that lies between that of the model's vocabulary
// without added tokens and the rows of its embedding may be meant for it, because
// programs count differently.
func (t *Tokens) checkVocabulary(v schemas.Vocabulary) error {
	most, own := t.cfg.Model.Config().Vocab, t.cfg.Tokenizer
	switch {
	case own != nil && v.SHA256 != "" && v.SHA256 != own.SHA256():
		return modelErr(schemas.ReasonOtherTokenizer, "the message says tokenizer_sha256 %s, the tokenizer.json of the model has %s", v.SHA256, own.SHA256())
	case v.Size > most:
		return modelErr(schemas.ReasonOtherVocabulary, "the message says vocab_size %d, the model's embedding has %d rows", v.Size, most)
	case own != nil && v.Size != 0 && v.Size < own.Trained():
		return modelErr(schemas.ReasonOtherVocabulary, "the message says vocab_size %d, the tokenizer.json of the model has %d tokens", v.Size, own.Trained())
	}
	return nil
}

// madeBy returns the hash of the tokenizer that made the ids of s, empty if
// nobody says it, and whether they are taken on trust: they came as ids, and there
// are no two hashes to compare.
func (t *Tokens) madeBy(s *schemas.Sequence, v schemas.Vocabulary) (sha string, trusted bool) {
	if !s.IsText {
		return v.SHA256, v.SHA256 == "" || t.cfg.Tokenizer == nil
	}
	if t.cfg.Tokenizer == nil { // it becomes a reject
		return "", false
	}
	return t.cfg.Tokenizer.SHA256(), false
}

// take appends the tokens of s to the ids, or says why the model cannot read
// them.
func (t *Tokens) take(it *item, s *schemas.Sequence) (err *schemas.FormatError) {
	switch {
	case !s.IsText:
		t.ids = append(t.ids, s.IDs...)
	case t.cfg.Tokenizer == nil:
		return modelErr(schemas.ReasonNoTokenizer, "a text, but the model's folder has no tokenizer.json")
	default:
		defer t.recovered(it, &err)
		t.ids = t.cfg.Tokenizer.Encode(t.ids, s.Text)
	}
	ids, most := t.ids[it.from:], t.positions()
	if len(ids) == 0 {
		return modelErr(schemas.ReasonEmptySequence, "a sequence without a token")
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
			return modelErr(schemas.ReasonIDOutOfRange, "id %d at position %d, the model knows 0 to %d", id, i, vocab-1)
		}
	}
	return nil
}

// cut returns the first most ids, in their place, after dropping the others: those
// at the end, or with CutLeft at the beginning. Special tokens that the tokenizer
// sets around every text stay where they are, around ids that came with them too:
// a text and its ids make the same row.
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

// positions is how many tokens of a sequence the model reads at most. What is
// generated takes positions too.
func (t *Tokens) positions() int {
	n := t.cfg.Model.Config().MaxPositions
	if t.cfg.Task == Generate {
		n -= t.cfg.MaxNew
	}
	return n
}

func (t *Tokens) tooLong(n, most int) *schemas.FormatError {
	if t.cfg.Task == Generate {
		return modelErr(schemas.ReasonTooLong, "%d tokens; with %d more to come the model reads at most %d (--truncate cuts it)", n, t.cfg.MaxNew, most)
	}
	return modelErr(schemas.ReasonTooLong, "%d tokens; the model reads at most %d (--truncate cuts it)", n, most)
}

func modelErr(reason, format string, args ...any) *schemas.FormatError {
	return &schemas.FormatError{Stage: schemas.StageModel, Reason: reason, Detail: fmt.Sprintf(format, args...), At: -1}
}

// recovered turns a panic into the reject of it. It is deferred. it is nil where
// any sequence of a batch may be the one.
func (t *Tokens) recovered(it *item, err **schemas.FormatError) {
	p := recover()
	if p == nil {
		return
	}
	if it != nil && t.cfg.OnPanic != nil {
		t.cfg.OnPanic(it.FrameKey, p, debug.Stack())
	}
	t.session = nil // what was interrupted is not to be trusted
	*err = &schemas.FormatError{Stage: schemas.StageOperate, Reason: schemas.ReasonPanic, Detail: fmt.Sprint(p), At: -1}
}
