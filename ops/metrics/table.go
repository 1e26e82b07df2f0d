package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Prefix begins the name of each metric of the table.
const Prefix = "entropipe_"

// Kind is the type of a metric.
type Kind string

// The kinds of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram" // classic buckets, and native ones for servers that ask for them
)

// Unit is the unit of a metric's values. Names end with it, but for None.
type Unit string

// The units of metrics. Ratios lie between 0 and about 1.
const (
	None      Unit = ""
	Seconds   Unit = "seconds"
	Timestamp Unit = "timestamp" // seconds since 1970, UTC
	Bytes     Unit = "bytes"
	Ratio     Unit = "ratio"
)

// Definition says what a metric is. Registration, the table of docs/metrics.md and the
// board read it, so that none of them can differ from another.
type Definition struct {
	Name    string // without Prefix
	Kind    Kind
	Unit    Unit
	Help    string
	Labels  []string  // in the order of their values
	Buckets []float64 // upper limits of a histogram's classic buckets
}

// Bucket limits of the classic histograms: seconds, ratios, sequences.
// Operators take from a microsecond (a drawing) to seconds (a million points).
var (
	stageBuckets   = []float64{1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, .1, .25, .5, 1, 2.5, 10}
	ratioBuckets   = []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, .1, .3, 1}
	latencyBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	fillBuckets    = []float64{.1, .25, .5, .75, .9, .95, .98, 1, 1.5, 2}
	sizeBuckets    = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024}
	massBuckets    = []float64{.1, .25, .5, .75, .9, .95, .98, .99, .999, 1}
	driftBuckets   = []float64{1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, .01, .03, .1, .3, 1}
)

// Definitions returns the metrics of the program in the order of the documentation.
// The caller owns the slice, but not the slices in it. The metrics of the Go runtime
// and of the process, go_ and process_, are not among them.
func Definitions() []Definition {
	return slices.Concat(flowMetrics, partitionMetrics, chunkMetrics, outputMetrics, stageMetrics, tokenMetricsTable,
		stateMetrics)
}

// flowMetrics count what passes.
var flowMetrics = []Definition{
	{Name: "records_in_total", Kind: Counter, Labels: []string{"stage", "source"},
		Help: "Kafka records that entered a stage."},
	{Name: "records_out_total", Kind: Counter, Labels: []string{"stage", "source"},
		Help: "Kafka records that left a stage."},
	{Name: "frames_total", Kind: Counter, Labels: []string{"stage", "source", "direction"},
		Help: "Point clouds that entered (in) or left (out) a stage."},
	{Name: "points_total", Kind: Counter, Labels: []string{"stage", "source", "direction"},
		Help: "Points that entered (in) or left (out) a stage."},
	{Name: "bytes_total", Kind: Counter, Unit: Bytes, Labels: []string{"stage", "source", "direction"},
		Help: "Bytes of record values that were fetched or published, and of files that were committed."},
	{Name: "record_size_max_bytes", Kind: Gauge, Unit: Bytes, Labels: []string{"source"},
		Help: "Bytes of the largest record value that this process fetched."},
	{Name: "record_size_limit_bytes", Kind: Gauge, Unit: Bytes,
		Help: "Limit of a record's bytes after decompression (--max-frame-bytes)."},
	{Name: "frame_latency_seconds", Kind: Histogram, Unit: Seconds, Labels: []string{"source"},
		Buckets: latencyBuckets, Help: "Time from a record's Kafka timestamp to the commit of its rows."},
	{Name: "last_frame_timestamp_seconds", Kind: Gauge, Unit: Timestamp, Labels: []string{"source"},
		Help: "Unix time of the commit of the last frame or sequence; before the first one, when this process began " +
			"to " +
			"read the topic."},
	{Name: "errors_total", Kind: Counter, Labels: []string{"stage", "reason"},
		Help: "Records and frames that were refused, and failures, by stage and reason."},
	{Name: "dlq_records_total", Kind: Counter, Labels: []string{"source", "reason"},
		Help: "Rows of table rejects that were committed: records and frames that cannot be used, by reason."},
}

