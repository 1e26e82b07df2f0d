package preprocess

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
)

var campaign = flag.Int("campaign", 10_000, "random frames to prune, 1000 with -short")

// client asks all queries of a cloud, with scratch of its own.
type client[T geom.Float] struct {
	hull2  hull.Hull2D[T]
	hull3  hull.Hull3D[T]
	maxima maxima.Maxima[T]
}

// ask returns the lists of indices of a query's result; dim is that of a hull
// in space.
func (k *client[T]) ask(q Op, c geom.Cloud[T]) (lists [2][]int32, dim int) {
	switch {
	case c.Z == nil && (q == Hull3D || q == Maxima3D):
	case q == Hull2D:
		lists[0] = k.hull2.Append(nil, c)
	case q == Hull3D:
		lists[0], lists[1], dim = k.hull3.Append(nil, nil, c)
	case q == Maxima2D:
		lists[0] = k.maxima.Append2D(nil, c)
	case q == Maxima3D:
		lists[0] = k.maxima.Append3D(nil, c)
	}
	return lists, dim
}

// checkPruned compares the answers from the survivors with those from the frame.
func checkPruned[T geom.Float](s *Stage[T], k *client[T], c geom.Cloud[T]) error {
	p, _ := s.Apply(c)
	at := s.Prune([]int32{-7}, &p)[1:]
	if !slices.IsSorted(at) || len(slices.Compact(slices.Clone(at))) != len(at) {
		return fmt.Errorf("survivors %v do not ascend", at)
	}
	left := geom.Cloud[T]{X: []T{}, Y: []T{}}
	if c.Z != nil {
		left.Z = []T{}
	}
	for _, i := range at {
		left.X, left.Y = append(left.X, p.Cloud.X[i]), append(left.Y, p.Cloud.Y[i])
		if c.Z != nil {
			left.Z = append(left.Z, p.Cloud.Z[i])
		}
	}
	for _, q := range s.queries {
		want, wantDim := k.ask(q, p.Cloud)
		got, dim := k.ask(q, left)
		for _, list := range got {
			for j, i := range list {
				list[j] = at[i]
			}
		}
		if dim != wantDim || !slices.Equal(got[0], want[0]) || !slices.Equal(got[1], want[1]) {
			return fmt.Errorf("%v of the survivors %v: %v in %d dimensions, want %v in %d", q, at, got,
				dim, want, wantDim)
		}
	}
	return nil
}

// pruners are stages for all sets of queries, by bits, the first for none.
func pruners[T geom.Float](t testing.TB) (s [16]*Stage[T]) {
	for set := 1; set < len(s); set++ {
		var queries []Op
		for _, q := range []Op{Hull2D, Hull3D, Maxima2D, Maxima3D} {
			if set>>q&1 == 1 {
				queries = append(queries, q)
			}
		}
		s[set] = newStage[T](t, Config{Mode: Prune, For: queries})
	}
	return s
}

// The queries on survivors are those on the frame, for every set of queries:
// ties, duplicates and indices included.
func TestPruneKeepsEveryAnswer(t *testing.T) {
	rounds := *campaign
	if testing.Short() {
		rounds = min(rounds, 1000)
	}
	wide, narrow := pruners[float64](t), pruners[float32](t)
	var k64 client[float64]
	var k32 client[float32]
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		set := 1 + r.IntN(15)
		kind, c := arbitraryFrame(r)
		if err := checkPruned(wide[set], &k64, c); err != nil {
			t.Fatalf("%s, round %d, seed %d, queries %04b: %v; the frame is %#v", kind, round, seed, set, err, c)
		}
		if err := checkPruned(narrow[set], &k32, narrowed(c)); err != nil {
			t.Fatalf("%s in float32, round %d, seed %d, queries %04b: %v; the frame is %#v", kind, round, seed,
				set, err, narrowed(c))
		}
	}
}

