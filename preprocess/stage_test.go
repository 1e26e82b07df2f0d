package preprocess

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/models"
)

const seed = 1

// modelOf is a seed model with the given directions, three coordinates each.
func modelOf(directions []float32) *models.EntropyNet {
	return &models.EntropyNet{
		Meta:    models.Meta{Mode: models.Seed, Dims: 3, Ops: []string{"hull3d"}, Normalise: models.NormaliseBox},
		Tensors: map[string]models.Tensor{"directions3": {Shape: []int{len(directions) / 3, 3}, Data: directions}},
		SHA256:  "5eed",
	}
}

// even are k directions, spread evenly.
func even(k int) (u []float32) {
	for i := range k {
		z := 1 - (2*float64(i)+1)/float64(k)
		r, a := math.Sqrt(1-z*z), math.Pi*(1+math.Sqrt(5))*float64(i)
		u = append(u, float32(r*math.Cos(a)), float32(r*math.Sin(a)), float32(z))
	}
	return u
}

func newStage[T geom.Float](t testing.TB, cfg Config) *Stage[T] {
	t.Helper()
	s, err := New[T](cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Hints change no row, for good models, bad ones and every distribution.
func TestHintsChangeNothing(t *testing.T) {
	testHints[float32](t)
	testHints[float64](t)
}

func testHints[T geom.Float](t *testing.T) {
	stages := map[string]*Stage[T]{}
	for name, u := range map[string][]float32{"even": even(40), "one": even(1),
		"repeated": slices.Repeat(even(3), 20)} {
		stages[name] = newStage[T](t, Config{Mode: Seed, Model: modelOf(u)})
	}
	hinted := 0
	for _, g := range geomtest.Generators3D[T]() {
		for _, n := range []int{0, 1, 2, 3, HintFrom + 1} {
			if n > 3 && !slices.Contains([]string{"lidar", "cube", "gauss3", "grid3"}, g.Name) {
				continue // hulls of so many points on a surface take long, and sieves have their own tests
			}
			c := g.Make(n, seed)
			var h hull.Hull3D[T]
			v, f, dim := h.Append(nil, nil, c)
			for name, s := range stages {
				p, rep := s.Apply(c)
				h.Seeds = p.Hints.Hull3D
				w, e, d := h.Append(nil, nil, p.Cloud)
				if d != dim || !slices.Equal(v, w) || !slices.Equal(f, e) {
					t.Errorf("%s[%T], %d points, seed %d, model %s: another hull with seeds %v", g.Name, T(0), n,
						seed, name, h.Seeds)
				}
				if (rep.Model != "") != (len(h.Seeds) > 0) || rep.Mode != Seed {
					t.Errorf("%s, model %s: report %+v with %d seeds", g.Name, name, rep, len(h.Seeds))
				}
				hinted += min(len(h.Seeds), 1)
			}
		}
	}
	if hinted < 3 {
		t.Errorf("%d clouds got hints: nothing was tested", hinted)
	}
}

// Clouds that hints cannot serve go without: plane, small, or while hints are
// off.
func TestHintsAreLeftOut(t *testing.T) {
	s := newStage[float32](t, Config{Mode: Seed, Model: modelOf(even(10))})
	c := geomtest.Lidar[float32](HintFrom, seed)
	if p, _ := s.Apply(c); len(p.Hints.Hull3D) == 0 {
		t.Error("no hints for a sweep")
	}
	for name, c := range map[string]geom.Cloud[float32]{"plane": {X: c.X, Y: c.Y},
		"small": c.Slice(0, HintFrom-1), "empty": {}} {
		if p, rep := s.Apply(c); p.Hints.Hull3D != nil || rep.Model != "" {
			t.Errorf("%s: hints %v, report %+v", name, p.Hints, rep)
		}
	}
	s.Unhinted = true
	if p, rep := s.Apply(c); p.Hints.Hull3D != nil || rep.Model != "" {
		t.Errorf("hints %v, report %+v, though they are off", p.Hints, rep)
	}
	none := newStage[float32](t, Config{Mode: Seed, Model: modelOf(even(10)), For: []Op{Hull3D, Maxima3D}})
	if p, _ := none.Apply(c); len(p.Hints.Hull3D) == 0 {
		t.Error("no hints for one of two queries")
	}
}

// A stage is refused when its parts do not fit, with the reason.
func TestNewRefuses(t *testing.T) {
	network := modelOf(even(4))
	network.Meta.Mode, network.Meta.Sigma = models.Perturb, 0.1
	odd := modelOf([]float32{1, 0, 0})
	odd.Tensors["directions3"].Data[0] = float32(math.NaN())
	for _, g := range []struct {
		cfg  Config
		want string
	}{
		{Config{Mode: Seed}, "needs a model"},
		{Config{Mode: Prune}, "needs queries"},
		{Config{Mode: "sedd"}, "unknown"},
		{Config{Model: modelOf(even(4))}, "uses no model"},
		{Config{Mode: Seed, Model: network}, "this is a perturb model"},
		{Config{Mode: Seed, Model: odd}, "NaN"},
		{Config{Mode: Prune, Model: modelOf(even(4)), For: []Op{Hull2D}}, "none of [hull2d]"},
	} {
		if s, err := New[float64](g.cfg); err == nil || !strings.Contains(err.Error(), g.want) {
			t.Errorf("%+v: %v, %v, want an error with %q", g.cfg, s, err, g.want)
		}
	}
	for _, o := range []Op{Hull2D, Hull3D, Maxima2D, Maxima3D} {
		if p, ok := ParseOp(o.String()); !ok || p != o {
			t.Errorf("%v is read as %v, %v", o, p, ok)
		}
	}
	if _, ok := ParseOp("delaunay2d"); ok {
		t.Error("delaunay2d is no query of prune")
	}
}

func ExampleStage_Prune() {
	s, err := New[float64](Config{Mode: Prune, For: []Op{Hull2D, Maxima2D}})
	if err != nil {
		fmt.Println(err)
		return
	}
	square := geom.Cloud[float64]{X: []float64{0, 2, 1, 2, 0, 1}, Y: []float64{0, 0, 1, 2, 2, 1.5}}
	p, _ := s.Apply(square)
	fmt.Println(s.Prune(nil, &p)) // the points inside cannot matter
	// Output: [0 1 3 4]
}
