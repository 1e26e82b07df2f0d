package pipeline

import (
	"time"

	"entropipe/schemas"
)

// worker is one goroutine that processes tasks. It takes clouds one by one, because
// each is enough work. Messages of few tokens are not, so it takes several of them
// at once, a group, and the model reads a group in one batch. Rows do not depend on
// the rest of their batch, so a group may be any messages that wait.
//
// Clouds and sequences wait in two queues. While both have tasks, each branch gets
// half of the worker's time. A group takes as long as hundreds of clouds, so taking
// turns task by task would process one cloud for each group. Neither branch waits
// for the end of the other's queue.
type worker struct {
	p       *Pipeline
	process Process
	tokens  *Tokens       // nil: process gets every message
	ahead   time.Duration // worker time of sequences minus worker time of clouds
	group   []*task
	msgs    []part
}

// maxGroup bounds the messages of one group, because they wait for each other.
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
			n := int64(len(w.group))
			w.p.busy.model.Add(n)
			w.sequences()
			w.p.busy.model.Add(-n)
		} else {
			w.p.busy.operate.Add(1)
			w.cloud(t)
			w.p.busy.operate.Add(-1)
		}
		w.served(tokens, time.Since(start))
	}
}

// served adds the time of one turn of a branch to ahead. No branch saves up more
// than the time of the other's last turn: a branch that had no task waiting has
// lost its time.
func (w *worker) served(tokens bool, took time.Duration) {
	if tokens {
		w.ahead = min(w.ahead+took, took)
	} else {
		w.ahead = max(w.ahead-took, -took)
	}
}

// take returns the next task: one of the branch whose turn it is, if one waits
// there, else the first that comes. It returns false after Pipeline.Close.
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

// gather fills the group with t and messages of sequences that wait behind it,
// until they fill a batch or this worker has its share of the queue.
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

// load estimates the bytes of a message that are tokens or text. Arrow's own bytes
// are more than a short sequence, so they are subtracted.
func load(m *schemas.Message) int {
	const around = 512
	return max(len(m.Value)-around, 16)
}

// cloud processes one task.
func (w *worker) cloud(t *task) {
	if t.skipped = t.s.stopped.Load(); !t.skipped {
		start := time.Now()
		t.results, t.rejects = w.process(t.msg)
		t.finish(w.p, time.Since(start))
	}
	t.end(w.p)
}

// sequences processes the tasks of the group in one batch.
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
	clear(w.group) // a reference would keep the records' memory
	clear(w.msgs)
}

// finish counts the results and rejects of t, and holds their memory and that of the copy of
// its message.
func (t *task) finish(p *Pipeline, took time.Duration) {
	if t.lease != nil { // the collector does both for a large message itself
		t.id = t.recordID()
		t.copy(p)
	}
	for i := range t.results {
		t.bytes += t.results[i].Bytes()
	}
	for i := range t.rejects {
		t.bytes += int64(512 + len(t.rejects[i].Value) + len(t.rejects[i].Key))
	}
	if t.lease != nil && len(t.rejects) > 0 { // a large message has one letter for all its parts
		t.report(p, &t.rejects[0], int64(len(t.rejects)))
	}
	p.budget.hold(t.bytes)
	p.refused.add(t.rejects)
	t.s.src.Processed(t.results, t.rejects, took)
}

// recordID returns the id of the record that t stands for in the order: of a message in
// chunks, that of the first.
func (t *task) recordID() schemas.RecordID {
	if t.parts != nil {
		return t.id
	}
	return t.msg.ID()
}

// refuse makes a reject of a message that no worker sees.
func (t *task) refuse(p *Pipeline, err error) {
	t.rejects = []schemas.Reject{schemas.NewReject(&t.msg, err)}
	t.finish(p, 0)
	t.end(p)
}

// end ends the lease of t, unless its message is large and is read again in parts,
// and closes t.done for the collector.
func (t *task) end(p *Pipeline) {
	if t.lease != nil && t.rows == 0 {
		t.lease.done()
	}
	if t.submitted {
		p.budget.work(-1)
	}
	close(t.done)
}
