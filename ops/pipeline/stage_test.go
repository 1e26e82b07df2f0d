package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/algos/geomtest"
	"entropipe/models"
	"entropipe/ops/metrics"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// seeds is a model of k directions, calibrated to a fraction of survivors.
func seeds(k int, survivors float64, dataset string) *models.EntropyNet {
	m := &models.EntropyNet{SHA256: fmt.Sprintf("model of %d", k),
		Meta: models.Meta{Mode: models.Seed, Dims: 3, Ops: []string{"hull3d"}, Normalise: models.NormaliseBox,
			Dataset: dataset, Survivors: map[string]float64{"hull3d": survivors}}}
	var d []float32
	for i := range k {
		z := 1 - (2*float64(i)+1)/float64(k)
		r, a := math.Sqrt(1-z*z), 2.399963*float64(i)
		d = append(d, float32(r*math.Cos(a)), float32(r*math.Sin(a)), float32(z))
	}
	m.Tensors = map[string]models.Tensor{"directions3": {Shape: []int{k, 3}, Data: d}}
	return m
}

type staged struct {
	*Stage
	reg     *prometheus.Registry
	log     bytes.Buffer
	stopped []error
}

func newStaged(t *testing.T, m *models.EntropyNet, stop bool) *staged {
	t.Helper()
	s := &staged{reg: prometheus.NewRegistry()}
	cfg := StageConfig{Mode: preprocess.Seed, Model: m, Metrics: metrics.New(s.reg, "test"),
		Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	if stop {
		cfg.Stop = func(err error) { s.stopped = append(s.stopped, err) }
	}
	var err error
	if s.Stage, err = NewStage(cfg); err != nil {
		t.Fatal(err)
	}
	return s
}

// streamCounts are the gauges of streams: on, off, foreign.
func (s *staged) streamCounts(t *testing.T) string {
	t.Helper()
	families, err := s.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "entropipe_stage_streams" {
				n[m.Label[0].GetValue()] = m.Gauge.GetValue()
			}
		}
	}
	return fmt.Sprintf("on %v off %v foreign %v", n["on"], n["off"], n["foreign"])
}

// hinted tells whether a frame in space is to get hints.
func hinted(s *staged, k *schemas.FrameKey) bool {
	_, hints := s.use(k, 3, schemas.Prunable)
	return hints
}

// Hints change no row; every 64th frame goes without them, for comparison.
func TestHintsChangeNoRow(t *testing.T) {
	s := newStaged(t, seeds(64, 0.5, ""), false)
	seeded := NewFrames(FrameConfig{Ops: all, Stage: s.Stage})
	plain := NewFrames(FrameConfig{Ops: all})
	for offset := range int64(130) {
		n := 300
		if offset%16 == 0 || offset > 127 {
			n = preprocess.HintFrom + 1000
		}
		m := message(points32(t, geomtest.Lidar[float32](n, uint64(offset))))
		m.Offset = offset
		a, _ := seeded.Process(m)
		b, _ := plain.Process(m)
		sha := s.model.Load().SHA256
		if n < preprocess.HintFrom || offset%64 == 0 {
			sha = ""
		}
		if a[0].Stage != "seed" || a[0].ModelSHA != sha || b[0].Stage != "" {
			t.Errorf("offset %d: stage %q, model %q; without a model %q", offset, a[0].Stage, a[0].ModelSHA, b[0].Stage)
		}
		h, want := a[0].Hull3, b[0].Hull3
		if !slices.Equal(h.Idx, want.Idx) || !slices.Equal(h.Faces, want.Faces) || h.Area != want.Area ||
			h.Volume != want.Volume {
			t.Errorf("offset %d: hull %v, want %v", offset, h, want)
		}
	}
	if got := s.streamCounts(t); got != "on 1 off 0 foreign 0" || s.log.Len() > 0 {
		t.Errorf("streams %s, log %s", got, &s.log)
	}
}

// Hints are looked for only where an operator is to use them, and a network runs
// only for what it serves.
func TestModelsWorkOnlyForTheirOperators(t *testing.T) {
	m := message(points32(t, geomtest.Lidar[float32](preprocess.HintFrom+1000, 1)))
	s, n := newStaged(t, seeds(64, 0.5, ""), false), newNetworkStage(t, network("perturb", 1, "maxima2d"))
	hull3d, deeper := []schemas.Op{schemas.Hull3D}, schemas.OpSet(0).With(schemas.Hull3D)
	for i, c := range []struct {
		cfg  FrameConfig
		used bool
	}{
		{FrameConfig{Stage: s.Stage}, false}, {FrameConfig{Stage: s.Stage, Hull3D: true}, true},
		{FrameConfig{Stage: s.Stage, Ops: hull3d}, true}, {FrameConfig{Stage: s.Stage, Publish: deeper}, true},
		{FrameConfig{Stage: n}, false}, {FrameConfig{Stage: n, Ops: hull3d, Publish: schemas.Prunable}, false},
		{FrameConfig{Stage: n, Ops: all}, true},
	} {
		results, _ := NewFrames(c.cfg).Process(m)
		if got := results[0].ModelSHA != ""; got != c.used {
			t.Errorf("row %d: the model was used: %v", i, got)
		}
	}
}