// arbitraryFrame has up to some sixty points of a kind that breaks filters, in
// the plane or in space.
func arbitraryFrame(r *rand.Rand) (kind string, c geom.Cloud[float64]) {
	n := r.IntN(4)
	if r.IntN(4) > 0 {
		n = r.IntN(60)
	}
	kinds := []string{"uniform", "lattice", "duplicates", "equal", "collinear", "coplanar", "huge", "tiny",
		"signed zeros", "not finite"}
	kind = kinds[r.IntN(len(kinds))]
	few := make([][3]float64, 1+r.IntN(8))
	for i := range few {
		few[i] = [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
	}
	c = geom.Cloud[float64]{X: []float64{}, Y: []float64{}, Z: []float64{}}
	for range n {
		p := [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		s, t := float64(r.IntN(9)-4), float64(r.IntN(9)-4)
		for k := range p {
			switch kind {
			case "lattice":
				p[k] = float64(r.IntN(4))
			case "duplicates":
				p[k] = few[r.IntN(len(few))][k]
			case "equal":
				p[k] = few[0][k]
			case "collinear":
				p[k] = few[0][k] + s*0.25
			case "coplanar":
				p[k] = float64(int(8*few[0][k]))*s + float64(k)*t
			case "huge":
				p[k] *= []float64{1e150, -1e150, 1e-150, 1, 0}[r.IntN(5)]
			case "tiny":
				p[k] = s * 5e-324
			case "signed zeros":
				p[k] = []float64{0, math.Copysign(0, -1), 1, -1}[r.IntN(4)]
			case "not finite":
				if r.IntN(8) == 0 {
					p[k] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
				}
			}
		}
		c.X, c.Y, c.Z = append(c.X, p[0]), append(c.Y, p[1]), append(c.Z, p[2])
	}
	if r.IntN(4) == 0 {
		c.Z = nil
	}
	return kind, c
}

// narrowed rounds to float32, what is too large to infinity.
func narrowed(c geom.Cloud[float64]) geom.Cloud[float32] {
	narrow := func(v []float64) []float32 {
		if v == nil {
			return nil
		}
		w := make([]float32, len(v))
		for i := range v {
			w[i] = float32(v[i])
		}
		return w
	}
	return geom.Cloud[float32]{X: narrow(c.X), Y: narrow(c.Y), Z: narrow(c.Z)}
}

// So it is for larger clouds, which go through the operators' filters, with
// hints from a good model and from bad ones.
func TestPruneKeepsEveryAnswerOfEveryDistribution(t *testing.T) {
	testPruneDistributions[float32](t)
	testPruneDistributions[float64](t)
}

func testPruneDistributions[T geom.Float](t *testing.T) {
	var k client[T]
	all := []Op{Maxima3D, Hull2D, Maxima2D, Hull3D}
	stages := []*Stage[T]{
		newStage[T](t, Config{Mode: Prune, For: all, Model: modelOf(even(40))}),
		newStage[T](t, Config{Mode: Prune, For: all, Model: modelOf(even(1))}),
	}
	for _, g := range geomtest.Generators3D[T]() {
		for i, n := range []int{3000, HintFrom + 5} {
			if i > 0 && g.Name != "lidar" && g.Name != "grid3" && g.Name != "cube" {
				continue
			}
			c := g.Make(n, seed)
			for _, s := range stages {
				if err := checkPruned(s, &k, c); err != nil {
					t.Errorf("%s[%T], %d points, seed %d: %v", g.Name, T(0), n, seed, err)
				}
			}
		}
	}
}

// A point that does not survive is inside the hull of those that do, and beaten
// or equalled by one of them, by the definitions.
func TestPrunedPointsAreCertified(t *testing.T) {
	for round := range 200 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		kind, c := arbitraryFrame(r)
		if kind == "not finite" {
			continue
		}
		s := newStage[float64](t, Config{Mode: Prune, For: []Op{Hull2D, Maxima2D}})
		p, _ := s.Apply(c)
		at := s.Prune(nil, &p)
		for i := range c.X {
			if slices.Contains(at, int32(i)) {
				continue
			}
			beaten := slices.ContainsFunc(at, func(j int32) bool { return c.X[j] >= c.X[i] && c.Y[j] >= c.Y[i] })
			with := geom.Cloud[float64]{}
			for _, j := range append(slices.Clone(at), int32(i)) {
				with.X, with.Y = append(with.X, c.X[j]), append(with.Y, c.Y[j])
			}
			inside := !slices.Contains(geomtest.Hull2D(with), int32(len(at)))
			if !beaten || !inside {
				t.Fatalf("%s, round %d, seed %d: point %d of %#v was dropped: below a survivor %v, inside their "+
					"hull %v", kind, round, seed, i, c, beaten, inside)
			}
		}
	}
}

// On real sweeps few points matter: what is published is a small part of the
// frame.
func TestPruneOfRealFrames(t *testing.T) {
	s := newStage[float32](t, Config{Mode: Prune, For: []Op{Hull2D, Maxima3D}})
	var k client[float32]
	for _, f := range geomtest.RealFrames(t) {
		p, _ := s.Apply(f.Cloud)
		at := s.Prune(nil, &p)
		// A survivor is four coordinates and its index.
		if before, after := 16*f.Cloud.Len(), 20*len(at); 20*after > before {
			t.Errorf("%s: %d bytes are left of %d", f.Name, after, before)
		}
		if err := checkPruned(s, &k, f.Cloud); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func TestWarmStageDoesNotAllocate(t *testing.T) {
	c := geomtest.Lidar[float32](20_000, seed)
	s := newStage[float32](t, Config{Mode: Prune, For: []Op{Hull2D, Hull3D, Maxima2D, Maxima3D},
		Model: modelOf(even(32))})
	var at []int32
	if a := testing.AllocsPerRun(5, func() {
		p, _ := s.Apply(c)
		at = s.Prune(at[:0], &p)
	}); a > 0 {
		t.Errorf("%v allocations", a)
	}
}