// partitionMetrics follow each partition that the process has.
var partitionMetrics = []Definition{
	{Name: "consumer_lag_records", Kind: Gauge, Labels: []string{"topic", "partition"},
		Help: "Offsets from the end of the committed records to the end of the partition."},
	{Name: "consumer_lag_seconds", Kind: Gauge, Unit: Seconds, Labels: []string{"topic", "partition"},
		Help: "Age of the last committed record while the partition lags; before the first commit, age of the first " +
			"record read; 0 without lag."},
	{Name: "last_commit_timestamp_seconds", Kind: Gauge, Unit: Timestamp, Labels: []string{"topic", "partition"},
		Help: "Unix time of the partition's last commit; before the first one, when this process began to read it."},
	{Name: "batch_age_seconds", Kind: Gauge, Unit: Seconds, Labels: []string{"topic", "partition"},
		Help: "Time since the first record of the open batch entered it; 0 while the batch is empty."},
	{Name: "batch_age_limit_seconds", Kind: Gauge, Unit: Seconds,
		Help: "Age at which a batch is committed (--roll-age); 0: at no age."},
	{Name: "rebalances_total", Kind: Counter,
		Help: "Times that the consumer group assigned its partitions anew while this process was a member."},
	{Name: "consumer_partitions", Kind: Gauge, Help: "Partitions that this process has."},
	{Name: "consumer_info", Kind: Gauge, Labels: []string{"group"},
		Help: "Always 1; the label names the consumer group."},
}

// chunkMetrics follow messages that come in several records.
var chunkMetrics = []Definition{
	{Name: "chunks_total", Kind: Counter, Labels: []string{"source", "kind"},
		Help: "Records that are chunks of a message, by kind: new; duplicate (their message has them, or is " +
			"decided); ahead (an earlier commit has their message)."},
	{Name: "chunked_frames_total", Kind: Counter, Labels: []string{"source", "result"},
		Help: "Messages of chunks that were decided, by result: ok (assembled), or the reason of their reject."},
	{Name: "chunked_frames_open", Kind: Gauge, Labels: []string{"topic", "partition"},
		Help: "Messages of which some chunks were read, and others were not."},
	{Name: "chunked_frames_open_bytes", Kind: Gauge, Unit: Bytes, Labels: []string{"topic", "partition"},
		Help: "Bytes of memory that these messages take."},
}

// outputMetrics follow tables and the disk below them.
var outputMetrics = []Definition{
	{Name: "output_files_total", Kind: Counter, Labels: []string{"table"},
		Help: "Parquet files that were committed."},
	{Name: "output_rows_total", Kind: Counter, Labels: []string{"table"}, Help: "Rows that were committed."},
	{Name: "output_file_bytes_total", Kind: Counter, Unit: Bytes, Labels: []string{"table"},
		Help: "Bytes of the Parquet files that were committed."},
	{Name: "output_last_close_timestamp_seconds", Kind: Gauge, Unit: Timestamp, Labels: []string{"table"},
		Help: "Unix time of the last commit of a file of the table."},
	{Name: "output_disk_free_bytes", Kind: Gauge, Unit: Bytes,
		Help: "Bytes that this process may still write to the file system of the output; absent for stores " +
			"without one."},
	{Name: "output_disk_size_bytes", Kind: Gauge, Unit: Bytes,
		Help: "Size of the file system of the output; absent for stores without one."},
	{Name: "output_writable", Kind: Gauge, Help: "0 while a partition waits for an output that cannot be written, " +
		"else 1."},
	{Name: "store_requests_total", Kind: Counter, Labels: []string{"op"},
		Help: "Requests to the object store of the output, by kind: put, copy, get, head, list, delete, other; " +
			"absent for folders."},
	{Name: "store_sent_bytes_total", Kind: Counter, Unit: Bytes,
		Help: "Bytes of records and files that were sent to the object store; absent for folders."},
	{Name: "store_received_bytes_total", Kind: Counter, Unit: Bytes,
		Help: "Bytes of the object store's answers; absent for folders."},
	{Name: "store_retries_total", Kind: Counter,
		Help: "Requests to the object store that were sent again, after a fault; absent for folders."},
	{Name: "foreign_configurations_total", Kind: Counter, Labels: []string{"topic"},
		Help: "Commits to this output by other processes that are newer than a commit of this process and have " +
			"another configuration."},
}

