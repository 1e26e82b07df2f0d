package pipeline

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/algos/geomtest"
	"entropipe/models"
	"entropipe/ops/metrics"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// BenchmarkFrames times a worker on real frames: what publishing, measuring and
// the shipped model add to the operators or take from them. Each is timed in
// turns with the operators alone; the least of all turns is reported, in
// microseconds a frame.
func BenchmarkFrames(b *testing.B) {
	model, err := models.Open("builtin:lidar")
	if err != nil {
		b.Fatal(err)
	}
	stage, err := NewStage(StageConfig{Mode: preprocess.Seed, Model: model,
		Metrics: metrics.New(prometheus.NewRegistry(), "bench"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	plane := []schemas.Op{schemas.Hull2D, schemas.Maxima3D}
	publish := schemas.OpSet(0).With(schemas.Hull2D).With(schemas.Maxima3D)
	var frames []schemas.Message
	for _, fr := range geomtest.RealFrames(b)[:5] {
		m := message(points32(b, fr.Cloud))
		m.Offset = int64(len(frames) + 1)
		frames = append(frames, m)
	}
	for _, c := range []struct {
		name string
		ops  []schemas.Op
		with FrameConfig
	}{
		{"hull2d,maxima3d/publish", plane, FrameConfig{Publish: publish}},
		{"none/publish", []schemas.Op{}, FrameConfig{Publish: publish}},
		{"hull2d,maxima3d/entropy of every frame", plane, FrameConfig{EntropyEvery: 1}},
		{"hull2d,maxima3d/seed", plane, FrameConfig{Stage: stage}},
		{"hull3d/seed", []schemas.Op{schemas.Hull3D}, FrameConfig{Stage: stage}},
		{"all/seed", all, FrameConfig{Stage: stage}},
	} {
		b.Run(fmt.Sprint(c.name), func(b *testing.B) {
			c.with.Ops = c.ops
			workers := [2]*Frames{NewFrames(FrameConfig{Ops: c.ops}), NewFrames(c.with)}
			var least [2][]time.Duration
			for range max(b.N, 15) {
				for k, f := range workers {
					for i, m := range frames {
						start := time.Now()
						f.Process(m)
						took := time.Since(start)
						if len(least[k]) == i {
							least[k] = append(least[k], took)
						}
						least[k][i] = min(least[k][i], took)
					}
				}
			}
			var sum [2]float64
			for k := range sum {
				for _, d := range least[k] {
					sum[k] += float64(d.Nanoseconds()) / 1e3 / float64(len(frames))
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(sum[0], "alone-µs/frame")
			b.ReportMetric(sum[1], "with-µs/frame")
		})
	}
}
