package metrics

import (
	"math/rand/v2"

	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/schemas"
)

// A quantile is never below the true one, and at most 2 % above it.
func TestQuantilesAreRightWithinTheirGrowth(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var q, part Quantiles
		all := make([]time.Duration, 1+rng.IntN(2000))
		for i := range all {
			all[i] = time.Duration(rng.ExpFloat64() * float64(time.Second))
			if i%2 == 0 {
				q.Add(all[i])
			} else {
				part.Add(all[i])
			}
		}
		q.AddAll(&part)
		slices.Sort(all)
		for _, p := range []float64{0, .5, .9, .99, 1} {
			rank := max(int(p*float64(len(all))+.999999), 1)
			want, got := max(all[rank-1], time.Microsecond), q.At(p)
			if float64(got) < float64(want)*.999999 || float64(got) > float64(want)*1.021 {
				t.Errorf("seed %d: quantile %g of %d is %v, want %v", seed, p, len(all), got, want)
			}
		}
	}
	if got := new(Quantiles).At(.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
}

// Every name follows the conventions that dashboards rely on, and Prometheus'
// own linter agrees.
func TestNamesFollowTheConventions(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, "1")
	s := m.ForPartition("t", 3)
	b := &schemas.Batch{Start: 5, End: 9, Messages: 4, Results: make([]schemas.Result, 4)}
	s.Committed(b, schemas.Committed{Tables: []schemas.TableFiles{{Table: "hulls", Files: 1, Rows: 4, Bytes: 100}}},
		time.Second)
	s.Lag(3, time.Now().Add(-time.Minute))
	m.Failed("commit", "lost_race")
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "entropipe_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP entropipe_consumer_lag_records Offsets from the end of the committed records to the end of the partition.
# TYPE entropipe_consumer_lag_records gauge
entropipe_consumer_lag_records{partition="3",topic="t"} 3
# HELP entropipe_output_rows_total Rows that were committed.
# TYPE entropipe_output_rows_total counter
entropipe_output_rows_total{table="hulls"} 4
`), "entropipe_consumer_lag_records", "entropipe_output_rows_total"); err != nil {
		t.Error(err)
	}
	m.Revoked("t", 3)
	if n, err := testutil.GatherAndCount(reg, "entropipe_consumer_lag_records"); err != nil || n != 0 {
		t.Errorf("%d lag gauges after the partition was revoked (%v)", n, err)
	}
}

// A histogram of what is off is not exported: neither of operators that do not
// run nor of the branch of tokens without a model.
func TestHistogramsOfWhatIsOffAreNotExported(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, "1")
	s := m.ForPartition("points", 0)
	r := schemas.Result{NPoints: 3}
	r.Ops[schemas.Hull2D] = schemas.OpResult{Status: schemas.StatusOK, N: 3, Ns: 1000}
	s.Processed([]schemas.Result{r}, nil, time.Millisecond)
	histograms := func() map[string]int {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, f := range families {
			for _, m := range f.Metric {
				if h := m.Histogram; h != nil && strings.HasPrefix(f.GetName(), "entropipe_") {
					found[f.GetName()]++
					if h.GetSampleCount() == 0 {
						t.Errorf("%s %v has no sample", f.GetName(), m.Label)
					}
				}
			}
		}
		return found
	}
	if got := histograms(); len(got) != 1 || got["entropipe_stage_duration_seconds"] != 2 {
		t.Errorf("after a frame: %v, want the times of hull2d and of the message", got)
	}
	s.Latency(time.Second)
	m.Batch(2, .5, 0)
	m.Inferred("embed", time.Second)
	m.Audited(.1, .9)
	for _, name := range []string{"frame_latency_seconds", "batch_fill_ratio", "batch_sequences",
		"model_batch_duration_seconds", "attention_drift_ratio", "attention_kept_mass_ratio"} {
		if histograms()["entropipe_"+name] != 1 {
			t.Errorf("%s is not exported once it has a value", name)
		}
	}
}
