// Package metrics is the program's set of Prometheus metrics, with every metric
// name and help text, and the HTTP server that exports them. It is not where
// numbers are made: stages return them, the pipeline counts them here, and so
// Prometheus appears nowhere outside ops.
//
// Vocabulary: a source is a topic, in the label of that name; a Source is the
// part of the metrics that one partition writes; a stage is fetch, operate, model,
// prepare, commit or publish.
//
// Metrics register into a registry that the caller owns. Labels are few and
// bounded: topic, operator, table, reason; never a frame or an offset. Names of
// metrics never change.
package metrics

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"entropipe/schemas"
)

// Metrics is the program's set of metrics. Any goroutine may call its methods.
type Metrics struct {
	recordsIn, recordsOut   *prometheus.CounterVec
	frames, points, bytes   *prometheus.CounterVec
	stageSeconds            *prometheus.HistogramVec
	latency                 *prometheus.HistogramVec
	errors                  *prometheus.CounterVec
	degenerate              *prometheus.CounterVec
	lagRecords, lagSeconds  *prometheus.GaugeVec
	lastFrame               *prometheus.GaugeVec
	outFiles, outRows       *prometheus.CounterVec
	outBytes                *prometheus.CounterVec
	outClosed               *prometheus.GaugeVec
	inflight                *prometheus.GaugeVec
	queueLength, queueLimit *prometheus.GaugeVec
	rebalances              prometheus.Counter
	foreign                 *prometheus.CounterVec
	streams                 *prometheus.GaugeVec
	hintsTurned, modelLoads *prometheus.CounterVec
	keptRatio               *prometheus.HistogramVec
	entropy, errorBound     *prometheus.GaugeVec
	ready                   prometheus.Gauge
	tokens                  tokenMetrics
}

// Bucket limits of the classic histograms: seconds, but for ratioBuckets.
// Operators take from a microsecond (a drawing) to seconds (a million points).
var (
	stageBuckets   = []float64{1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, .1, .25, .5, 1, 2.5, 10}
	ratioBuckets   = []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, .1, .3, 1}
	latencyBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// New registers the metrics with reg. version becomes a label of
