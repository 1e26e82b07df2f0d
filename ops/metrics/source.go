package metrics

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/schemas"
)

// observer is one histogram of a vector, looked up at its first value. A histogram
// that was looked up earlier would be exported with all its buckets, though its
// operator or table never runs.
type observer struct {
	of     *prometheus.HistogramVec
	labels []string
	once   sync.Once
	h      prometheus.Observer
}

func (o *observer) Observe(v float64) {
	o.once.Do(func() { o.h = o.of.WithLabelValues(o.labels...) })
	o.h.Observe(v)
}

// found counts what an operator found, looked up at its first value like an observer.
type found struct {
	once sync.Once
	c    prometheus.Counter
}

func (f *found) add(m *Metrics, op schemas.Op, n int64) {
	f.once.Do(func() { f.c = m.elements.WithLabelValues(op.String()) })
	f.c.Add(float64(n))
}

// Source is the part of the metrics that one partition writes, with the labels
// looked up once. Any goroutine may call its methods.
type Source struct {
	m                           *Metrics
	topic                       string
	in, out                     prometheus.Counter
	framesIn, pointsIn, bytesIn prometheus.Counter
	framesOut, bytesOut         prometheus.Counter
	latency, message, commit    observer
	fetch, batch, publish       observer
	lastFrame, lastCommit       prometheus.Gauge
	lagRecords, lagSeconds      prometheus.Gauge
	batchAge                    prometheus.Gauge
	open, openBytes             prometheus.Gauge // messages of chunks
	largest                     *atomic.Int64    // bytes of the topic's largest record
	ops                         [schemas.NumOps]observer
	found                       [schemas.NumOps]found
	sequences                   sequenceSource
}

// ForPartition returns the metrics of one partition.
func (m *Metrics) ForPartition(topic string, partition int32) *Source {
	p := strconv.Itoa(int(partition))
	s := &Source{m: m, topic: topic,
		in: m.recordsIn.WithLabelValues("fetch", topic), out: m.recordsOut.WithLabelValues("commit", topic),
		framesIn:  m.frames.WithLabelValues("operate", topic, "in"),
		framesOut: m.frames.WithLabelValues("commit", topic, "out"),
		pointsIn:  m.points.WithLabelValues("operate", topic, "in"),
		bytesIn:   m.bytes.WithLabelValues("fetch", topic, "in"),
		bytesOut:  m.bytes.WithLabelValues("commit", topic, "out"),
		latency:   observer{of: m.latency, labels: []string{topic}},
		lastFrame: m.lastFrame.WithLabelValues(topic), lastCommit: m.lastCommit.WithLabelValues(topic, p),
		lagRecords: m.lagRecords.WithLabelValues(topic, p), lagSeconds: m.lagSeconds.WithLabelValues(topic, p),
		batchAge: m.batchAge.WithLabelValues(topic, p),
		open:     m.open.WithLabelValues(topic, p), openBytes: m.openBytes.WithLabelValues(topic, p),
		message: m.stage("message"), commit: m.stage("commit"),
		fetch: m.stage("fetch"), batch: m.stage("batch"), publish: m.stage("publish")}
	s.sequences = m.tokens.forTopic(topic)
	m.foreign.WithLabelValues(topic) // from 0 on: Prometheus sees no increase from nothing to 1
	var first bool
	if s.largest, first = m.largestOf(topic); first {
		s.lastFrame.Set(unixSeconds(time.Now()))
	}
	for op := range schemas.NumOps {
		s.ops[op].of, s.ops[op].labels = m.stageSeconds, []string{"operate", op.String()}
	}
	return s
}

// stage returns the durations of a stage that has no operators.
func (m *Metrics) stage(name string) observer {
	return observer{of: m.stageSeconds, labels: []string{name, "all"}}
}

// largestOf returns the bytes of a topic's largest record, and whether this is the
// first call for the topic.
func (m *Metrics) largestOf(topic string) (bytes *atomic.Int64, first bool) {
	found, known := m.largest.LoadOrStore(topic, new(atomic.Int64))
	return found.(*atomic.Int64), !known
}

