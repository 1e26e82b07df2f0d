package pipeline

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"entropipe/models/mat"
	"entropipe/schemas"
	"entropipe/sparse/model"
)

// rows is scratch memory for batches and for the numbers computed from their
// hidden states.
type rows struct {
	lengths []int   // planned length of each item without an error
	good    []int32 // index in Tokens.items of each of lengths
	last    []float32
	logits  []float32
	top     []ranked
}

// maxLogits bounds the logits in memory: a batch of short sequences times a
// large vocabulary would be gigabytes.
const maxLogits = 4 << 20

// infer runs the model on every item without an error, in batches.
func (t *Tokens) infer() {
	r := &t.rows
	r.lengths, r.good = r.lengths[:0], r.good[:0]
	for i := range t.items {
		it := &t.items[i]
		if it.err != nil {
			continue
		}
		// Generated tokens take memory as received ones do.
		r.lengths, r.good = append(r.lengths, t.planned(it)), append(r.good, int32(i))
	}
	for b, batch := range t.packer.Pack(r.lengths) {
		items := make([]*item, len(batch))
		for k, i := range batch {
			items[k] = &t.items[r.good[i]]
		}
		t.fill(items)
		padding := len(t.batch.IDs) - tokensOf(items)
		t.cfg.Metrics.Batch(len(items), t.packer.Fill(b), padding)
		t.cfg.Totals.count(len(t.batch.IDs), padding, t.cfg.Budget)
		t.run(items)
	}
}

func tokensOf(items []*item) (n int) {
	for _, it := range items {
		n += it.tokens()
	}
	return n
}

// run runs the model on one batch. If the model fails, run tries each sequence
// alone, so that only the sequences at fault become rejects.
func (t *Tokens) run(items []*item) {
	start := time.Now()
	err := t.try(items)
	t.cfg.Metrics.Inferred(string(t.cfg.Task), time.Since(start))
	if err == nil {
		for _, it := range items {
			t.examine(it)
		}
		return
	}
	if len(items) == 1 {
		items[0].err, items[0].result = err, nil
		return
	}
	for i := range items {
		t.fill(items[i : i+1])
		t.run(items[i : i+1])
	}
}

// fill makes the batch of the items.
func (t *Tokens) fill(items []*item) {
	b := &t.batch
	b.IDs, b.Starts = b.IDs[:0], append(b.Starts[:0], 0)
	for _, it := range items {
		b.IDs = append(b.IDs, t.ids[it.from:it.to]...)
		b.Starts = append(b.Starts, int32(len(b.IDs)))
	}
}

// try runs the model on the batch that fill made of items, and sets their results.
// It returns a panic of the model as an error.
func (t *Tokens) try(items []*item) (err *schemas.FormatError) {
	var alone *item
	if len(items) == 1 {
		alone = items[0]
	}
	defer t.recovered(alone, &err)
	if t.session == nil {
		t.session = t.cfg.Model.NewSession(t.cfg.Threads)
	}
	for _, it := range items {
		it.result = t.newResult(it)
	}
	options := model.Options{Plan: t.cfg.Plan, Hook: t.cfg.Route, Attend: t.cfg.Attend, Ladder: t.cfg.Ladder}
	if t.cfg.Task == Generate {
		next, err := t.session.Generate(t.batch, t.cfg.MaxNew, options)
		if err != nil {
			return inputErr(err)
		}
		for i, it := range items {
			it.result.NextIDs = slices.Clone(next[i])
			if t.cfg.Tokenizer != nil {
				text := t.cfg.Tokenizer.Decode(next[i])
				it.result.Text = &text
			}
		}
		return nil
	}
	hidden, e := t.session.Hidden(t.batch, options)
	if e != nil {
		return inputErr(e)
	}
	for i, it := range items {
		it.rungs = t.session.Rungs()[i]
	}
	if t.cfg.Task == Logits {
		t.predict(items, hidden)
		return nil
	}
	for i, it := range items {
		it.result.Embedding = make([]float32, hidden.Cols)
		t.session.Pool(it.result.Embedding, t.sequence(hidden, i), t.cfg.Pooling)
		it.err = finite(it.result.Embedding)
	}
	return nil
}