// entropipe_build_info. New panics when reg has the metrics already, as
// prometheus.MustRegister does.
func New(reg prometheus.Registerer, version string) *Metrics {
	m := &Metrics{}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "entropipe_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "entropipe_" + name, Help: help}, labels)
		reg.MustRegister(g)
		return g
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "entropipe_" + name,
			Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160}, labels)
		reg.MustRegister(h)
		return h
	}
	m.recordsIn = counter("records_in_total", "Kafka records that entered a stage.", "stage", "source")
	m.recordsOut = counter("records_out_total", "Kafka records that left a stage.", "stage", "source")
	m.frames = counter("frames_total", "Point clouds that entered (in) or left (out) a stage.", "stage",
		"source", "direction")
	m.points = counter("points_total", "Points that entered (in) or left (out) a stage.", "stage",
		"source", "direction")
	m.bytes = counter("bytes_total", "Bytes of record values that were fetched or published, and of files that were "+
		"committed.", "stage", "source", "direction")
	m.stageSeconds = histogram("stage_duration_seconds",
		"Time that a stage or an operator spent on one message or frame.", stageBuckets, "stage", "op")
	m.latency = histogram("frame_latency_seconds", "Time from a record's Kafka timestamp to the commit of its rows.",
		latencyBuckets, "source")
	m.errors = counter("errors_total", "Records and frames that were refused, and failures, by stage and reason.",
		"stage", "reason")
	m.degenerate = counter("degenerate_frames_total",
		"Frames for which an operator's result is degenerate, by operator and kind.", "op", "kind")
	m.lagRecords = gauge("consumer_lag_records",
		"Offsets from the end of the committed records to the end of the partition.", "topic", "partition")
	m.lagSeconds = gauge("consumer_lag_seconds",
		"Age of the last committed record while the partition lags; before the first commit, age of the first "+
			"record read; 0 without lag.", "topic", "partition")
	m.lastFrame = gauge("last_frame_timestamp_seconds", "Unix time of the commit of the last frame or sequence.",
		"source")
	m.outFiles = counter("output_files_total", "Parquet files that were committed.", "table")
	m.outRows = counter("output_rows_total", "Rows that were committed.", "table")
	m.outBytes = counter("output_file_bytes_total", "Bytes of the Parquet files that were committed.", "table")
	m.outClosed = gauge("output_last_close_timestamp_seconds", "Unix time of the last commit of a file of the table.",
		"table")
	m.inflight = gauge("stage_inflight_bytes", "Bytes of memory that fetched records, results and buffered rows take.",
		"stage")
	m.queueLength = gauge("queue_length", "Messages that wait for a worker.", "stage")
	m.queueLimit = gauge("queue_capacity", "Limit at which back-pressure begins; pipeline_bytes: bytes of memory.",
		"stage")
	m.streams = gauge("stage_streams",
		"Streams (a data set and a sensor each) by the state of their hints: on, off (the stream drifted), foreign "+
			"(the model is for another stream).", "hints")
	m.hintsTurned = counter("stage_hints_turned_total", "Times that drift turned the hints of a stream on or off.",
		"to")
	m.modelLoads = counter("stage_model_loads_total",
		"Models that were read again because their file changed, by result: ok, failed.", "result")
	m.keptRatio = histogram("points_kept_ratio",
		"Fraction of a frame's points that an operator could not drop at once.", ratioBuckets, "op")
	m.entropy = gauge("entropy_nats",
		"Range-partition entropy of the last measured frame, nats a point: bounds (lower, upper), estimate (f).",
		"source", "op", "bound")
	m.errorBound = gauge("error_bound", "Exact error of the last approximated result, in units of the coordinates.",
		"source", "op")
	m.foreign = counter("foreign_configurations_total",
		"Commits to this output by other processes that are newer than a commit of this process and have another "+
			"configuration.", "topic")
	m.rebalances = prometheus.NewCounter(prometheus.CounterOpts{Name: "entropipe_rebalances_total",
		Help: "Times that the consumer group assigned its partitions anew while this process was a member."})
	m.ready = prometheus.NewGauge(prometheus.GaugeOpts{Name: "entropipe_ready",
		Help: "1 while broker and output are connected, else 0."})
	m.tokens = newTokenMetrics(counter, histogram, reg)
	reg.MustRegister(m.rebalances, m.ready, buildInfo(version), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "entropipe_build_info",
		Help:        "Always 1; the labels name the build.",
		ConstLabels: prometheus.Labels{"version": version, "revision": Revision(), "goversion": runtime.Version()}})
	g.Set(1)
	return g
}

// Revision returns the version control revision that the program was built
// from, or "unknown" if the build has no record of it.
func Revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

// ForeignConfiguration counts a commit to the output that another process made
// with another configuration.
func (m *Metrics) ForeignConfiguration(topic string) { m.foreign.WithLabelValues(topic).Inc() }

// Ready reports whether broker and output are connected.
func (m *Metrics) Ready(ok bool) {
	if ok {
		m.ready.Set(1)
	} else {
		m.ready.Set(0)
	}
}

// Memory reports the used bytes and the limit of the pipeline's budget.
func (m *Metrics) Memory(used, limit int64) {
	m.inflight.WithLabelValues("pipeline").Set(float64(used))
	m.queueLimit.WithLabelValues("pipeline_bytes").Set(float64(limit))
}

// Streams reports the number of streams with hints (on), without hints since they
// drifted (off), and that the model is not for (foreign).
func (m *Metrics) Streams(on, off, foreign int) {
	m.streams.WithLabelValues("on").Set(float64(on))
	m.streams.WithLabelValues("off").Set(float64(off))
	m.streams.WithLabelValues("foreign").Set(float64(foreign))
}

// HintsTurnedOn counts a stream whose hints drift turned on again.
func (m *Metrics) HintsTurnedOn() { m.hintsTurned.WithLabelValues("on").Inc() }

// HintsTurnedOff counts a stream whose hints drift turned off.
func (m *Metrics) HintsTurnedOff() { m.hintsTurned.WithLabelValues("off").Inc() }

// ModelLoaded counts one reading of a model whose file has changed. err is nil if
// the model is in use now.
func (m *Metrics) ModelLoaded(err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.modelLoads.WithLabelValues(result).Inc()
}