// stageMetrics follow the stages of the pipeline and the operators.
var stageMetrics = []Definition{
	{Name: "stage_duration_seconds", Kind: Histogram, Unit: Seconds, Labels: []string{"stage", "op"},
		Buckets: stageBuckets,
		Help: "Time that a stage or an operator spent on one message or frame; fetch: until records came; batch: age " +
			"of a batch when its commit began; publish: wait for acknowledgements before a commit."},
	{Name: "stage_inflight", Kind: Gauge, Labels: []string{"stage"},
		Help: "Fetches, messages in workers (operate, model), records in open batches (batch), and commits under way."},
	{Name: "stage_inflight_bytes", Kind: Gauge, Unit: Bytes, Labels: []string{"stage"},
		Help: "Bytes of memory that fetched records, results and buffered rows take."},
	{Name: "queue_length", Kind: Gauge, Labels: []string{"stage"},
		Help: "Messages that wait for a worker (operate, model), or until they and all before them are processed " +
			"(batch)."},
	{Name: "queue_capacity", Kind: Gauge, Labels: []string{"stage"},
		Help: "Limit at which back-pressure begins; pipeline_bytes: bytes of memory."},
	{Name: "degenerate_frames_total", Kind: Counter, Labels: []string{"op", "kind"},
		Help: "Frames for which an operator's result is degenerate, by operator and kind."},
	{Name: "result_elements_total", Kind: Counter, Labels: []string{"op"},
		Help: "Hull vertices, maxima or triangles that operators found."},
	{Name: "points_kept_ratio", Kind: Histogram, Unit: Ratio, Labels: []string{"op"}, Buckets: ratioBuckets,
		Help: "Fraction of a frame's points that an operator could not drop at once."},
	{Name: "entropy_nats", Kind: Gauge, Labels: []string{"source", "op", "bound"},
		Help: "Range-partition entropy of the last measured frame, nats a point: bounds (lower, upper), estimate (f)."},
	{Name: "error_bound", Kind: Gauge, Labels: []string{"source", "op"},
		Help: "Exact error of the last approximated result, in units of the coordinates."},
	{Name: "stage_streams", Kind: Gauge, Labels: []string{"hints"},
		Help: "Streams (a data set and a sensor each) by the state of their hints: on, off (the stream drifted), " +
			"foreign (the model is for another stream)."},
	{Name: "stage_hints_turned_total", Kind: Counter, Labels: []string{"to"},
		Help: "Times that drift turned the hints of a stream on or off."},
	{Name: "stage_model_loads_total", Kind: Counter, Labels: []string{"result"},
		Help: "Models that were read again because their file changed, by result: ok, failed."},
}

