package pipeline

import (
	"context"

	"entropipe/schemas"
)

// Origin is what each dead letter of a process says of the process.
type Origin struct {
	Output string // uuid of the output
	Group  string // consumer group
	Worker string // host
}

// report makes the dead letter of t, whose message is still in memory, if dead letters are
// sent. first is the first of the message's n rejects. The letter counts in t.bytes.
func (t *task) report(p *Pipeline, first *schemas.Reject, n int64) {
	if p.cfg.Letters == nil {
		return
	}
	chunk := ""
	if t.parts != nil {
		chunk = t.parts.id
	}
	d := schemas.NewDeadLetter(&t.msg, first, n, chunk)
	d.Output, d.Group, d.Worker = p.cfg.Origin.Output, p.cfg.Origin.Group, p.cfg.Origin.Worker
	t.letter = d.Record(&t.msg)
	t.bytes += t.letter.Bytes()
}

// report sends the dead letter of a large message, of which n sequences are refused. first is
// nil if n is 0; then there is no letter.
func (c *collector) report(ctx context.Context, t *task, first *schemas.Reject, n int64) error {
	if first == nil {
		return nil
	}
	t.report(c.p, first, n)
	c.p.budget.hold(t.bytes)
	return c.publish(ctx, t)
}
