package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/schemas"
)

// Sequences are counted as sequences and tokens, never as frames, and by names
// that keep the conventions.
func TestSequencesAreNoFrames(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, "1")
	s := m.ForPartition("t", 0)
	results := []schemas.Result{
		{Tokens: &schemas.TokenResult{NTokens: 7, NextIDs: []int32{1, 2}}},
		{NPoints: 5},
		{Tokens: &schemas.TokenResult{NTokens: 3}},
	}
	s.Processed(results, nil, time.Millisecond)
	s.Committed(&schemas.Batch{Results: results, Messages: 3}, schemas.Committed{}, time.Millisecond)
	m.Batch(2, .5, 0)
	m.Inferred("embed", time.Millisecond)
	m.Planned("t", "dense")
	m.Climbed("t", 5, 2, 1)
	m.Audited(.01, .9)
	m.AuditFailed()
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP entropipe_attention_audits_total Sequences that were compared with dense attention, by result: ok, failed.
# TYPE entropipe_attention_audits_total counter
entropipe_attention_audits_total{result="failed"} 1
entropipe_attention_audits_total{result="ok"} 1
# HELP entropipe_attention_rows_total Rows of attention heads under a ladder by the keys that they read: layout (the masks' blocks), extended (further blocks), dense (all keys).
# TYPE entropipe_attention_rows_total counter
entropipe_attention_rows_total{rung="dense",source="t"} 1
entropipe_attention_rows_total{rung="extended",source="t"} 2
entropipe_attention_rows_total{rung="layout",source="t"} 5
# HELP entropipe_batch_padding_tokens_total Padding tokens that models computed beside the sequences' tokens.
# TYPE entropipe_batch_padding_tokens_total counter
entropipe_batch_padding_tokens_total 0
# HELP entropipe_frames_total Point clouds that entered (in) or left (out) a stage.
# TYPE entropipe_frames_total counter
entropipe_frames_total{direction="in",source="t",stage="operate"} 1
entropipe_frames_total{direction="out",source="t",stage="commit"} 1
# HELP entropipe_points_total Points that entered (in) or left (out) a stage.
# TYPE entropipe_points_total counter
entropipe_points_total{direction="in",source="t",stage="operate"} 5
# HELP entropipe_sequences_total Token sequences that a model read (in) or that were committed (out).
# TYPE entropipe_sequences_total counter
entropipe_sequences_total{direction="in",source="t",stage="model"} 2
entropipe_sequences_total{direction="out",source="t",stage="commit"} 2
# HELP entropipe_tokens_total Tokens that models read (in), that were committed with their sequences (out), and that models generated (generated).
# TYPE entropipe_tokens_total counter
entropipe_tokens_total{direction="generated",source="t",stage="model"} 2
entropipe_tokens_total{direction="in",source="t",stage="model"} 10
entropipe_tokens_total{direction="out",source="t",stage="commit"} 10
`), "entropipe_attention_audits_total", "entropipe_attention_rows_total",
		"entropipe_batch_padding_tokens_total", "entropipe_frames_total", "entropipe_points_total",
		"entropipe_sequences_total", "entropipe_tokens_total"); err != nil {
		t.Error(err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "entropipe_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
