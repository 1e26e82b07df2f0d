package pipeline

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// counters are the totals of one topic since the start.
type counters struct {
	messages, frames, points, rejects atomic.Int64
	bytesIn, rows, fileBytes, batches atomic.Int64
	published, publishedBytes         atomic.Int64
	found, foundBytes                 atomic.Int64
	letters, letterBytes              atomic.Int64
	sequences, tokens                 atomic.Int64
	firstCommit                       atomic.Int64 // ticks; 0 before the first commit
	latency                           metrics.Quantiles

	mu     sync.Mutex
	warned map[string]bool  // reasons of rejects that have a line in the log
	tables map[string]int64 // rows of every table
}

// filled adds the rows of a commit to those of every table.
func (c *counters) filled(files []schemas.TableFiles) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil {
		c.tables = map[string]int64{}
	}
	for _, f := range files {
		c.tables[f.Table] += f.Rows
	}
}

// TableRows returns the number of committed rows of every table since the start. Any
// goroutine may call it.
func (p *Pipeline) TableRows() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows := map[string]int64{}
	for _, c := range p.stats {
		c.mu.Lock()
		for table, n := range c.tables {
			rows[table] += n
		}
		c.mu.Unlock()
	}
	return rows
}

// Stats is a snapshot of totals since the start. It counts committed records only,
// but for Published, Found, Letters and their bytes.
type Stats struct {
	Messages, Frames, Points, Rejects int64         // records, point clouds, their points, rejects
	BytesIn, Rows, FileBytes, Batches int64         // bytes of keys and values, rows, bytes of files, commits
	Sequences, Tokens                 int64         // token sequences, not in Frames, and the tokens read of them
	Published, PublishedBytes         int64         // acknowledged records and bytes of their values, committed or not
	Found, FoundBytes                 int64         // the same of published results
	Letters, LetterBytes              int64         // the same of dead letters
	FirstCommit                       time.Time     // zero before the first commit
	LatencyP50, LatencyP99            time.Duration // from a record's Kafka timestamp to its commit
}

// Stats returns the totals of the given topics, or of all topics if none is given.
func (p *Pipeline) Stats(topics ...string) Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	var s Stats
	var latency metrics.Quantiles
	for topic, c := range p.stats {
		if len(topics) > 0 && !slices.Contains(topics, topic) {
			continue
		}
		s.Messages += c.messages.Load()
		s.Frames += c.frames.Load()
		s.Points += c.points.Load()
		s.Rejects += c.rejects.Load()
		s.BytesIn += c.bytesIn.Load()
		s.Rows += c.rows.Load()
		s.FileBytes += c.fileBytes.Load()
		s.Batches += c.batches.Load()
		s.Sequences += c.sequences.Load()
		s.Tokens += c.tokens.Load()
		s.Published += c.published.Load()
		s.PublishedBytes += c.publishedBytes.Load()
		s.Found += c.found.Load()
		s.FoundBytes += c.foundBytes.Load()
		s.Letters += c.letters.Load()
		s.LetterBytes += c.letterBytes.Load()
		if at := c.firstCommit.Load(); at != 0 && (s.FirstCommit.IsZero() || p.moment(at).Before(s.FirstCommit)) {
			s.FirstCommit = p.moment(at)
		}
		latency.AddAll(&c.latency)
	}
	s.LatencyP50, s.LatencyP99 = latency.At(.5), latency.At(.99)
	return s
}

// Topics returns the topics of which this process has read something, sorted.
func (p *Pipeline) Topics() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.stats))
}

// Latencies calls visit for each latency of a topic, with 2 % of error, that was counted since
// the last call with the same seen, which holds what was counted until then. The zero seen
// begins at the start. One goroutine at a time may use a seen.
func (p *Pipeline) Latencies(topic string, seen *metrics.Quantiles, visit func(latency time.Duration, n int64)) {
	p.mu.Lock()
	c := p.stats[topic]
	p.mu.Unlock()
	if c != nil {
		c.latency.Since(seen, visit)
	}
}

// statsOf returns the counters of a topic, and makes them at the first call.
func (p *Pipeline) statsOf(topic string) *counters {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.stats[topic]
	if c == nil {
		c = &counters{}
		p.stats[topic] = c
	}
	return c
}

// warnOfRejects logs the first reject of every reason in a topic. Table rejects has
// all of them, and ten thousand lines would hide the rest of the log.
func (p *Pipeline) warnOfRejects(c *counters, b *schemas.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Rejects {
		r := &b.Rejects[i]
		if c.warned[r.Reason] {
			continue
		}
		if c.warned == nil {
			c.warned = map[string]bool{}
		}
		c.warned[r.Reason] = true
		p.cfg.Log.Warn("refused a frame or message; table rejects has it and all later ones with this reason",
			"topic", b.Topic, "partition", b.Partition, "offset", r.Offset, "index", r.Index,
			"stage", r.Stage, "reason", r.Reason, "message", r.Message)
	}
}

// tally counts results and rejects.
type tally struct{ frames, points, sequences, tokens, rejects int64 }

// add counts the results and rejects of b.
func (c *tally) add(b *schemas.Batch) {
	c.rejects += int64(len(b.Rejects))
	for i := range b.Results {
		if t := b.Results[i].Tokens; t != nil {
			c.sequences++
			c.tokens += int64(t.NTokens)
		} else {
			c.frames++
			c.points += int64(b.Results[i].NPoints)
		}
	}
}
