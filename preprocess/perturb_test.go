package preprocess

import (
	"math"
	"strings"
	"testing"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/models"
	"entropipe/preprocess/train"
)

// networkModel is an untrained network that moves points by up to sigma.
func networkModel(t testing.TB, mode string, sigma float64, ops ...entropy.Problem) *models.EntropyNet {
	t.Helper()
	c := train.Collector{Dims: 2}
	for _, op := range ops {
		if op == entropy.Hull3D || op == entropy.Maxima3D {
			c.Dims = 3
		}
	}
	if err := c.Add(geomtest.Cube[float32](100, 1)); err != nil {
		t.Fatal(err)
	}
	d, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.New(train.Config{Mode: mode, Ops: ops, Sigma: sigma, Seed: 3}, d)
	if err != nil {
		t.Fatal(err)
	}
	m := tr.Model()
	for i := range m.Tensors["head.1.weight"].Data {
		m.Tensors["head.1.weight"].Data[i] *= 20 // so that points move far enough
	}
	for i := range m.Tensors["head.0.weight"].Data {
		if i%512 >= 256 {
			m.Tensors["head.0.weight"].Data[i] = 0 // and all alike
		}
	}
	m.SHA256 = "of the network"
	return m
}

// farthest is the largest distance of a point to a polygon that lies in the
// cloud's hull, edge by edge.
func farthest(c geom.Cloud[float64], ring []int32) (worst float64) {
	for i := range c.X {
		inside, least := len(ring) > 2, math.Inf(1)
		for k := range ring {
			a, b := ring[k], ring[(k+1)%len(ring)]
			dx, dy, px, py := c.X[b]-c.X[a], c.Y[b]-c.Y[a], c.X[i]-c.X[a], c.Y[i]-c.Y[a]
			if dx*py-dy*px < 0 {
				inside = false
			}
			t := 0.0
			if l := dx*dx + dy*dy; l > 0 {
				t = max(0, min(1, (px*dx+py*dy)/l))
			}
			least = min(least, math.Hypot(px-t*dx, py-t*dy))
		}
		if !inside {
			worst = max(worst, least)
		}
	}
	return worst
}

// The row's error is the true one on every frame: the largest distance of a
// point to the approximate hull. The hull is made of points as they are, and
// lies within the network's reach.
func TestPerturbedHullCarriesItsError(t *testing.T) {
	const sigma = 0.05
	s, err := New[float64](Config{Mode: Perturb, Model: networkModel(t, "perturb", sigma, entropy.Hull2D)})
	if err != nil {
		t.Fatal(err)
	}
	some := false
	for seed := range uint64(20) {
		for _, c := range []geom.Cloud[float64]{geomtest.Square[float64](300, seed),
			geomtest.Circle[float64](200, seed), geomtest.Strokes[float64](100, seed),
			geomtest.Square[float64](int(seed%5)+1, seed)} {
			p, rep := s.Apply(c)
			if !s.Approximates(Hull2D, &p) || s.Approximates(Maxima2D, &p) || rep.Mode != Perturb ||
				rep.Model != "of the network" {
				t.Fatalf("report %+v", rep)
			}
			if &p.Cloud.X[0] != &c.X[0] {
				t.Fatal("operators without a network get another cloud")
			}
			idx, e := s.Hull2D(nil, &p)
			if want := farthest(c, idx); math.Abs(e-want) > 1e-12*(1+want) {
				t.Fatalf("error %v, want %v", e, want)
			}
			if again := (&hull.Hull2D[float64]{}).Append(nil, geomtest.Gather(c, idx)); len(again) != len(idx) {
				t.Fatalf("%d of %d are vertices", len(again), len(idx))
			}
			if e > 2*sigma*math.Sqrt2 {
				t.Fatalf("error %v is beyond what displacements of %v can do", e, sigma)
			}
			some = some || e > 0
		}
	}
	if !some {
		t.Error("no frame had an error: nothing was moved")
	}
}

// The same on real frames, for all their points; no plane of the approximate
// hull in space has a point farther outside than its error says.
func TestPerturbedRealFramesCarryTheirErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s, err := New[float32](Config{Mode: Perturb, Model: networkModel(t, "perturb", 20, entropy.Hull2D, entropy.Hull3D)})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range geomtest.RealFrames(t)[:2] {
		c := frame.Cloud
		wide := geom.Cloud[float64]{X: widened(c.X), Y: widened(c.Y), Z: widened(c.Z)}
		p, _ := s.Apply(c)
		idx, e := s.Hull2D(nil, &p)
		if want := farthest(wide, idx); math.Abs(e-want) > 1e-9*(1+want) {
			t.Errorf("%s: error %v, want %v", frame.Name, e, want)
		}
		_, faces, dim, e := s.Hull3D(nil, nil, &p)
		if dim != 3 {
			t.Fatalf("%s: dimension %d", frame.Name, dim)
		}
		worst := 0.0
		for ; len(faces) > 0; faces = faces[3:] {
			worst = max(worst, beyond(wide, faces[0], faces[1], faces[2]))
		}
		if worst > e+1e-9 || worst < e/100 {
			t.Errorf("%s: a point is %v beyond a face, the error is %v", frame.Name, worst, e)
		}
	}
}

