package pipeline

import (
	"sync/atomic"
	"time"
)

// underWay counts what stages have begun and not ended. Sample alone reads it.
type underWay struct {
	fetch          atomic.Int64 // fetches that wait for brokers
	operate, model atomic.Int64 // messages that workers have
	commit         atomic.Int64 // commits under way, those that wait for the output included
}

// Sample writes the gauges that change without an event, or too often to be written at
// each: lag and age of the open batch of each partition, what waits, what is under
// way, memory. A partition whose commits or workers are stuck causes no event, so the
// caller calls Sample about once a second, from one goroutine. Its cost is that of
// some gauges for each partition.
func (p *Pipeline) Sample() {
	m := p.cfg.Metrics
	batched, inOrder, room := int64(0), 0, 0
	p.mu.Lock()
	for c := range p.collectors {
		c.lag()
		var since time.Time
		if ns := c.opened.Load(); ns != 0 {
			since = p.moment(ns)
		}
		c.src.Open(since)
		batched += c.batched.Load()
		inOrder, room = inOrder+c.slots.len(), room+slotRoom
	}
	p.mu.Unlock()
	m.InProgress("fetch", p.busy.fetch.Load())
	m.InProgress("operate", p.busy.operate.Load())
	m.InProgress("batch", batched)
	m.InProgress("commit", p.busy.commit.Load())
	m.Queue("operate", len(p.clouds), cap(p.clouds))
	m.Queue("batch", inOrder, room)
	if p.cfg.NewTokens != nil {
		m.InProgress("model", p.busy.model.Load())
		m.Queue("model", len(p.sequences), cap(p.sequences))
	}
	m.Memory(p.budget.used(), p.cfg.Memory)
}

// Chunked calls visit for each partition that waits for the further chunks of a message, with
// the message's offset and since when. visit must not call the Pipeline.
func (p *Pipeline) Chunked(visit func(topic string, id int32, offset int64, since time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.collectors {
		if c.stalled.Load() {
			visit(c.topic, c.id, c.waitsAt.Load(), p.moment(c.waits.Load()))
		}
	}
}

// Hidden calls visit for each partition whose end stands still because an open transaction
// hides the records behind it, with the number of their offsets and since when. visit must not
// call the Pipeline.
func (p *Pipeline) Hidden(visit func(topic string, id int32, offsets int64, since time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.collectors {
		if ns := c.hiddenSince.Load(); ns != 0 {
			visit(c.topic, c.id, c.hidden.Load(), p.moment(ns))
		}
	}
}
