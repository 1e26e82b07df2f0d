package pipeline

import (
	"time"

	"entropipe/schemas"
)

// worker takes tasks in their order, each by itself: clouds are work enough.
// Messages of few tokens are not, so it takes several of those at once, and the
// model reads them in one batch. Rows do not depend on what they were read
// beside, so it may take what happens to wait.
type worker struct {
	p       *Pipeline
	process Process
	tokens  *Tokens // nil: process gets every message
	next    *task   // taken, but not of the same kind as those before it
	group   []*task
	msgs    []schemas.Message
}

// maxGroup bounds the messages of one group: they wait for each other.
const maxGroup = 256

func (w *worker) run() {
	for {
		t := w.next
		if w.next = nil; t == nil {
			var open bool
			if t, open = <-w.p.tasks; !open {
				return
			}
		}
		if w.tokens == nil || !schemas.IsTokens(&t.msg) {
			w.cloud(t)
			continue
		}
		w.gather(t)
		w.sequences()
	}
}

// gather fills the group: t, and messages of tokens that wait behind it until
// a batch is full. Other workers get their share of what waits.
func (w *worker) gather(t *task) {
	w.group = append(w.group[:0], t)
	share := 1 + len(w.p.tasks)/w.p.cfg.Workers
	for room := w.tokens.room() - load(&t.msg); room > 0 && len(w.group) < min(share, maxGroup); {
		select {
		case u, open := <-w.p.tasks:
			switch {
			case !open:
				return
			case !schemas.IsTokens(&u.msg):
				w.next = u
				return
			}
			w.group = append(w.group, u)
			room -= load(&u.msg)
		default:
			return
		}
	}
}

// load estimates the bytes of a message that are tokens or text: what Arrow
// says around them is larger than a short sequence.
func load(m *schemas.Message) int {
	const around = 512
	return max(len(m.Value)-around, 16)
}

// cloud works on one task.
func (w *worker) cloud(t *task) {
	if t.skipped = t.s.stopped.Load(); !t.skipped {
		start := time.Now()
		t.results, t.rejects = w.process(t.msg)
		t.finish(w.p, time.Since(start))
	}
	t.end(w.p)
}

// sequences works on the group's tasks at once.
func (w *worker) sequences() {
	start := time.Now()
	w.msgs = w.msgs[:0]
	for _, t := range w.group {
		if t.skipped = t.s.stopped.Load(); !t.skipped {
			w.msgs = append(w.msgs, t.msg)
		}
	}
	found := w.tokens.Process(w.msgs)
	each := time.Since(start) / time.Duration(max(len(w.msgs), 1))
	for _, t := range w.group {
		if !t.skipped {
			t.results, t.rejects = found[0].Results, found[0].Rejects
			found = found[1:]
			t.finish(w.p, each)
		}
		t.end(w.p)
	}
	clear(w.group) // the records' memory is not kept
	clear(w.msgs)
}

// finish counts what came of t.
func (t *task) finish(p *Pipeline, took time.Duration) {
	t.id = t.msg.ID()
	for i := range t.results {
		t.bytes += t.results[i].Bytes()
	}
	for i := range t.rejects {
		t.bytes += int64(512 + len(t.rejects[i].Value) + len(t.rejects[i].Key))
	}
	p.budget.hold(t.bytes)
	t.s.src.Processed(t.results, t.rejects, took)
}

// end hands back the record's memory and lets the collector go on.
func (t *task) end(p *Pipeline) {
	t.lease.done(&p.budget)
	close(t.done)
}
