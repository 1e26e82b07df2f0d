package pipeline

import (
	"context"
	"fmt"

	"entropipe/schemas"
)

// A message of a few megabytes may become gigabytes of rows: hundreds of thousands
// of sequences of a token or two. A message is large if its rows take more than an
// eighth of the memory. It is read in parts, each a task that any worker takes. The
// rows of the parts are staged in the output as they come, and the message is
// committed alone, with the last of its rows: its offset never before all of them.
//
// So memory holds its value, the parts that workers have, and rows of another
// eighth of the memory.

// part is a whole message, or the rows [from, to) of a message of sequences.
type part struct {
	schemas.Message
	from, to int // to is 0 for a whole message
	rows     int // the number of rows, set by Tokens.process if the whole message is large
}

func (p *part) whole() bool { return p.to == 0 }

// minLarge is the least memory of a large message's rows: finding parts of a few
// rows would cost more than reading them.
const minLarge = 1 << 20

// largeRows returns max(memory/8, minLarge): a message whose rows take more memory
// is large.
func (p *Pipeline) largeRows() int64 { return max(p.cfg.Memory/8, minLarge) }

// limit bounds the memory of the rows of a message that is read at once.
func (t *Tokens) limit(bytes int64) {
	if t.cfg.Model != nil {
		t.most = int(max(bytes/t.row(), 1))
	}
}

// row estimates the bytes that one sequence takes from its reading to its commit,
// without its tokens and its name, which the size of the message bounds.
func (t *Tokens) row() int64 {
	const bookkeeping = 1536 // one Sequence, one item, two Results, one TokenResult
	n, c := int64(bookkeeping), t.cfg.Model.Config()
	switch t.cfg.Task {
	case Embed:
		n += 4 * int64(c.Hidden)
	case Logits:
		n += 8 * int64(t.cfg.TopK)
	case Generate:
		n += 8 * int64(t.cfg.MaxNew) // four bytes for an id, about four for its text
	}
	if t.cfg.Audit > 0 && t.cfg.Plan != nil {
		n += 32 * int64(c.Layers*c.Heads) / t.cfg.Audit
	}
	return n
}

// partRows returns the rows of each part of a large message m: at most so many that
// the parts of all workers take no more memory than a message that is not large, and
// at most four batches, because clouds wait for the end of a part.
func (t *Tokens) partRows(m *schemas.Message, rows, workers int) int {
	const batches = 4
	byTime := int64(rows) * int64(batches*t.room()) / int64(len(m.Value)+1)
	return int(max(min(int64(t.most/workers), byTime), 1))
}

// large reads the message of t in parts and commits it. It commits the batch first.
// If the session ends meanwhile, large discards the message.
func (c *collector) large(ctx context.Context, t *task) error {
	defer t.lease.done()
	if c.batch.Messages > 0 {
		if err := c.commit(ctx); err != nil {
			return err
		}
	}
	c.chunks.began(t.parts)
	parts := partsOf(t)
	defer parts.abandon()
	id, b := t.recordID(), c.batch
	var first *schemas.Reject // of the message
	var refused int64
	b.End, b.Messages, b.Last, b.Bytes = t.msg.Offset+1, 1, &id, int64(len(t.msg.Key)+len(t.msg.Value))
	b.Holes = b.End - b.Start - 1 - b.Chunks
	for {
		u := parts.next()
		if c.dropping = u.skipped; c.dropping {
			c.staged, c.refused = tally{}, nil
			c.p.budget.hold(-c.buffered.Swap(0))
			return nil
		}
		if n := len(u.rejects); n > 0 {
			one := u.rejects[0]
			one.Share()
			if first == nil {
				first = &one
			} else {
				u.rejects[0] = one
			}
			refused += int64(n)
		}
		b.Results, b.Rejects = append(b.Results, u.results...), append(b.Rejects, u.rejects...)
		c.buffered.Add(u.bytes)
		switch {
		case u.to == t.rows:
			if err := c.report(ctx, t, first, refused); err != nil {
				return err
			}
			t.bytes = 0 // of the letter, which the outbox counts
			t.copy(c.p)
			c.p.budget.hold(t.bytes)
			c.buffered.Add(t.bytes)
			b.Originals = t.appendCopy(b.Originals)
			c.batch, c.times = b, append(c.times, c.sentAt(&t.msg))
			c.opens()
			c.batched.Store(1)
			return c.commit(ctx)
		case c.buffered.Load() >= c.p.largeRows():
			if err := c.stage(ctx, &b); err != nil {
				return err
			}
		}
	}
}

// stage stages the rows of b, some of its message's, in the output.
func (c *collector) stage(ctx context.Context, b *schemas.Batch) error {
	if err := c.p.cfg.Output.Stage(context.WithoutCancel(ctx), b); err != nil {
		return fmt.Errorf("%s/%d@%d: stage: %w", c.topic, c.id, b.End-1, err)
	}
	c.retry.succeeded()
	c.staged.add(b)
	for i := range b.Rejects {
		if c.refused == nil {
			c.refused = map[string]int64{}
		}
		c.refused[b.Rejects[i].Reason]++
	}
	c.p.warnOfRejects(c.p.statsOf(c.topic), b)
	c.p.budget.hold(-c.buffered.Swap(0))
	clear(b.Results)
	clear(b.Rejects)
	b.Results, b.Rejects = b.Results[:0], b.Rejects[:0]
	return nil
}

// parts reads a large message: it has at most as many tasks submitted as there are
// workers.
type parts struct {
	of     *task
	begun  int     // the rows [0, begun) are in submitted tasks
	flying []*task // submitted tasks that next has not returned, in order
}

func partsOf(t *task) *parts { return &parts{of: t} }

// next returns the next part, in order, when a worker has finished it.
func (p *parts) next() *task {
	t := p.of
	for p.begun < t.rows && len(p.flying) < t.s.p.cfg.Workers {
		u := &task{msg: t.msg, s: t.s, tokens: true, from: p.begun, to: min(p.begun+t.each, t.rows),
			done: make(chan struct{})}
		p.begun = u.to
		p.flying = append(p.flying, u)
		t.s.p.submit(u)
	}
	u := p.flying[0]
	p.flying = p.flying[1:]
	<-u.done
	return u
}

// abandon waits for the submitted parts that next will not return, and gives their
// memory back.
func (p *parts) abandon() {
	for _, u := range p.flying {
		<-u.done
		p.of.s.p.budget.hold(-u.bytes)
	}
}
