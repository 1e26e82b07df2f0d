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

func newTokenMetrics(r *register) tokenMetrics {
	return tokenMetrics{
		sequences: r.counter("sequences_total"), tokens: r.counter("tokens_total"),
		plans: r.counter("attention_plans_total"), audits: r.counter("attention_audits_total"),
		unverified: r.counter("sequences_unverified_total"), rows: r.counter("attention_rows_total"),
		seconds: r.histogram("model_batch_duration_seconds"),
		fill:    r.histogram("batch_fill_ratio"), size: r.histogram("batch_sequences"),
		padding: r.counter("batch_padding_tokens_total").WithLabelValues(),
		drift:   r.histogram("attention_drift_ratio"), keptMass: r.histogram("attention_kept_mass_ratio"),
	}
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
