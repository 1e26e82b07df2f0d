package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/schemas"
)

// tokenMetrics are the metrics of the token branch.
type tokenMetrics struct {
	sequences, tokens *prometheus.CounterVec
	plans, audits     *prometheus.CounterVec
	unverified        *prometheus.CounterVec
	rows              *prometheus.CounterVec
	seconds           *prometheus.HistogramVec
	fill, size        *prometheus.HistogramVec
	padding           prometheus.Counter
	drift, keptMass   *prometheus.HistogramVec
}

var (
	fillBuckets  = []float64{.1, .25, .5, .75, .9, .95, .98, 1, 1.5, 2}
	sizeBuckets  = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024}
	massBuckets  = []float64{.1, .25, .5, .75, .9, .95, .98, .99, .999, 1}
	driftBuckets = []float64{1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, .01, .03, .1, .3, 1}
)

// newTokenMetrics registers the metrics with counter and histogram, which New
// gives it.
func newTokenMetrics(counter func(name, help string, labels ...string) *prometheus.CounterVec,
	histogram func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec,
	reg prometheus.Registerer) (m tokenMetrics) {
	m.sequences = counter("sequences_total", "Token sequences that a model read (in) or that were committed (out).",
		"stage", "source", "direction")
	m.tokens = counter("tokens_total",
		"Tokens that models read (in), that were committed with their sequences (out), and that models generated "+
			"(generated).", "stage", "source", "direction")
	m.plans = counter("attention_plans_total",
		"Sequences by their attention: sparse (by frozen masks), dense (the model has masks, but not for this "+
			"sequence), none (no masks).", "source", "plan")
	m.unverified = counter("sequences_unverified_total",
		"Id sequences whose tokenizer could not be compared with the model's: the message has no tokenizer_sha256, "+
			"or the model's folder has no tokenizer.", "source")
	m.rows = counter("attention_rows_total",
		"Rows of attention heads under a ladder by the keys that they read: layout (the masks' blocks), extended "+
			"(further blocks), dense (all keys).", "source", "rung")
	m.audits = counter("attention_audits_total",
		"Sequences that were compared with dense attention, by result: ok, failed.", "result")
	m.seconds = histogram("model_batch_duration_seconds", "Seconds that a model took for one batch.",
		stageBuckets, "task")
	m.fill = histogram("batch_fill_ratio", "Tokens of a batch over the token budget; above 1: the batch is one "+
		"sequence longer than the budget.", fillBuckets)
	m.size = histogram("batch_sequences", "Sequences in a batch.", sizeBuckets)
	m.padding = counter("batch_padding_tokens_total",
		"Padding tokens that models computed beside the sequences' tokens.").WithLabelValues()
	m.drift = histogram("attention_drift_ratio",
		"Distance from an audited sequence's hidden states to the hidden states under dense attention, over the "+
			"length of the latter.", driftBuckets)
	m.keptMass = histogram("attention_kept_mass_ratio",
		"Softmax mass that a head's masks keep, mean over its queries; the least of all heads of an audited sequence.",
		massBuckets)
	return m
}

// Batch records the number of sequences of a batch, its fill (tokens over the
// budget) and its padding tokens.
func (m *Metrics) Batch(sequences int, fill float64, padding int) {
	m.tokens.size.WithLabelValues().Observe(float64(sequences))
	m.tokens.fill.WithLabelValues().Observe(fill)
	m.tokens.padding.Add(float64(padding))
}

// Inferred records the time that the model took for a batch.
func (m *Metrics) Inferred(task string, d time.Duration) {
	m.tokens.seconds.WithLabelValues(task).Observe(d.Seconds())
}

// Planned counts a sequence by its attention: sparse, dense or none.
func (m *Metrics) Planned(source, plan string) {
	m.tokens.plans.WithLabelValues(source, plan).Inc()
}

// Unverified counts an id sequence whose tokenizer could not be compared with the
// model's.
func (m *Metrics) Unverified(source string) { m.tokens.unverified.WithLabelValues(source).Inc() }

// Climbed counts rows of attention heads under a ladder by the keys that they
// read: the blocks of the layout, further blocks, all keys.
func (m *Metrics) Climbed(source string, layout, extended, dense int) {
	m.tokens.rows.WithLabelValues(source, "layout").Add(float64(layout))
	m.tokens.rows.WithLabelValues(source, "extended").Add(float64(extended))
	m.tokens.rows.WithLabelValues(source, "dense").Add(float64(dense))
}

// Audited records the relative distance of an audited sequence's hidden states
// from dense attention, and the least softmax mass that one of its heads kept.
func (m *Metrics) Audited(drift, keptMass float64) {
	m.tokens.audits.WithLabelValues("ok").Inc()
	m.tokens.drift.WithLabelValues().Observe(drift)
	m.tokens.keptMass.WithLabelValues().Observe(keptMass)
}

// AuditFailed counts a sequence whose comparison with dense attention failed.
func (m *Metrics) AuditFailed() { m.tokens.audits.WithLabelValues("failed").Inc() }

// sequenceSource are the counters of one topic's sequences.
type sequenceSource struct {
	in, out, tokensIn, tokensOut, generated prometheus.Counter
}

func (m *tokenMetrics) forTopic(topic string) sequenceSource {
	return sequenceSource{
		in: m.sequences.WithLabelValues("model", topic, "in"), out: m.sequences.WithLabelValues("commit", topic, "out"),
		tokensIn:  m.tokens.WithLabelValues("model", topic, "in"),
		tokensOut: m.tokens.WithLabelValues("commit", topic, "out"),
		generated: m.tokens.WithLabelValues("model", topic, "generated"),
	}
}

func (s *sequenceSource) read(t *schemas.TokenResult) {
	s.in.Inc()
	s.tokensIn.Add(float64(t.NTokens))
	s.generated.Add(float64(len(t.NextIDs)))
}

func (s *sequenceSource) committed(t *schemas.TokenResult) {
	s.out.Inc()
	s.tokensOut.Add(float64(t.NTokens))
}
