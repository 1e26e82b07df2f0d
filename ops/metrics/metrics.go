// Package metrics is the program's set of Prometheus metrics. Its table (table.go) has
// every name and help text: registration, the page of metrics and the board read it.
// Numbers are not made here: stages return them, the pipeline counts them here, and so
// Prometheus appears nowhere outside ops.
//
// Vocabulary: a source is a topic, in the label of that name; a Source is the
// part of the metrics that one partition writes; a stage is fetch, decode, prepare,
// operate, model, batch, publish or commit, or message, all that a worker does with
// one record.
//
// Metrics register into a registry that the caller owns. Labels are few and
// bounded: topic, operator, table, reason; never a frame or an offset. Names of
// metrics never change.
package metrics

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics is the program's set of metrics. Any goroutine may call its methods.
type Metrics struct {
	recordsIn, recordsOut   *prometheus.CounterVec
	frames, points, bytes   *prometheus.CounterVec
	recordSize, recordLimit *prometheus.GaugeVec
	stageSeconds            *prometheus.HistogramVec
	decode                  observer
	latency                 *prometheus.HistogramVec
	errors, rejects         *prometheus.CounterVec
	degenerate, elements    *prometheus.CounterVec
	lagRecords, lagSeconds  *prometheus.GaugeVec
	lastFrame, lastCommit   *prometheus.GaugeVec
	batchAge, batchLimit    *prometheus.GaugeVec
	chunks, assembled       *prometheus.CounterVec
	open, openBytes         *prometheus.GaugeVec // messages of chunks
	outFiles, outRows       *prometheus.CounterVec
	outBytes                *prometheus.CounterVec
	outClosed               *prometheus.GaugeVec
	diskFree, diskSize      *prometheus.GaugeVec   // without a value until the disk is known
	requests, retries       *prometheus.CounterVec // without a value for folders, as sent and received
	sent, received          *prometheus.CounterVec
	inProgress, inflight    *prometheus.GaugeVec
	queueLength, queueLimit *prometheus.GaugeVec
	rebalances              prometheus.Counter
	partitions              prometheus.Gauge
	group                   *prometheus.GaugeVec
	foreign                 *prometheus.CounterVec
	streams                 *prometheus.GaugeVec
	hintsTurned, modelLoads *prometheus.CounterVec
	keptRatio               *prometheus.HistogramVec
	entropy, errorBound     *prometheus.GaugeVec
	ready                   prometheus.Gauge
	connected, writable     prometheus.Gauge
	tokens                  tokenMetrics
	largest                 sync.Map // by topic, the bytes of the largest record as *atomic.Int64
}