// Fetched counts the records of one fetch and the bytes of their values. took is the
// time of the fetch, which counts if it brought records.
func (s *Source) Fetched(f *schemas.Fetched, took time.Duration) {
	if len(f.Messages) == 0 {
		return
	}
	s.fetch.Observe(took.Seconds())
	s.in.Add(float64(len(f.Messages)))
	var n, most int64
	for i := range f.Messages {
		bytes := int64(len(f.Messages[i].Value))
		n, most = n+bytes, max(most, bytes)
	}
	s.bytesIn.Add(float64(n))
	for known := s.largest.Load(); most > known; known = s.largest.Load() {
		if s.largest.CompareAndSwap(known, most) {
			s.m.recordSize.WithLabelValues(s.topic).Set(float64(most))
		}
	}
}

// Processed counts the results and rejects of one message or part, and records
// the time that it took in a worker.
func (s *Source) Processed(results []schemas.Result, rejects []schemas.Reject, took time.Duration) {
	s.message.Observe(took.Seconds())
	var points, frames int64
	var elements [schemas.NumOps]int64
	for i := range results {
		r := &results[i]
		if r.Tokens != nil {
			s.sequences.read(r.Tokens)
			continue
		}
		frames++
		points += int64(r.NPoints)
		for op := range schemas.NumOps {
			o := &r.Ops[op]
			if o.Status == "" || o.Status == schemas.StatusNotRun {
				continue
			}
			s.ops[op].Observe(float64(o.Ns) * 1e-9)
			elements[op] += int64(o.N)
			if o.Status != schemas.StatusOK {
				s.m.degenerate.WithLabelValues(op.String(), string(o.Status)).Inc()
			}
		}
	}
	for op, n := range elements {
		if n > 0 {
			s.found[op].add(s.m, schemas.Op(op), n)
		}
	}
	for i := range results {
		s.measured(results[i].Entropy)
		s.approximated(&results[i])
	}
	s.framesIn.Add(float64(frames))
	s.pointsIn.Add(float64(points))
	for i := range rejects {
		s.m.errors.WithLabelValues(rejects[i].Stage, rejects[i].Reason).Inc()
	}
}

// measured reports the entropy of a frame as received.
func (s *Source) measured(es []schemas.Entropy) {
	for i := range es {
		e := &es[i]
		if e.Stage == schemas.StageAfter {
			continue
		}
		set := func(bound string, v float64) {
			s.m.entropy.WithLabelValues(s.topic, e.Op.String(), bound).Set(v)
		}
		set("lower", e.Lower)
		set("upper", e.Upper)
		if e.F != nil {
			set("f", *e.F)
		}
	}
}

// approximated reports the errors of a frame's results, if they are not exact.
func (s *Source) approximated(r *schemas.Result) {
	set := func(op string, v *float64) {
		if v != nil {
			s.m.errorBound.WithLabelValues(s.topic, op).Set(*v)
		}
	}
	if r.Hull != nil {
		set("hull2d", r.Hull.ErrorBound)
	}
	if r.Hull3 != nil {
		set("hull3d", r.Hull3.ErrorBound)
	}
	for i := range r.Maxima {
		op := "maxima2d"
		if strings.Contains(r.Maxima[i].Directions, "z") {
			op = "maxima3d"
		}
		set(op, r.Maxima[i].ErrorBound)
	}
}

// Published counts one acknowledged record: the bytes of its value, and its points
// if it is a pruned frame, else 0.
func (s *Source) Published(bytes, points int64) {
	s.m.recordsOut.WithLabelValues("publish", s.topic).Inc()
	s.m.bytes.WithLabelValues("publish", s.topic, "out").Add(float64(bytes))
	s.m.points.WithLabelValues("publish", s.topic, "out").Add(float64(points))
}

// PublishedResults counts one acknowledged record of results, and the bytes of its value.
func (s *Source) PublishedResults(bytes int64) {
	s.m.recordsOut.WithLabelValues("results", s.topic).Inc()
	s.m.bytes.WithLabelValues("results", s.topic, "out").Add(float64(bytes))
}

// DeadLetter counts one acknowledged dead letter, and the bytes of its value.
func (s *Source) DeadLetter(bytes int64) {
	s.m.recordsOut.WithLabelValues("dead_letter", s.topic).Inc()
	s.m.bytes.WithLabelValues("dead_letter", s.topic, "out").Add(float64(bytes))
}

// Latency records the time from one record's Kafka timestamp to its commit. A negative one,
// of clocks that differ, counts as none: the sum of a histogram must not fall.
func (s *Source) Latency(d time.Duration) { s.latency.Observe(max(0, d.Seconds())) }

// Sequences counts the committed sequences, and their tokens, whose results
// Committed does not see: the results of a large message that were staged before
// its commit.
func (s *Source) Sequences(sequences, tokens int64) {
	s.sequences.out.Add(float64(sequences))
	s.sequences.tokensOut.Add(float64(tokens))
}