// A stream that drifts loses its hints, with a warning and a metric, and gets
// them back; another model begins anew.
func TestDriftTurnsHintsOff(t *testing.T) {
	s := newStaged(t, seeds(64, 0.01, ""), false)
	key := func(offset int64) *schemas.FrameKey {
		return &schemas.FrameKey{Dataset: "d", Sensor: "s", Offset: offset}
	}
	run := func(from, to int64, survived float64) (hints int) {
		for offset := from; offset < to; offset++ {
			h := hinted(s, key(offset))
			if h {
				hints++
			}
			s.note(key(offset), h, h, survived)
		}
		return hints
	}
	if n := run(1, 64, 0.01); n != 63 {
		t.Errorf("%d frames have hints", n)
	}
	run(64, 200, 0.5)
	if got := s.streamCounts(t); got != "on 0 off 1 foreign 0" || strings.Count(s.log.String(), "level=WARN") != 1 ||
		!strings.Contains(s.log.String(), "drifted") {
		t.Errorf("streams %s, log %s", got, &s.log)
	}
	if n := run(200, 328, 0.5); n != 2 {
		t.Errorf("%d of 128 frames have hints on trial", n)
	}
	run(328, 328+64*6, 0.01)
	if got := s.streamCounts(t); got != "on 1 off 0 foreign 0" || !strings.Contains(s.log.String(), "hints are on") {
		t.Errorf("streams %s, log %s", got, &s.log)
	}
	run(1000, 1200, 0.5)
	if err := s.Replace(seeds(32, 0.5, "")); err != nil {
		t.Fatal(err)
	}
	if s.streamCounts(t) != "on 0 off 0 foreign 0" || !hinted(s, key(1201)) {
		t.Errorf("after another model: streams %s", s.streamCounts(t))
	}
}

// A model that is no good is refused, and the old one stays; workers take a new
// one from their next record on.
func TestReplacedModel(t *testing.T) {
	s := newStaged(t, seeds(64, 0.5, ""), false)
	f := NewFrames(FrameConfig{Ops: []schemas.Op{schemas.Hull3D}, Stage: s.Stage})
	m := message(points32(t, geomtest.Lidar[float32](preprocess.HintFrom+1000, 1)))
	sha := func() string { r, _ := f.Process(m); return r[0].ModelSHA }
	first := sha()
	bad := seeds(16, 0.5, "")
	bad.Tensors["directions3"].Data[4] = float32(math.NaN())
	other := seeds(16, 0.5, "")
	other.Meta.Mode = models.Perturb
	for _, m := range []*models.EntropyNet{bad, other, nil} {
		if s.Replace(m) == nil {
			t.Errorf("replaced by %+v", m)
		}
	}
	if got := sha(); got != first || first == "" {
		t.Errorf("model %q, then %q", first, got)
	}
	if err := s.Replace(seeds(16, 0.5, "")); err != nil || sha() != "model of 16" {
		t.Errorf("model %q, %v", sha(), err)
	}
}

// Streams that are not the model's have no hints: once a stream there is a
// warning, or the run is told to stop.
func TestForeignStreams(t *testing.T) {
	for _, stop := range []bool{false, true} {
		s := newStaged(t, seeds(16, 0.5, "kitti"), stop)
		for offset := int64(1); offset < 30; offset++ {
			for _, c := range []struct {
				dataset string
				dims    int
				hinted  bool
			}{{"kitti", 3, true}, {"waymo", 3, false}, {"drawings", 2, false}} {
				if model, hints := s.use(&schemas.FrameKey{Dataset: c.dataset, Topic: "t", Offset: offset}, c.dims,
					schemas.Prunable); model != c.hinted || hints != c.hinted {
					t.Errorf("%s at %d: model %v, hints %v", c.dataset, offset, model, hints)
				}
			}
		}
		var foreign *ForeignError
		if n := strings.Count(s.log.String(), "are processed without the model"); stop &&
			(n != 0 || len(s.stopped) != 2 || !errors.As(s.stopped[0], &foreign) || foreign.Topic != "t") ||
			!stop && n != 2 {
			t.Errorf("stop %v: %d warnings, stopped %v", stop, n, s.stopped)
		}
		if got := s.streamCounts(t); got != "on 1 off 0 foreign 2" {
			t.Errorf("streams %s", got)
		}
	}
}

// Names of streams come from producers: however many, few are remembered; and
// workers may ask at the same time.
func TestManyStreams(t *testing.T) {
	s := newStaged(t, seeds(16, 0.5, ""), false)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 3000 {
				k := &schemas.FrameKey{Dataset: fmt.Sprint(w, i), Offset: 1}
				s.note(k, hinted(s, k), true, 0.1)
			}
		})
	}
	wg.Wait()
	if n := len(s.streams); n == 0 || n > maxStreams {
		t.Errorf("%d streams are remembered", n)
	}
}
