package pipeline

import (
	"time"

	"entropipe/schemas"
)

// worker takes tasks, each by itself: clouds are work enough. Messages of few
// tokens are not, so it takes several of those at once, and the model reads them
// in one batch. Rows do not depend on what they were read beside, so it may take
// what happens to wait.
//
// Clouds and tokens wait in queues of their own, and while both do, each branch
// gets half of a worker's time: a group of messages of tokens takes as long as
// hundreds of clouds, so that taking turns one by one would leave a frame for
// each group. Neither branch waits for the end of the other's queue.
type worker struct {
	p       *Pipeline
	process Process
	tokens  *Tokens       // nil: process gets every message
	ahead   time.Duration // what tokens had of this worker's time beyond clouds
	group   []*task
	msgs    []part
}

// maxGroup bounds the messages of one group: they wait for each other.
const maxGroup = 256

func (w *worker) run() {
	for {
		t, open := w.take()
		if !open {
			return
		}
		tokens, start := t.tokens, time.Now()
		if tokens {
			w.gather(t)
			w.sequences()
		} else {
			w.cloud(t)
		}
		w.served(tokens, time.Since(start))
	}
}

// served counts what a branch had. No branch saves up more than the other's last
// turn took: who had nothing waiting has lost its time.
func (w *worker) served(tokens bool, took time.Duration) {
	if tokens {
		w.ahead = min(w.ahead+took, took)
	} else {
		w.ahead = max(w.ahead-took, -took)
	}
}

// take returns the next task, of the branch whose turn it is if one waits there.
func (w *worker) take() (t *task, open bool) {
	first, second := w.p.sequences, w.p.clouds
	if w.ahead > 0 {
		first, second = second, first
	}
	select {
	case t, open = <-first:
		return t, open
	default:
	}
	select {
	case t, open = <-first:
	case t, open = <-second:
	}
	return t, open
}

// gather fills the group: t, and messages of tokens that wait behind it until
// a batch is full. Other workers get their share of what waits.
func (w *worker) gather(t *task) {
	w.group = append(w.group[:0], t)
	share := 1 + len(w.p.sequences)/w.p.cfg.Workers
	for room := w.tokens.room() - load(&t.msg); room > 0 && len(w.group) < min(share, maxGroup); {
		select {
		case u, open := <-w.p.sequences:
			if !open {
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
			w.msgs = append(w.msgs, part{Message: t.msg, from: t.from, to: t.to})
		}
	}
	found := w.tokens.process(w.msgs)
	each := time.Since(start) / time.Duration(max(len(w.msgs), 1))
	done := w.msgs
	for _, t := range w.group {
		if !t.skipped {
			t.results, t.rejects, t.rows = found[0].Results, found[0].Rejects, done[0].rows
			found, done = found[1:], done[1:]
			if t.rows == 0 {
				t.finish(w.p, each)
			} else {
				t.each = w.tokens.partRows(&t.msg, t.rows, w.p.cfg.Workers)
			}
		}
		t.end(w.p)
	}
	clear(w.group) // the records' memory is not kept
	clear(w.msgs)
}

// finish counts what came of t.
func (t *task) finish(p *Pipeline, took time.Duration) {
	if t.lease != nil { // else a part, whose message has been summed up
		t.id = t.msg.ID()
	}
	for i := range t.results {
		t.bytes += t.results[i].Bytes()
	}
	for i := range t.rejects {
		t.bytes += int64(512 + len(t.rejects[i].Value) + len(t.rejects[i].Key))
	}
	p.budget.hold(t.bytes)
	t.s.src.Processed(t.results, t.rejects, took)
}

// end hands back the record's memory, unless it is to be read in parts, and lets
// the collector go on.
func (t *task) end(p *Pipeline) {
	if t.lease != nil && t.rows == 0 {
		t.lease.done()
	}
	close(t.done)
}
