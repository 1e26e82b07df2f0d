package pipeline

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// While a commit, or a worker, is stuck and nothing is fetched, a sample still shows
// the lag and the batch grow older, and what is under way.
func TestSamplesOfAStuckPartition(t *testing.T) {
	for name, c := range map[string]struct {
		slow  time.Duration // each commit's
		delay time.Duration // each message's, in a worker
		want  string
	}{
		"commit": {time.Hour, 0, `
entropipe_batch_age_seconds{partition="0",topic="t"} 60
entropipe_consumer_lag_records{partition="0",topic="t"} 40
entropipe_consumer_lag_seconds{partition="0",topic="t"} 7260
entropipe_stage_inflight{stage="batch"} 10
entropipe_stage_inflight{stage="commit"} 1
entropipe_stage_inflight{stage="fetch"} 1
entropipe_stage_inflight{stage="operate"} 0
`},
		"worker": {0, time.Hour, `
entropipe_batch_age_seconds{partition="0",topic="t"} 0
entropipe_consumer_lag_records{partition="0",topic="t"} 40
entropipe_consumer_lag_seconds{partition="0",topic="t"} 7260
entropipe_stage_inflight{stage="batch"} 0
entropipe_stage_inflight{stage="commit"} 0
entropipe_stage_inflight{stage="fetch"} 0
entropipe_stage_inflight{stage="operate"} 1
`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, l := prometheus.NewRegistry(), randomLog(1, 50)
				for o := int64(10); o < 50; o++ {
					l.data[o] = 8
				}
				l.follow, l.age, l.perFetch = true, 2*time.Hour, 20
				process := func() Process {
					return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
						time.Sleep(c.delay)
						return []schemas.Result{{FrameKey: schemas.FrameKey{Offset: m.Offset}}}, nil
					}
				}
				p := newPipeline(&memoryOutput{base: 10, slow: c.slow}, process, func(cfg *Config) {
					cfg.Metrics, cfg.Workers = metrics.New(reg, "test"), 1
				})
				defer p.Close()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- p.Partition(ctx, "t", 0, l) }()
				synctest.Wait()
				time.Sleep(time.Minute)
				p.Sample()
				var names []string
				for line := range strings.Lines(c.want) {
					if name, _, ok := strings.Cut(line, "{"); ok {
						names = append(names, name)
					}
				}
				if err := testutil.GatherAndCompare(reg, strings.NewReader(withTypes(c.want)), names...); err != nil {
					t.Error(err)
				}
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// withTypes adds the lines of help and type that a page of gauges has.
func withTypes(page string) string {
	var out strings.Builder
	seen := map[string]bool{}
	for line := range strings.Lines(page) {
		name, _, _ := strings.Cut(line, "{")
		for _, d := range metrics.Definitions() {
			if metrics.Prefix+d.Name == name && !seen[name] {
				seen[name] = true
				out.WriteString("# HELP " + name + " " + d.Help + "\n# TYPE " + name + " " + string(d.Kind) + "\n")
			}
		}
		out.WriteString(line)
	}
	return out.String()
}