// Rejected counts committed rows of table rejects by their reason: those that
// Committed does not see, as Sequences does.
func (s *Source) Rejected(reasons map[string]int64) {
	for reason, n := range reasons {
		s.m.rejects.WithLabelValues(s.topic, reason).Add(float64(n))
	}
}

// Batch records the age of a batch whose commit begins, and the time that the commit
// then waited for acknowledgements of published records.
func (s *Source) Batch(age, published time.Duration) {
	s.batch.Observe(age.Seconds())
	s.publish.Observe(published.Seconds())
}

// Committed counts the records, results, rejects and files of one commit; took is the
// time of the commit.
func (s *Source) Committed(b *schemas.Batch, c schemas.Committed, took time.Duration) {
	now := unixSeconds(time.Now())
	s.lastCommit.Set(now)
	for i := range b.Rejects {
		s.m.rejects.WithLabelValues(s.topic, b.Rejects[i].Reason).Inc()
	}
	s.out.Add(float64(b.Messages))
	var frames int64
	for i := range b.Results {
		if t := b.Results[i].Tokens; t != nil {
			s.sequences.committed(t)
		} else {
			frames++
		}
	}
	s.framesOut.Add(float64(frames))
	s.commit.Observe(took.Seconds())
	if len(b.Results) > 0 {
		s.lastFrame.Set(now)
	}
	for _, t := range c.Tables {
		s.m.outFiles.WithLabelValues(t.Table).Add(float64(t.Files))
		s.m.outRows.WithLabelValues(t.Table).Add(float64(t.Rows))
		s.m.outBytes.WithLabelValues(t.Table).Add(float64(t.Bytes))
		s.m.outClosed.WithLabelValues(t.Table).Set(now)
		s.bytesOut.Add(float64(t.Bytes))
	}
}

// Lag reports that the partition is records behind. last is the Kafka timestamp of
// the last committed record; before the first commit, of the first record read.
// The lag in seconds is now-last, or 0 if records is 0 or last is zero.
func (s *Source) Lag(records int64, last time.Time) {
	s.lagRecords.Set(float64(records))
	if records > 0 && !last.IsZero() {
		s.lagSeconds.Set(max(0, time.Since(last).Seconds())) // not negative where clocks differ
	} else {
		s.lagSeconds.Set(0)
	}
}

// Open reports when the first record of the open batch entered it; zero if the batch
// is empty.
func (s *Source) Open(since time.Time) {
	if since.IsZero() {
		s.batchAge.Set(0)
	} else {
		s.batchAge.Set(time.Since(since).Seconds())
	}
}

// Chunks counts records that are chunks.
type Chunks struct {
	New       int64 // chunks that their message lacked
	Duplicate int64 // chunks that their message has, or whose message is decided
	Ahead     int64 // chunks of messages that an earlier commit has
}

// Chunks counts chunks that were read.
func (s *Source) Chunks(c Chunks) {
	for kind, n := range map[string]int64{"new": c.New, "duplicate": c.Duplicate, "ahead": c.Ahead} {
		if n > 0 {
			s.m.chunks.WithLabelValues(s.topic, kind).Add(float64(n))
		}
	}
}

// Assembled counts a message of chunks that is decided. reason is that of its reject; empty: it
// is whole.
func (s *Source) Assembled(reason string) {
	if reason == "" {
		reason = "ok"
	}
	s.m.assembled.WithLabelValues(s.topic, reason).Inc()
}

// OpenChunked reports the messages of chunks that wait for more of them, and the bytes of
// memory that they take.
func (s *Source) OpenChunked(messages int, bytes int64) {
	s.open.Set(float64(messages))
	s.openBytes.Set(float64(bytes))
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

// Assigned begins the time without a commit of a partition that this process has got.
func (m *Metrics) Assigned(topic string, partition int32) {
	m.lastCommit.WithLabelValues(topic, strconv.Itoa(int(partition))).Set(unixSeconds(time.Now()))
}

// Revoked deletes the gauges of a partition that this process has lost.
func (m *Metrics) Revoked(topic string, partition int32) {
	p := strconv.Itoa(int(partition))
	for _, g := range []*prometheus.GaugeVec{m.lagRecords, m.lagSeconds, m.lastCommit, m.batchAge, m.open,
		m.openBytes} {
		g.DeleteLabelValues(topic, p)
	}
}
