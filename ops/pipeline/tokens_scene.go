package pipeline

import (
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"entropipe/ops/live"
	"entropipe/schemas"
)

// What a scene shows of a long sequence: its last tokens, and masks of at most so many blocks
// along each side.
const (
	shownTokens = 512
	shownBlocks = 512
)

// show offers the sequence to those who watch. A panic is told and changes no result.
func (t *Tokens) show(m *schemas.Message, it *item) {
	defer func() {
		if p := recover(); p != nil && t.cfg.OnPanic != nil {
			t.cfg.OnPanic(it.FrameKey, p, debug.Stack())
		}
	}()
	t.cfg.Tap.Offer(t.scene(m, it))
}

// scene returns what viewers see of a sequence. It owns its memory.
func (t *Tokens) scene(m *schemas.Message, it *item) *live.Scene {
	key, r := it.FrameKey, it.result
	for _, text := range []*string{&key.Dataset, &key.Sequence, &key.Sensor, &key.Topic} {
		*text = strings.Clone(*text)
	}
	ids := t.ids[it.from:it.to]
	ids = slices.Clone(ids[max(len(ids)-shownTokens, 0):])
	text := &live.Text{ID: strings.Clone(r.ID), Model: r.Model, Task: r.Task, NTokens: r.NTokens, IDs: ids,
		Words: t.words(ids)}
	next, logprobs := r.TopIDs, r.TopLogprobs
	if t.cfg.Task == Generate {
		next, logprobs, text.Generated = r.NextIDs[:min(len(r.NextIDs), shownTokens)], nil, true
	}
	words := t.words(next)
	for i, id := range next {
		n := live.Next{ID: id}
		if words != nil {
			n.Word = words[i]
		}
		if logprobs != nil {
			n.Logprob = logprobs[i]
		}
		text.Next = append(text.Next, n)
	}
	text.Blocks, text.BlockSize = t.blocks(it)
	return &live.Scene{FrameKey: key, SentNs: m.SentAt(), CapturedNs: time.Now().UnixNano(), Text: text}
}

// words returns the text of each token, the spelling of those without text; nil without a
// tokenizer.
func (t *Tokens) words(ids []int32) []string {
	if t.cfg.Tokenizer == nil || len(ids) == 0 {
		return nil
	}
	words := make([]string, len(ids))
	for i := range ids {
		if words[i] = t.cfg.Tokenizer.Decode(ids[i : i+1]); words[i] == "" {
			words[i], _ = t.cfg.Tokenizer.Token(ids[i])
		}
	}
	return words
}

// blocks returns the blocks of keys that the first head of the first layer reads; nil if it
// reads all, if the input decides, or if there are too many.
func (t *Tokens) blocks(it *item) (blocks [][]byte, size int) {
	if t.cfg.Plan == nil {
		return nil, 0
	}
	p := t.cfg.Plan(t.planned(it))
	if len(p.Layouts) == 0 || len(p.Layouts[0]) == 0 {
		return nil, 0
	}
	l := p.Layouts[0][0]
	if l == nil || l.Order != nil || l.Rows > shownBlocks || l.Cols > shownBlocks {
		return nil, 0
	}
	blocks = make([][]byte, l.Rows)
	for row := range blocks {
		blocks[row] = make([]byte, l.Cols)
		cols, _ := l.Row(row)
		for _, c := range cols {
			blocks[row][c] = 1
		}
	}
	return blocks, l.Block
}
