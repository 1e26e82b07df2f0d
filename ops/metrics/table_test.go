package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/schemas"
)

// The labels that metrics may have. All have few values: partitions have the most.
var allowedLabels = []string{"stage", "source", "direction", "topic", "partition", "table", "op", "kind", "reason",
	"bound", "hints", "to", "result", "task", "plan", "rung", "group", "version", "revision", "goversion"}

// A name says type and unit, and a help text is a sentence.
func TestTheTableKeepsTheConventions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Definitions() {
		if seen[d.Name] {
			t.Errorf("%s stands in the table twice", d.Name)
		}
		seen[d.Name] = true
		if strings.HasSuffix(d.Name, "_total") != (d.Kind == Counter) {
			t.Errorf("%s is a %s", d.Name, d.Kind)
		}
		unit := map[Unit]string{None: "", Seconds: "_seconds", Timestamp: "_timestamp_seconds", Bytes: "bytes",
			Ratio: "_ratio"}
		if want, known := unit[d.Unit]; !known || !strings.HasSuffix(strings.TrimSuffix(d.Name, "_total"), want) {
			t.Errorf("%s has the unit %q", d.Name, d.Unit)
		}
		if d.Unit == None && (strings.HasSuffix(d.Name, "seconds") || strings.HasSuffix(d.Name, "bytes")) {
			t.Errorf("%s has no unit", d.Name)
		}
		if !strings.HasSuffix(d.Help, ".") || d.Help[:1] != strings.ToUpper(d.Help[:1]) {
			t.Errorf("%s: %q is no sentence", d.Name, d.Help)
		}
		if (d.Kind == Histogram) != (d.Buckets != nil) || !slices.IsSorted(d.Buckets) {
			t.Errorf("%s, a %s, has the buckets %v", d.Name, d.Kind, d.Buckets)
		}
		for _, l := range d.Labels {
			if !slices.Contains(allowedLabels, l) {
				t.Errorf("%s has the label %s", d.Name, l)
			}
		}
	}
}

// A partition that is lost takes its gauges along, and a partition that was got is as
// old as that.
func TestGaugesOfAPartitionGoWithIt(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, "1")
	gauges := []string{"entropipe_consumer_lag_records", "entropipe_consumer_lag_seconds",
		"entropipe_last_commit_timestamp_seconds", "entropipe_batch_age_seconds",
		"entropipe_chunked_frames_open", "entropipe_chunked_frames_open_bytes"}
	count := func(want int) {
		t.Helper()
		for _, name := range gauges {
			if n, err := testutil.GatherAndCount(reg, name); err != nil || n != want {
				t.Errorf("%s has %d values (%v), want %d", name, n, err, want)
			}
		}
	}
	before := float64(time.Now().Unix())
	for p := range int32(2) {
		m.Assigned("t", p)
		s := m.ForPartition("t", p)
		s.Lag(3, time.Now())
		s.Open(time.Now().Add(-time.Minute))
	}
	count(2)
	if got := testutil.ToFloat64(m.lastCommit.WithLabelValues("t", "0")); got < before {
		t.Errorf("no commit since %v, want since %v", got, before)
	}
	if got := testutil.ToFloat64(m.lastFrame.WithLabelValues("t")); got < before {
		t.Errorf("no frame since %v, want since %v", got, before)
	}
	if got := testutil.ToFloat64(m.batchAge.WithLabelValues("t", "0")); got < 60 || got > 90 {
		t.Errorf("the batch is %v s old, want 60", got)
	}
	m.ForPartition("t", 0).Open(time.Time{})
	if got := testutil.ToFloat64(m.batchAge.WithLabelValues("t", "0")); got != 0 {
		t.Errorf("an empty batch is %v s old", got)
	}
	m.Revoked("t", 0)
	count(1)
}

// The largest record is that of all partitions of a topic, whatever comes after it.
func TestLargestRecordOfATopic(t *testing.T) {
	m := New(prometheus.NewRegistry(), "1")
	for i, size := range []int{5, 900, 70, 0, 899} {
		s := m.ForPartition("t", int32(i%2))
		s.Fetched(&schemas.Fetched{Messages: []schemas.Message{{Value: make([]byte, size)}, {}}}, time.Second)
	}
	m.ForPartition("t", 0).Fetched(&schemas.Fetched{}, time.Hour)
	if got := testutil.ToFloat64(m.recordSize.WithLabelValues("t")); got != 900 {
		t.Errorf("the largest record has %v bytes, want 900", got)
	}
}

// Rejects are counted by reason when they are committed, those of parts too, and
// elements by operator.
func TestRejectsAndElementsAreCounted(t *testing.T) {
	m := New(prometheus.NewRegistry(), "1")
	s := m.ForPartition("t", 0)
	r := schemas.Result{}
	r.Ops[schemas.Delaunay2D] = schemas.OpResult{Status: schemas.StatusOK, N: 12}
	rejects := []schemas.Reject{{Stage: "decode", Reason: "bad"}, {Stage: "decode", Reason: "bad"}}
	s.Processed([]schemas.Result{r, r}, rejects, time.Second)
	if got := testutil.ToFloat64(m.rejects.WithLabelValues("t", "bad")); got != 0 {
		t.Errorf("%v rejects before their commit", got)
	}
	s.Rejected(map[string]int64{"bad": 40, "worse": 1})
	s.Committed(&schemas.Batch{Rejects: rejects}, schemas.Committed{}, time.Second)
	for reason, want := range map[string]float64{"bad": 42, "worse": 1} {
		if got := testutil.ToFloat64(m.rejects.WithLabelValues("t", reason)); got != want {
			t.Errorf("%v rejects for %s, want %v", got, reason, want)
		}
	}
	if got := testutil.ToFloat64(m.elements.WithLabelValues("delaunay2d")); got != 24 {
		t.Errorf("%v triangles, want 24", got)
	}
}