// Prepared records the time that the EntropyNet stage took for a frame.
func (m *Metrics) Prepared(mode string, d time.Duration) {
	m.stageSeconds.WithLabelValues("prepare", mode).Observe(d.Seconds())
}

// Kept records the fraction of a frame's points that an operator could not drop
// at once.
func (m *Metrics) Kept(op string, ratio float64) { m.keptRatio.WithLabelValues(op).Observe(ratio) }

// Queued reports the number of messages that wait for a worker.
func (m *Metrics) Queued(n int) { m.queueLength.WithLabelValues("operate").Set(float64(n)) }

// Failed counts a failure that does not belong to one record.
func (m *Metrics) Failed(stage, reason string) { m.errors.WithLabelValues(stage, reason).Inc() }

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

// Source is the part of the metrics that one partition writes, with the labels
// looked up once. Any goroutine may call its methods.
type Source struct {
	m                               *Metrics
	topic                           string
	in, out                         prometheus.Counter
	framesIn, pointsIn, bytesIn     prometheus.Counter
	framesOut, bytesOut             prometheus.Counter
	latency, decode, commit         observer
	lastFrame, lagRecords, lagSecon prometheus.Gauge
	ops                             [schemas.NumOps]observer
	sequences                       sequenceSource
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
		latency:   observer{of: m.latency, labels: []string{topic}}, lastFrame: m.lastFrame.WithLabelValues(topic),
		lagRecords: m.lagRecords.WithLabelValues(topic, p), lagSecon: m.lagSeconds.WithLabelValues(topic, p),
		decode: observer{of: m.stageSeconds, labels: []string{"message", "all"}},
		commit: observer{of: m.stageSeconds, labels: []string{"commit", "all"}}}
	s.sequences = m.tokens.forTopic(topic)
	for op := range schemas.NumOps {
		s.ops[op].of, s.ops[op].labels = m.stageSeconds, []string{"operate", op.String()}
	}
	return s
}

// Fetched counts the records of one fetch and the bytes of their values.
func (s *Source) Fetched(f *schemas.Fetched) {
	s.in.Add(float64(len(f.Messages)))
	var n int64
	for i := range f.Messages {
		n += int64(len(f.Messages[i].Value))
	}
	s.bytesIn.Add(float64(n))
}

// Processed counts the results and rejects of one message or part, and records
// the time that it took in a worker.
func (s *Source) Processed(results []schemas.Result, rejects []schemas.Reject, took time.Duration) {
	s.decode.Observe(took.Seconds())
	var points, frames int64
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
			if o.Status != schemas.StatusOK {
				s.m.degenerate.WithLabelValues(op.String(), string(o.Status)).Inc()
			}
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

// measured reports the entropy of a frame.
func (s *Source) measured(es []schemas.Entropy) {
	for i := range es {
		e := &es[i]
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

// Latency records the time from one record's Kafka timestamp to its commit.
func (s *Source) Latency(d time.Duration) { s.latency.Observe(d.Seconds()) }

// Sequences counts the committed sequences, and their tokens, whose results
// Committed does not see: the results of a large message that were staged before
// its commit.
func (s *Source) Sequences(sequences, tokens int64) {
	s.sequences.out.Add(float64(sequences))
	s.sequences.tokensOut.Add(float64(tokens))
}

// Committed counts the records, results and files of one commit; took is the time
// of the commit.
func (s *Source) Committed(b *schemas.Batch, c schemas.Committed, took time.Duration) {
	now := float64(time.Now().UnixMilli()) / 1e3
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
		s.lagSecon.Set(time.Since(last).Seconds())
	} else {
		s.lagSecon.Set(0)
	}
}

// Revoked deletes the lag gauges of a partition that this process has lost.
func (m *Metrics) Revoked(topic string, partition int32) {
	p := strconv.Itoa(int(partition))
	m.lagRecords.DeleteLabelValues(topic, p)
	m.lagSeconds.DeleteLabelValues(topic, p)
}

// Consumer adds the rebalances and failures that the consumer counted since the
// last call, and reports whether the brokers answer.
func (m *Metrics) Consumer(rebalances, failures int64, connected bool) {
	m.rebalances.Add(float64(rebalances))
	m.errors.WithLabelValues("fetch", "broker").Add(float64(failures))
	m.Ready(connected)
}