// tokenMetricsTable follows the token branch.
var tokenMetricsTable = []Definition{
	{Name: "sequences_total", Kind: Counter, Labels: []string{"stage", "source", "direction"},
		Help: "Token sequences that a model read (in) or that were committed (out)."},
	{Name: "tokens_total", Kind: Counter, Labels: []string{"stage", "source", "direction"},
		Help: "Tokens that models read (in), that were committed with their sequences (out), and that models " +
			"generated (generated)."},
	{Name: "model_batch_duration_seconds", Kind: Histogram, Unit: Seconds, Labels: []string{"task"},
		Buckets: stageBuckets, Help: "Seconds that a model took for one batch."},
	{Name: "batch_sequences", Kind: Histogram, Buckets: sizeBuckets, Help: "Sequences in a batch."},
	{Name: "batch_fill_ratio", Kind: Histogram, Unit: Ratio, Buckets: fillBuckets,
		Help: "Tokens of a batch over the token budget; above 1: the batch is one sequence longer than the budget."},
	{Name: "batch_padding_tokens_total", Kind: Counter,
		Help: "Padding tokens that models computed beside the sequences' tokens."},
	{Name: "attention_plans_total", Kind: Counter, Labels: []string{"source", "plan"},
		Help: "Sequences by their attention: sparse (by frozen masks), dense (the model has masks, but not for this " +
			"sequence), none (no masks)."},
	{Name: "attention_rows_total", Kind: Counter, Labels: []string{"source", "rung"},
		Help: "Rows of attention heads under a ladder by the keys that they read: layout (the masks' blocks), " +
			"extended (further blocks), dense (all keys)."},
	{Name: "attention_audits_total", Kind: Counter, Labels: []string{"result"},
		Help: "Sequences that were compared with dense attention, by result: ok, failed."},
	{Name: "attention_drift_ratio", Kind: Histogram, Unit: Ratio, Buckets: driftBuckets,
		Help: "Distance from an audited sequence's hidden states to the hidden states under dense attention, over " +
			"the length of the latter."},
	{Name: "attention_kept_mass_ratio", Kind: Histogram, Unit: Ratio, Buckets: massBuckets,
		Help: "Softmax mass that a head's masks keep, mean over its queries; the least of all heads of an audited " +
			"sequence."},
	{Name: "sequences_unverified_total", Kind: Counter, Labels: []string{"source"},
		Help: "Id sequences whose tokenizer could not be compared with the model's: the message has no " +
			"tokenizer_sha256, or the model's folder has no tokenizer."},
}

// stateMetrics describe the process.
var stateMetrics = []Definition{
	{Name: "ready", Kind: Gauge, Help: "1 while broker and output can be used, else 0, as /readyz says."},
	{Name: "brokers_connected", Kind: Gauge, Help: "1 while brokers answer, else 0."},
	{Name: "build_info", Kind: Gauge, Labels: []string{"version", "revision", "goversion"},
		Help: "Always 1; the labels name the build."},
}

// register makes the metrics of the table, each when it is asked for by its name.
type register struct {
	with    prometheus.Registerer
	byName  map[string]Definition
	unasked map[string]bool
}

func newRegister(with prometheus.Registerer) *register {
	r := &register{with: with, byName: map[string]Definition{}, unasked: map[string]bool{}}
	for _, d := range Definitions() {
		r.byName[d.Name], r.unasked[d.Name] = d, true
	}
	return r
}

// take returns the definition of a name. It panics if the table has no such metric of
// that kind.
func (r *register) take(name string, kind Kind) Definition {
	d, known := r.byName[name]
	if !known || d.Kind != kind {
		panic("metrics: the table has no " + string(kind) + " called " + name)
	}
	delete(r.unasked, name)
	return d
}

func (r *register) counter(name string) *prometheus.CounterVec {
	d := r.take(name, Counter)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: Prefix + name, Help: d.Help}, d.Labels)
	r.with.MustRegister(c)
	return c
}

func (r *register) gauge(name string) *prometheus.GaugeVec {
	d := r.take(name, Gauge)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: Prefix + name, Help: d.Help}, d.Labels)
	r.with.MustRegister(g)
	return g
}

func (r *register) histogram(name string) *prometheus.HistogramVec {
	d := r.take(name, Histogram)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: Prefix + name, Help: d.Help, Buckets: d.Buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160}, d.Labels)
	r.with.MustRegister(h)
	return h
}

// done panics if a metric of the table was not registered.
func (r *register) done() {
	for name := range r.unasked {
		panic("metrics: nothing registers " + name)
	}
}