func widened(v []float32) (w []float64) {
	for _, x := range v {
		w = append(w, float64(x))
	}
	return w
}

// beyond is how far the farthest point is outside of a face's plane.
func beyond(c geom.Cloud[float64], a, b, d int32) (far float64) {
	ux, uy, uz := c.X[b]-c.X[a], c.Y[b]-c.Y[a], c.Z[b]-c.Z[a]
	vx, vy, vz := c.X[d]-c.X[a], c.Y[d]-c.Y[a], c.Z[d]-c.Z[a]
	nx, ny, nz := uy*vz-uz*vy, uz*vx-ux*vz, ux*vy-uy*vx
	size := math.Sqrt(nx*nx + ny*ny + nz*nz)
	if size < 1e-6 {
		return 0 // a sliver, whose normal is rounding
	}
	for i := range c.X {
		far = max(far, (nx*(c.X[i]-c.X[a])+ny*(c.Y[i]-c.Y[a])+nz*(c.Z[i]-c.Z[a]))/size)
	}
	return far
}

// Answers in space and maxima carry their errors; what a network leaves alone
// is exact.
func TestApproximateAnswersInSpace(t *testing.T) {
	s, err := New[float32](Config{Mode: Perturb,
		Model: networkModel(t, "perturb", 0.1, entropy.Hull3D, entropy.Maxima3D),
		For:   []Op{Hull3D, Maxima3D, Maxima2D}})
	if err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	c := geomtest.Ball[float32](500, 1)
	c.X[7] = nan
	p, rep := s.Apply(c)
	if rep.Dropped != 1 || s.Approximates(Maxima2D, &p) {
		t.Errorf("report %+v, maxima2d approximate %v", rep, s.Approximates(Maxima2D, &p))
	}
	v, f, dim, e := s.Hull3D(nil, nil, &p)
	if dim != 3 || e <= 0 || e > 0.1*2*math.Sqrt(3) ||
		geomtest.CheckHull3D(geomtest.Gather(p.Cloud, v), ranks(v, v), ranks(f, v)) != nil {
		t.Errorf("dimension %d, error %v, %d vertices, %d faces", dim, e, len(v), len(f)/3)
	}
	some := false
	for seed := range uint64(10) {
		p, _ := s.Apply(geomtest.Cube[float32](500, seed))
		idx, e := s.Maxima3D(nil, &p)
		if e > 0.2 {
			t.Errorf("%d maxima with ε %v", len(idx), e)
		}
		if got := (&maxima.Maxima[float32]{}).Append3D(nil, geomtest.Gather(p.Cloud, idx)); len(got) != len(idx) {
			t.Errorf("%d of %d are maximal among themselves", len(got), len(idx))
		}
		some = some || e > 0
	}
	if !some {
		t.Error("no frame's maxima had an error")
	}
	flat := geomtest.Square[float32](50, 1)
	if p, rep := s.Apply(flat); s.Approximates(Hull3D, &p) || rep.Model != "" {
		t.Error("a network in space moved a cloud in the plane")
	}
	if p, _ := s.Apply(geom.Cloud[float32]{}); s.Approximates(Hull3D, &p) {
		t.Error("a cloud without a point was moved")
	}
}

// ranks gives the places of indices in an ascending list.
func ranks(idx, list []int32) []int32 {
	at := map[int32]int32{}
	for k, i := range list {
		at[i] = int32(k)
	}
	var out []int32
	for _, i := range idx {
		out = append(out, at[i])
	}
	return out
}

// To denoise, maxima are those of the moved points, also where another beats
// them as they came.
func TestDenoisedMaximaAreThoseOfMovedPoints(t *testing.T) {
	s, err := New[float64](Config{Mode: Denoise, Model: networkModel(t, "denoise", 0.1, entropy.Maxima2D)})
	if err != nil {
		t.Fatal(err)
	}
	c := geomtest.Gauss[float64](2000, 4)
	p, _ := s.Apply(c)
	idx, e := s.Maxima2D(nil, &p)
	want := (&maxima.Maxima[float64]{}).Append2D(nil, s.approximate.cloud)
	if len(idx) != len(want) || e < 0 || e > 0.2 {
		t.Errorf("%d maxima with ε %v, want %d", len(idx), e, len(want))
	}
}

func TestNetworkModelsThatDoNotFit(t *testing.T) {
	perturb := networkModel(t, "perturb", 1, entropy.Hull2D)
	broken := networkModel(t, "perturb", 1, entropy.Hull2D)
	broken.Tensors["head.1.bias"].Data[0] = float32(math.NaN())
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Mode: Perturb}, "mode perturb needs a model"},
		{Config{Mode: Denoise, Model: perturb}, "mode denoise needs a denoise model, and this is a perturb model"},
		{Config{Mode: Seed, Model: perturb}, "mode seed needs a seed model"},
		{Config{Mode: Perturb, Model: modelOf([]float32{1, 0, 0})},
			"mode perturb needs a perturb model, and this is a seed model"},
		{Config{Mode: Perturb, Model: perturb, For: []Op{Maxima2D}}, "the model serves [hull2d], none of [maxima2d]"},
		{Config{Mode: Perturb, Model: broken}, `tensor "head.1.bias": value 0 is NaN`},
	} {
		if _, err := New[float32](c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.cfg.Mode, err, c.want)
		}
	}
}