// New registers the metrics with reg. version becomes a label of
// entropipe_build_info. New panics when reg has the metrics already, as
// prometheus.MustRegister does.
func New(reg prometheus.Registerer, version string) *Metrics {
	r := newRegister(reg)
	m := &Metrics{
		recordsIn: r.counter("records_in_total"), recordsOut: r.counter("records_out_total"),
		frames: r.counter("frames_total"), points: r.counter("points_total"), bytes: r.counter("bytes_total"),
		recordSize:   r.gauge("record_size_max_bytes"),
		recordLimit:  r.gauge("record_size_limit_bytes"),
		stageSeconds: r.histogram("stage_duration_seconds"),
		latency:      r.histogram("frame_latency_seconds"),
		errors:       r.counter("errors_total"), rejects: r.counter("dlq_records_total"),
		degenerate: r.counter("degenerate_frames_total"), elements: r.counter("result_elements_total"),
		lagRecords: r.gauge("consumer_lag_records"), lagSeconds: r.gauge("consumer_lag_seconds"),
		lastFrame: r.gauge("last_frame_timestamp_seconds"), lastCommit: r.gauge("last_commit_timestamp_seconds"),
		batchAge: r.gauge("batch_age_seconds"), batchLimit: r.gauge("batch_age_limit_seconds"),
		chunks: r.counter("chunks_total"), assembled: r.counter("chunked_frames_total"),
		open: r.gauge("chunked_frames_open"), openBytes: r.gauge("chunked_frames_open_bytes"),
		outFiles: r.counter("output_files_total"), outRows: r.counter("output_rows_total"),
		outBytes: r.counter("output_file_bytes_total"), outClosed: r.gauge("output_last_close_timestamp_seconds"),
		diskFree: r.gauge("output_disk_free_bytes"), diskSize: r.gauge("output_disk_size_bytes"),
		requests: r.counter("store_requests_total"), retries: r.counter("store_retries_total"),
		sent: r.counter("store_sent_bytes_total"), received: r.counter("store_received_bytes_total"),
		inProgress: r.gauge("stage_inflight"), inflight: r.gauge("stage_inflight_bytes"),
		queueLength: r.gauge("queue_length"), queueLimit: r.gauge("queue_capacity"),
		rebalances: r.counter("rebalances_total").WithLabelValues(),
		partitions: r.gauge("consumer_partitions").WithLabelValues(), group: r.gauge("consumer_info"),
		foreign: r.counter("foreign_configurations_total"),
		streams: r.gauge("stage_streams"), hintsTurned: r.counter("stage_hints_turned_total"),
		modelLoads: r.counter("stage_model_loads_total"), keptRatio: r.histogram("points_kept_ratio"),
		entropy: r.gauge("entropy_nats"), errorBound: r.gauge("error_bound"),
		ready:     r.gauge("ready").WithLabelValues(),
		connected: r.gauge("brokers_connected").WithLabelValues(),
		writable:  r.gauge("output_writable").WithLabelValues(),
		tokens:    newTokenMetrics(r),
	}
	m.decode = m.stage("decode")
	m.writable.Set(1)
	r.gauge("build_info").WithLabelValues(version, Revision(), runtime.Version()).Set(1)
	r.done()
	reg.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
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

// Configured reports the age at which batches are committed, 0 for no age, and the
// limit of a record's bytes.
func (m *Metrics) Configured(rollAge time.Duration, maxFrameBytes int64) {
	m.batchLimit.WithLabelValues().Set(rollAge.Seconds())
	m.recordLimit.WithLabelValues().Set(float64(maxFrameBytes))
}

// Group reports the consumer group of this process.
func (m *Metrics) Group(name string) { m.group.WithLabelValues(name).Set(1) }

// Disk reports the free bytes and the size of the file system of the output.
func (m *Metrics) Disk(free, size int64) {
	m.diskFree.WithLabelValues().Set(float64(free))
	m.diskSize.WithLabelValues().Set(float64(size))
}

// Store adds requests to the output's object store, by kind, those of them that were sent again, and
// bytes that were sent and received.
func (m *Metrics) Store(requests map[string]int64, retries, sent, received int64) {
	for op, n := range requests {
		m.requests.WithLabelValues(op).Add(float64(n))
	}
	m.retries.WithLabelValues().Add(float64(retries))
	m.sent.WithLabelValues().Add(float64(sent))
	m.received.WithLabelValues().Add(float64(received))
}

// Ready reports whether brokers answer, whether the output can be written, and
// whether the process is ready: it has started, and both are true.
func (m *Metrics) Ready(connected, writable, ready bool) {
	set := func(g prometheus.Gauge, yes bool) {
		if yes {
			g.Set(1)
		} else {
			g.Set(0)
		}
	}
	set(m.connected, connected)
	set(m.writable, writable)
	set(m.ready, ready)
}

// Memory reports the used bytes and the limit of the pipeline's budget.
func (m *Metrics) Memory(used, limit int64) {
	m.inflight.WithLabelValues("pipeline").Set(float64(used))
	m.queueLimit.WithLabelValues("pipeline_bytes").Set(float64(limit))
}

// Queue reports the length and the capacity of a stage's queue.
func (m *Metrics) Queue(stage string, length, capacity int) {
	m.queueLength.WithLabelValues(stage).Set(float64(length))
	m.queueLimit.WithLabelValues(stage).Set(float64(capacity))
}

// InProgress reports how much a stage has begun and not ended.
func (m *Metrics) InProgress(stage string, n int64) {
	m.inProgress.WithLabelValues(stage).Set(float64(n))
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

// Decoded records the time that the decoding of one message took.
func (m *Metrics) Decoded(d time.Duration) {
	m.decode.Observe(d.Seconds())
}

// Failed counts a failure that does not belong to one record.
func (m *Metrics) Failed(stage, reason string) { m.errors.WithLabelValues(stage, reason).Inc() }

// Consumer adds the rebalances and failures that the consumer counted since the
// last call, and reports how many partitions it has.
func (m *Metrics) Consumer(rebalances, failures int64, partitions int) {
	m.rebalances.Add(float64(rebalances))
	m.errors.WithLabelValues("fetch", "broker").Add(float64(failures))
	m.partitions.Set(float64(partitions))
}
