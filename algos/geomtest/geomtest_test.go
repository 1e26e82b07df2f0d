package geomtest

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
)

const seed = 1

// Generators keep their word: n points (grids fewer), the same for the same
// seed, finite.
func TestGeneratorsAreSeededAndFinite(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 1000} {
		testGenerators(t, Generators2D[float32](), n)
		testGenerators(t, Generators3D[float32](), n)
		testGenerators(t, Generators2D[float64](), n)
		testGenerators(t, Generators3D[float64](), n)
	}
}

func testGenerators[T geom.Float](t *testing.T, gens []Generator[T], n int) {
	for _, g := range gens {
		a, b := g.Make(n, seed), g.Make(n, seed)
		if a.Len() != n && !strings.HasPrefix(g.Name, "grid") || len(a.Y) != a.Len() ||
			a.Z != nil && len(a.Z) != a.Len() {
			t.Errorf("%s: %d points asked, slices of %d, %d, %d", g.Name, n, len(a.X), len(a.Y), len(a.Z))
		}
		if !slices.Equal(a.X, b.X) || !slices.Equal(a.Y, b.Y) || !slices.Equal(a.Z, b.Z) {
			t.Errorf("%s: seed %d gives two clouds", g.Name, seed)
		}
		for _, v := range slices.Concat(a.X, a.Y, a.Z) {
			if v-v != 0 {
				t.Fatalf("%s: coordinate %v", g.Name, v)
			}
		}
	}
}

// The quick test of a determinant never contradicts whole-number arithmetic,
// where it dares to answer and where points are all but degenerate.
func TestFloatFiltersAgreeWithWholeNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 0))
	clouds := Clouds2D[float64](40, seed)
	for round := range 20000 {
		c := clouds[round%len(clouds)].Cloud
		var p [8]float64
		for k := range 4 {
			i := r.IntN(c.Len())
			p[2*k], p[2*k+1] = c.X[i], c.Y[i]
		}
		if got, want := OrientExact(p[0], p[1], p[2], p[3], p[4], p[5]),
			orientBig(p[0], p[1], p[2], p[3], p[4], p[5]); got != want {
			t.Fatalf("orient %v: %d, want %d", p[:6], got, want)
		}
		got := InCircleExact(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7])
		if want := inCircleBig(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]); got != want {
			t.Fatalf("incircle %v: %d, want %d", p, got, want)
		}
	}
}

// Signs that others computed: the fixtures of robust-predicates, each line a
// number, the coordinates and the sign.
func TestOracleSignsAgainstFixtures(t *testing.T) {
	for name, sign := range map[string]func(v []float64) int{
		"orient2d.txt": func(v []float64) int { return OrientExact(v[0], v[1], v[2], v[3], v[4], v[5]) },
		"incircle.txt": func(v []float64) int {
			return InCircleExact(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7])
		},
	} {
		f, err := os.Open(TestData(t, "oracles", "robust_predicates", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n := 0
		for lines := bufio.NewScanner(f); lines.Scan(); n++ {
			fields := strings.Fields(lines.Text())
			var v []float64
			for _, s := range fields[1:] {
				var x float64
				if _, err := fmt.Sscan(s, &x); err != nil {
					t.Fatalf("%s: %q: %v", name, lines.Text(), err)
				}
				v = append(v, x)
			}
			want := int(v[len(v)-1])
			if got := sign(v); got != want {
				t.Fatalf("%s: %q: %d, want %d", name, lines.Text(), got, want)
			}
		}
		if n < 100 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}

// The hull oracle against the definition: a representative is a vertex unless
// it lies on a segment, or in a triangle, of others.
func TestHullOracleIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Tied[float64](2).Draw(t, "cloud")
		if c.Len() > 9 {
			c = c.Slice(0, 9)
		}
		var want []int32
		reps := distinctSorted(c)
		for _, p := range reps {
			if !spanned(c, reps, p) {
				want = append(want, p)
			}
		}
		got := Hull2D(c)
		for k := range got {
			if a, b, d := got[k], got[(k+1)%len(got)], got[(k+2)%len(got)]; len(got) > 2 && orientOf(c, a, b, d) <= 0 {
				t.Fatalf("%v: no left turn at %d", got, b)
			}
		}
		if len(got) > 0 && got[0] != reps[0] {
			t.Fatalf("%v does not start with %d", got, reps[0])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%#v: %v, want %v", c, got, want)
		}
	})
}

func orientOf(c geom.Cloud[float64], i, j, k int32) int {
	return OrientExact(c.X[i], c.Y[i], c.X[j], c.Y[j], c.X[k], c.Y[k])
}

func spanned(c geom.Cloud[float64], reps []int32, p int32) bool {
	for _, i := range reps {
		for _, j := range reps {
			for _, k := range reps { // i, j = k: a segment
				if i == p || j == p || k == p || i == j {
					continue
				}
				a, b, d := orientOf(c, i, j, p), orientOf(c, j, k, p), orientOf(c, k, i, p)
				if j != k && orientOf(c, i, j, k) > 0 && a >= 0 && b >= 0 && d >= 0 {
					return true
				}
				between := min(c.X[i], c.X[j]) <= c.X[p] && c.X[p] <= max(c.X[i], c.X[j]) &&
					min(c.Y[i], c.Y[j]) <= c.Y[p] && c.Y[p] <= max(c.Y[i], c.Y[j])
				if a == 0 && between {
					return true
				}
			}
		}
	}
	return false
}

// The fast maxima oracle agrees with the definition.
func TestMaximaOracleIsTheDefinition(t *testing.T) {
	for _, c := range slices.Concat(Clouds3D[float32](150, seed), lifted(Clouds2D[float32](150, seed))) {
		for mask := range 8 {
			low := [3]bool{mask&1 > 0, mask&2 > 0, mask&4 > 0}
			for _, dims := range []int{2, 3} {
				if got, want := Maxima(c.Cloud, dims, low), MaximaBrute(c.Cloud, dims, low); !slices.Equal(got, want) {
					t.Errorf("%s, %dD min %v: %v, want %v", c.Name, dims, low, got, want)
				}
			}
		}
	}
}

func lifted[T geom.Float](cs []Named[T]) []Named[T] {
	for i := range cs {
		cs[i].Cloud.Z = cs[i].Cloud.X
	}
	return cs
}

// FromBytes takes anything, stays small and finite.
func FuzzFromBytes(f *testing.F) {
	f.Add([]byte{2, 63, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, dims := range []int{2, 3} {
			c := FromBytes[float64](b, dims)
			if c.Len() > 4096 || len(c.Y) != c.Len() || (dims == 3) != (c.Z != nil) {
				t.Fatalf("%d, %d, %d values", len(c.X), len(c.Y), len(c.Z))
			}
			for _, v := range slices.Concat(c.X, c.Y, c.Z) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("coordinate %v", v)
				}
			}
		}
	})
}

func TestRealDataIsWhatItIs(t *testing.T) {
	for _, f := range RealFrames(t) {
		if n := f.Cloud.Len(); n < 10_000 || n > 250_000 {
			t.Errorf("%s: %d points", f.Name, n)
		}
	}
	if d := Drawings[float32](t); len(d) < 1000 {
		t.Errorf("%d drawings", len(d))
	}
}
