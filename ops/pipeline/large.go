package pipeline

import (
	"context"
	"fmt"
	"time"

	"entropipe/schemas"
)

// A message may say in a few megabytes what becomes gigabytes of rows: hundreds
// of thousands of sequences of a token or two. One whose rows take more than an
// eighth of the memory is large. It is read in parts, each a task that any worker
// takes; their rows go to the output as they come, and the message is committed
// with the last of them, by itself: its offset never before all of its rows.
//
// So what is held of it is its value, the parts that workers have, and rows of
// another eighth of the memory.

// part is a message, or the rows [from, to) of one of sequences.
type part struct {
	schemas.Message
	from, to int // to 0: all of them, unless it is large
	rows     int // set of a large message
}

func (p *part) whole() bool { return p.to == 0 }

// minLarge is the memory below which rows are never too many: parts of a few
// rows would cost more to find than to read.
const minLarge = 1 << 20

// largeRows is the memory of the rows of a message above which it is large.
func (p *Pipeline) largeRows() int64 { return max(p.cfg.Memory/8, minLarge) }

// limit says how much memory the rows of a message may take that is read at
// once.
func (t *Tokens) limit(bytes int64) {
	if t.cfg.Model != nil {
		t.most = int(max(bytes/t.row(), 1))
	}
}

// row estimates the memory that one sequence takes while it is read and until it
// is committed, but for its tokens and its name, which the message bounds.
func (t *Tokens) row() int64 {
	const bookkeeping = 1536 // a Sequence, an item, a Result twice, a TokenResult
	n, c := int64(bookkeeping), t.cfg.Model.Config()
	switch t.cfg.Task {
	case Embed:
		n += 4 * int64(c.Hidden)
	case Logits:
		n += 8 * int64(t.cfg.TopK)
	case Generate:
		n += 8 * int64(t.cfg.MaxNew) // ids, and about as much text
	}
	if t.cfg.Audit > 0 && t.cfg.Plan != nil {
		n += 32 * int64(c.Layers*c.Heads) / t.cfg.Audit
	}
	return n
}

// partRows is how many rows of a large message are read at once: so many that
// the parts of all workers take no more than a message that is not large, and no
// more than a few batches, because clouds wait for their end.
func (t *Tokens) partRows(m *schemas.Message, rows, workers int) int {
	const batches = 4
	byTime := int64(rows) * int64(batches*t.room()) / int64(len(m.Value)+1)
	return int(max(min(int64(t.most/workers), byTime), 1))
}

// large reads the message of t in parts and commits it. What was in the batch is
// committed before. A session that ends meanwhile gives the message up.
func (c *collector) large(ctx context.Context, t *task) error {
	defer t.lease.done()
	if c.batch.Messages > 0 {
		if err := c.commit(ctx); err != nil {
			return err
		}
	}
	parts := partsOf(t)
	defer parts.abandon()
	id, b, refused := t.msg.ID(), c.batch, false
	b.End, b.Messages, b.Last, b.Bytes = t.msg.Offset+1, 1, &id, int64(len(t.msg.Key)+len(t.msg.Value))
	b.Holes = b.End - b.Start - 1
	for {
		u := parts.next()
		if c.dropping = u.skipped; c.dropping {
			c.staged = tally{}
			c.p.budget.hold(-c.buffered.Swap(0))
			return nil
		}
		if refused && len(u.rejects) > 0 {
			u.rejects[0].Share()
		}
		refused = refused || len(u.rejects) > 0
		b.Results, b.Rejects = append(b.Results, u.results...), append(b.Rejects, u.rejects...)
		c.buffered.Add(u.bytes)
		switch {
		case u.to == t.rows:
			c.batch, c.opened, c.times = b, time.Now(), append(c.times, t.msg.SentAt())
			return c.commit(ctx)
		case c.buffered.Load() >= c.p.largeRows():
			if err := c.stage(ctx, &b); err != nil {
				return err
			}
		}
	}
}

// stage hands the rows of b, which are not all of its message's, to the output.
func (c *collector) stage(ctx context.Context, b *schemas.Batch) error {
	if err := c.p.cfg.Output.Stage(context.WithoutCancel(ctx), b); err != nil {
		return fmt.Errorf("%s/%d@%d: stage: %w", c.topic, c.id, b.End-1, err)
	}
	c.retry.succeeded()
	c.staged.add(b)
	c.p.warnOfRejects(c.p.statsOf(c.topic), b)
	c.p.budget.hold(-c.buffered.Swap(0))
	clear(b.Results)
	clear(b.Rejects)
	b.Results, b.Rejects = b.Results[:0], b.Rejects[:0]
	return nil
}

// parts are the tasks that a large message is read in: as many at once as there
// are workers.
type parts struct {
	of     *task
	begun  int // rows before it are in tasks that are submitted
	flying []*task
}

func partsOf(t *task) *parts { return &parts{of: t} }

// next returns the next part, in order, when it is done.
func (p *parts) next() *task {
	t := p.of
	for p.begun < t.rows && len(p.flying) < t.s.p.cfg.Workers {
		u := &task{msg: t.msg, s: t.s, tokens: true, from: p.begun, to: min(p.begun+t.each, t.rows), done: make(chan struct{})}
		p.begun = u.to
		p.flying = append(p.flying, u)
		t.s.p.submit(u)
	}
	u := p.flying[0]
	p.flying = p.flying[1:]
	<-u.done
	return u
}

// abandon waits for the parts that nobody will ask for, and gives their memory
// back.
func (p *parts) abandon() {
	for _, u := range p.flying {
		<-u.done
		p.of.s.p.budget.hold(-u.bytes)
	}
}