// newResult returns the row of a sequence with the fields that are known before
// the model has read the sequence, and sets it.plan.
func (t *Tokens) newResult(it *item) *schemas.TokenResult {
	r := &schemas.TokenResult{ID: it.id, Model: t.cfg.Name, ModelSHA: t.cfg.Model.SHA256(),
		Weights: string(t.cfg.Model.Weights()),
		Task:    string(t.cfg.Task), Pooling: "none", Truncated: it.truncated, NTokens: int32(it.tokens()),
		TokenizerSHA: it.tokenizer}
	if t.cfg.Task == Embed {
		r.Pooling, r.Normalized = t.cfg.Pooling.Mode, t.cfg.Pooling.Normalize
	}
	it.plan = "none"
	if t.cfg.Plan != nil {
		it.plan = "dense"
		if p := t.cfg.Plan(t.planned(it)); p.Dense == "" {
			it.plan, r.MaskSHA = "sparse", p.MaskSHA
		}
	}
	return r
}

// planned returns the length whose plan the sequence uses: its tokens, and for
// Generate also the MaxNew tokens to come, because a plan does not change while a
// sequence grows.
func (t *Tokens) planned(it *item) int {
	if t.cfg.Task == Generate {
		return it.tokens() + t.cfg.MaxNew
	}
	return it.tokens()
}

// inputErr turns an error of the model about its input into a reject's error.
func inputErr(err error) *schemas.FormatError {
	var bad *model.InputError
	if errors.As(err, &bad) {
		return modelErr(bad.Reason, "%v", err)
	}
	return modelErr(schemas.ReasonInternal, "%v", err)
}

// sequence returns the rows of hidden that belong to sequence i of the batch.
func (t *Tokens) sequence(hidden mat.Matrix, i int) mat.Matrix {
	from, to := int(t.batch.Starts[i]), int(t.batch.Starts[i+1])
	return hidden.Slice(from, to)
}

// predict sets the likeliest next tokens of every sequence.
func (t *Tokens) predict(items []*item, hidden mat.Matrix) {
	vocab := t.cfg.Model.Config().Vocab
	each := max(maxLogits/vocab, 1)
	for from := 0; from < len(items); from += each {
		part := items[from:min(from+each, len(items))]
		last := t.rows.last[:0]
		for i := range part {
			end := int(t.batch.Starts[from+i+1]) - 1
			last = append(last, hidden.Data[end*hidden.Stride:][:hidden.Cols]...)
		}
		t.rows.last = last
		t.rows.logits = slices.Grow(t.rows.logits[:0], len(part)*vocab)[:len(part)*vocab]
		logits := mat.Matrix{Rows: len(part), Cols: vocab, Stride: vocab, Data: t.rows.logits}
		t.session.Logits(logits, mat.Matrix{Rows: len(part), Cols: hidden.Cols, Stride: hidden.Cols, Data: last})
		for i, it := range part {
			t.rank(it, logits.Data[i*vocab:][:vocab])
		}
	}
}

// ranked is a token and its logit.
type ranked struct {
	id    int32
	logit float32
}

// rank sets the TopK likeliest tokens, equal ones by ascending id, and the
// logarithms of their probabilities, logit - log Σ exp(logit).
func (t *Tokens) rank(it *item, logits []float32) {
	if it.err = finite(logits); it.err != nil {
		return
	}
	k := min(t.cfg.TopK, len(logits))
	top := t.rows.top[:0]
	for id, v := range logits {
		if len(top) == k && v <= top[k-1].logit {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, v, func(r ranked, v float32) int {
			return cmp.Or(cmp.Compare(v, r.logit), -1) // behind its equals
		})
		if len(top) == k {
			top = top[:k-1]
		}
		top = slices.Insert(top, at, ranked{int32(id), v})
	}
	t.rows.top = top
	most, sum := float64(top[0].logit), 0.
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	all := most + math.Log(sum)
	it.result.TopIDs, it.result.TopLogprobs = make([]int32, k), make([]float32, k)
	for i, r := range top {
		it.result.TopIDs[i], it.result.TopLogprobs[i] = r.id, float32(float64(r.logit)-all)
	}
}

// finite returns an error if v holds a NaN or an infinity.
func finite(v []float32) *schemas.FormatError {
	for i, x := range v {
		if d := x - x; d != 0 { // NaN for NaN and for infinities
			return modelErr(schemas.ReasonNotFinite,
				"the model computed %v as number %d of %d; every number must be finite", x, i, len(v))
		}
	}
	return nil
}
