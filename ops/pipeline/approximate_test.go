package pipeline

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/models"
	"entropipe/ops/metrics"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// network is a random network for these operators in the plane.
func network(mode string, sigma float64, ops ...string) *models.EntropyNet {
	rng := rand.New(rand.NewPCG(5, 5))
	m := &models.EntropyNet{SHA256: "network", Tensors: map[string]models.Tensor{},
		Meta: models.Meta{Mode: mode, Dims: 2, Ops: ops, Normalise: models.NormaliseBox,
			Dataset: "points", Sigma: sigma}}
	fill := func(name string, value func() float64, shape ...int) {
		n := shape[0]
		if len(shape) > 1 {
			n *= shape[1]
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(value())
		}
		m.Tensors[name] = models.Tensor{Shape: shape, Data: data}
	}
	one, zero := func() float64 { return 1 }, func() float64 { return 0 }
	for _, l := range []struct {
		name    string
		out, in int
	}{{"local.0", 64, 2}, {"local.1", 128, 64}, {"local.2", 256, 128}, {"head.0", 128, 512}} {
		fill(l.name+".weight", func() float64 { return rng.NormFloat64() * 2 / math.Sqrt(float64(l.in)) }, l.out, l.in)
		fill(l.name+".bias", rng.NormFloat64, l.out)
		fill(l.name+".bn.gamma", one, l.out)
		fill(l.name+".bn.beta", zero, l.out)
		fill(l.name+".bn.mean", zero, l.out)
		fill(l.name+".bn.var", one, l.out)
	}
	fill("head.1.weight", func() float64 { return rng.NormFloat64() / 128 }, 2, 128)
	fill("head.1.bias", zero, 2)
	return m
}

func newNetworkStage(t *testing.T, m *models.EntropyNet) *Stage {
	t.Helper()
	s, err := NewStage(StageConfig{Mode: preprocess.Mode(m.Meta.Mode), Model: m,
		Metrics: metrics.New(prometheus.NewRegistry(), "test"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// distance is that of a point to a convex polygon, counter-clockwise.
func distance(x, y float64, px, py []float64) float64 {
	inside, least := true, math.Inf(1)
	for i := range px {
		j := (i + 1) % len(px)
		dx, dy := px[j]-px[i], py[j]-py[i]
		if dx*(y-py[i])-dy*(x-px[i]) < 0 {
			inside = false
		}
		s := math.Max(0, math.Min(1, ((x-px[i])*dx+(y-py[i])*dy)/(dx*dx+dy*dy)))
		least = math.Min(least, math.Hypot(x-px[i]-s*dx, y-py[i]-s*dy))
	}
	if inside {
		return 0
	}
	return least
}

// What a network serves is approximate, and its row has the true error; all
// else is as without it, and so is what is published.
func TestApproximateRowsHaveTheirError(t *testing.T) {
	publish := schemas.OpSet(0).With(schemas.Hull2D)
	f := NewFrames(FrameConfig{Ops: all, Stage: newNetworkStage(t, network("perturb", 40, "hull2d", "maxima2d")),
		EntropyEvery: 1, Publish: publish})
	plain := NewFrames(FrameConfig{Ops: all, EntropyEvery: 1, Publish: publish})
	wrong, moved := 0, 0
	for seed := range uint64(12) {
		c := geomtest.Lidar[float32](1500, seed)
		if seed == 0 {
			c = geom.Cloud[float32]{X: []float32{1}, Y: []float32{2}, Z: []float32{3}}
		}
		m := message(points32(t, c))
		a, _ := f.Process(m)
		b, _ := plain.Process(m)
		got, want := &a[0], &b[0]
		if got.Stage != "perturb" || got.ModelSHA != "network" || got.Hull.ErrorBound == nil ||
			got.Maxima[0].ErrorBound == nil || got.Maxima[1].ErrorBound != nil || got.Hull3.ErrorBound != nil {
			t.Fatalf("seed %d: %+v", seed, got)
		}
		true2 := 0.0
		for i := range c.X {
			true2 = max(true2, distance(float64(c.X[i]), float64(c.Y[i]), got.Hull.X, got.Hull.Y))
		}
		if e := *got.Hull.ErrorBound; math.Abs(e-true2) > 1e-9*(1+true2) {
			t.Errorf("seed %d: the hull's error is said to be %v, and is %v", seed, e, true2)
		}
		if !slices.Equal(got.Hull.Idx, want.Hull.Idx) {
			wrong++
		}
		for k, i := range got.Hull.Idx {
			if got.Hull.X[k] != float64(c.X[i]) || got.Hull.Y[k] != float64(c.Y[i]) {
				t.Fatalf("seed %d: a vertex was moved", seed)
			}
		}
		if diff := cmp.Diff(want.Hull3, got.Hull3); diff != "" || !slices.Equal(got.Triangles, want.Triangles) ||
			!slices.Equal(got.Maxima[1].Idx, want.Maxima[1].Idx) {
			t.Errorf("seed %d: what the network does not serve has changed %s", seed, diff)
		}
		if !slices.Equal(got.Publish.Value, want.Publish.Value) {
			t.Errorf("seed %d: survivors of a perturbed frame are not exact", seed)
		}
		moved += checkSides(t, seed, c, want, got)
	}
	if moved == 0 {
		t.Error("the entropy was never another behind the stage")
	}
	if wrong == 0 {
		t.Error("the network was never wrong: nothing was tested")
	}
}

// checkSides checks that operators which the network serves are measured on the cloud as
// received, as without a stage, and as moved. It returns how many rows moves changed.
func checkSides(t *testing.T, seed uint64, c geom.Cloud[float32], want, got *schemas.Result) (moved int) {
	t.Helper()
	if c.Len() < entropyPoints {
		return 0
	}
	sides := map[schemas.Op]string{}
	for _, e := range got.Entropy {
		sides[e.Op] += e.Stage + " "
		for _, w := range want.Entropy {
			diff := cmp.Diff(w, e, cmpopts.IgnoreFields(schemas.Entropy{}, "Stage"))
			if w.Op == e.Op && diff != "" && e.Stage != schemas.StageAfter {
				t.Errorf("seed %d, %v %s: %s", seed, e.Op, e.Stage, diff)
			}
			if w.Op == e.Op && diff != "" && e.Stage == schemas.StageAfter {
				moved++
			}
		}
		if !(e.Lower >= 0 && e.Lower <= e.Upper && e.Upper <= 2*math.Log(float64(c.Len()))) || e.F == nil || e.N < 1 {
			t.Errorf("seed %d: %+v", seed, e)
		}
	}
	both, one := "before after ", " "
	if diff := cmp.Diff(map[schemas.Op]string{schemas.Hull2D: both, schemas.Maxima2D: both, schemas.Hull3D: one,
		schemas.Maxima3D: one}, sides); diff != "" {
		t.Errorf("seed %d: %s", seed, diff)
	}
	return moved
}

// Frames of a stream that the network is not for are exact.
func TestNetworkOfAnotherStream(t *testing.T) {
	m := network("denoise", 3, "hull2d")
	m.Meta.Dataset = "kitti"
	f := NewFrames(FrameConfig{Stage: newNetworkStage(t, m)})
	results, _ := f.Process(message(points32(t, geomtest.Lidar[float32](500, 1))))
	if r := results[0]; r.Hull.ErrorBound != nil || r.Stage != "" || r.ModelSHA != "" {
		t.Errorf("stage %q, error %v", r.Stage, r.Hull.ErrorBound)
	}
}
