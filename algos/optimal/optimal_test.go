package optimal

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
)

const seed = 1

// directions are all choices of minimised axes.
var directions = [][2]bool{{}, {true, false}, {false, true}, {true, true}}

// Results are those of the operators, and of the oracles.
func TestResultsAreTheOperators(t *testing.T) {
	t.Run("float32", testOperators[float32])
	t.Run("float64", testOperators[float64])
}

func testOperators[T geom.Float](t *testing.T) {
	var m Maxima[T] // one for all clouds: scratch must not leak from call to call
	var h Hull2D[T]
	for _, n := range []int{0, 1, 2, 3, 4, 50, 1000} {
		for _, c := range geomtest.Clouds2D[T](n, seed) {
			checkCloud(t, c.Name, &m, &h, c.Cloud)
		}
	}
}

// On clouds full of ties too.
func TestResultsOnTies(t *testing.T) {
	var m Maxima[float64]
	var h Hull2D[float64]
	rapid.Check(t, func(t *rapid.T) {
		checkCloud(t, "ties", &m, &h, geomtest.Tied[float64](2).Draw(t, "cloud"))
	})
}

// The points on which triangulators failed, real frames and drawings.
func TestResultsOnRealData(t *testing.T) {
	var m Maxima[float32]
	var h Hull2D[float32]
	frames, drawings := geomtest.RealFrames(t), geomtest.Drawings[float32](t)
	few, many := 1, 200
	if testing.Short() {
		few, many = 0, 20
	}
	for _, f := range frames[:min(few, len(frames))] {
		checkCloud(t, f.Name, &m, &h, f.Cloud)
	}
	for _, d := range drawings[:min(many, len(drawings))] {
		checkCloud(t, d.Name, &m, &h, d.Cloud)
	}
}

type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkCloud compares both algorithms with the operators and looks at their
// traces.
func checkCloud[T geom.Float](t fatal, name string, m *Maxima[T], h *Hull2D[T], c geom.Cloud[T]) {
	t.Helper()
	plane := geom.Cloud[T]{X: c.X, Y: c.Y}
	for _, m.Min = range directions {
		want := geomtest.Maxima(plane, 2, [3]bool{m.Min[0], m.Min[1]})
		if d := cmp.Diff(want, m.Append(nil, c)); d != "" {
			t.Fatalf("%s, %d points, seed %d, min %v: maxima -want +got %s", name, c.Len(), seed, m.Min, d)
		}
		operator := maxima.Maxima[T]{Min: [maxima.MaxDims]bool{m.Min[0], m.Min[1]}}
		if d := cmp.Diff(operator.Append2D(nil, plane), want); d != "" {
			t.Fatalf("%s, %d points, seed %d, min %v: operator -got +want %s", name, c.Len(), seed, m.Min, d)
		}
		if bad := m.illegal(c); bad != "" {
			t.Fatalf("%s, %d points, seed %d, min %v: trace: %s", name, c.Len(), seed, m.Min, bad)
		}
	}
	want, got := geomtest.Hull2D(plane), h.Append([]int32{-1}, c)[1:]
	if d := cmp.Diff(want, got, equateEmpty); d != "" {
		t.Fatalf("%s, %d points, seed %d: hull -want +got %s", name, c.Len(), seed, d)
	}
	var operator hull.Hull2D[T]
	if d := cmp.Diff(operator.Append(nil, plane), want, equateEmpty); d != "" {
		t.Fatalf("%s, %d points, seed %d: operator -got +want %s", name, c.Len(), seed, d)
	}
	for up, trace := range map[T]*Trace{1: &h.Upper, -1: &h.Lower} {
		if bad := illegalHull(c, up, trace, want); bad != "" {
			t.Fatalf("%s, %d points, seed %d, up %v: trace: %s", name, c.Len(), seed, up, bad)
		}
	}
}

var equateEmpty = cmp.Transformer("empty", func(v []int32) []int32 { return append([]int32{}, v...) })

// illegal says how the trace of maxima breaks its promises.
func (m *Maxima[T]) illegal(c geom.Cloud[T]) string {
	sx, sy := sign[T](m.Min[0]), sign[T](m.Min[1])
	used := make([]bool, len(m.Trace.Ranges))
	for i, g := range m.Trace.Group {
		if g < 0 || int(g) >= len(used) {
			return "a point without group"
		}
		used[g] = true
		r := m.Trace.Ranges[g]
		if r.A != r.B || sx*c.X[r.A] < sx*c.X[i] || sy*c.Y[r.A] < sy*c.Y[i] {
			return "a point that its group's range does not dominate"
		}
		if m.Trace.Group[r.A] != g {
			return "a maximal point outside its own group"
		}
	}
	return accounts(&m.Trace, used)
}

// illegalHull says how the trace of a half of a hull breaks its promises.
func illegalHull[T geom.Float](c geom.Cloud[T], up T, trace *Trace, vertices []int32) string {
	at := func(i int32) (x, y float64) { return float64(c.X[i]), float64(up * c.Y[i]) }
	used := make([]bool, len(trace.Ranges))
	for i, g := range trace.Group {
		if g < 0 || int(g) >= len(used) {
			return "a point without group"
		}
		used[g] = true
		r := trace.Ranges[g]
		ax, ay := at(r.A)
		bx, by := at(r.B)
		x, y := at(int32(i))
		if x < ax || x > bx || geomtest.OrientExact(ax, ay, bx, by, x, y) > 0 || ax == bx && y > ay {
			return "a point that is not below its group's chord"
		}
		if !slices.Contains(vertices, r.A) || !slices.Contains(vertices, r.B) {
			return "a chord between points that are no vertices"
		}
	}
	return accounts(trace, used)
}

// accounts checks what holds for every trace.
func accounts(trace *Trace, used []bool) string {
	n := float64(len(trace.Group))
	switch e := trace.Entropy(); {
	case slices.Contains(used, false):
		return "a group without points"
	case n > 0 && (trace.Touched < int64(n) || float64(trace.Touched) > n*(math.Log2(n)+2)):
		return "touched points out of bounds"
	case n == 0 && (trace.Touched != 0 || len(trace.Ranges) != 0):
		return "something touched in an empty cloud"
	case e < 0 || n > 0 && e > math.Log(n)+1e-9:
		return "entropy out of bounds"
	}
	return ""
}

// The number of touched points depends on the set of points only.
func TestTouchedDoesNotDependOnOrder(t *testing.T) {
	var m Maxima[float64]
	var h Hull2D[float64]
	for _, c := range geomtest.Clouds2D[float64](700, seed) {
		m.Append(nil, c.Cloud)
		h.Append(nil, c.Cloud)
		want := [3]int64{m.Trace.Touched, h.Upper.Touched, h.Lower.Touched}
		permuted, _ := geomtest.Permuted(c.Cloud, seed+1)
		m.Append(nil, permuted)
		h.Append(nil, permuted)
		if got := [3]int64{m.Trace.Touched, h.Upper.Touched, h.Lower.Touched}; got != want {
			t.Errorf("%s: touched %d, in another order %d (maxima, upper, lower)", c.Name, want, got)
		}
	}
}

// Selection puts the right point in its place, in linear time with or without luck.
func TestChoose(t *testing.T) {
	for _, luck := range []int{luckFactor, 0} {
		for _, n := range []int{1, 2, 3, 4, 5, 6, 11, 100, 3001} {
			for _, c := range geomtest.Clouds2D[float64](n, seed) {
				q := load(nil, c.Cloud, 1, 1)
				if len(q) == 0 {
					continue // a grid
				}
				sorted := slices.Clone(q)
				slices.SortFunc(sorted, func(a, b site[float64]) int {
					if a.before(b) {
						return -1
					}
					return 1
				})
				var d dice
				d.reset()
				for _, k := range []int{0, len(q) / 3, len(q) / 2, len(q) - 1} {
					looked := choose(&d, q, k, luck)
					if q[k] != sorted[k] {
						t.Fatalf("%s, %d points, luck %d: %v at %d, want %v", c.Name, n, luck, q[k], k, sorted[k])
					}
					for i, s := range q {
						if i < k && !s.before(q[k]) || i > k && !q[k].before(s) {
							t.Fatalf("%s, %d points, luck %d: %v at %d is on the wrong side of %v at %d", c.Name, n,
								luck, s, i, q[k], k)
						}
					}
					if looked > 40*len(q) {
						t.Errorf("%s, %d points, luck %d: looked at %d points", c.Name, n, luck, looked)
					}
				}
			}
		}
	}
}

// Bridges by sorting, which luck makes hardly ever, give the same hulls and
// touch the same points.
func TestBridgesWithoutLuck(t *testing.T) {
	var lucky Hull2D[float32]
	unlucky := Hull2D[float32]{half: half[float32]{luck: -1}}
	lost := 0
	for _, n := range []int{5, 60, 500} {
		for _, c := range geomtest.Clouds2D[float32](n, seed) {
			want := lucky.Append(nil, c.Cloud)
			if lucky.half.lost > 0 {
				t.Errorf("%s: %d bridges out of luck", c.Name, lucky.half.lost)
			}
			if got := unlucky.Append(nil, c.Cloud); !slices.Equal(got, want) {
				t.Errorf("%s, %d points, seed %d: hull %v, want %v", c.Name, n, seed, got, want)
			}
			if lucky.Upper.Touched != unlucky.Upper.Touched || lucky.Lower.Touched != unlucky.Lower.Touched {
				t.Errorf("%s, %d points, seed %d: touched %d and %d, with luck %d and %d", c.Name, n, seed,
					unlucky.Upper.Touched, unlucky.Lower.Touched, lucky.Upper.Touched, lucky.Lower.Touched)
			}
			lost += unlucky.half.lost
		}
	}
	if lost == 0 {
		t.Error("no bridge was found by sorting: the test shows nothing")
	}
}

func TestCallersMistakesPanic(t *testing.T) {
	for _, c := range []struct {
		want  string
		cloud geom.Cloud[float64]
	}{
		{badLengths, geom.Cloud[float64]{X: []float64{1, 2}, Y: []float64{1}}},
		{badLengths, geom.Cloud[float64]{X: []float64{1}, Y: []float64{1}, Z: []float64{1, 2}}},
		{badFinite, geom.Cloud[float64]{X: []float64{1, math.NaN()}, Y: []float64{1, 2}}},
		{badFinite, geom.Cloud[float64]{X: []float64{1, 2}, Y: []float64{1, math.Inf(-1)}}},
	} {
		for name, call := range map[string]func(){
			"Maxima": func() { new(Maxima[float64]).Append(nil, c.cloud) },
			"Hull2D": func() { new(Hull2D[float64]).Append(nil, c.cloud) },
		} {
			func() {
				defer func() {
					if got := recover(); got != c.want {
						t.Errorf("%s of %v: %v, want %q", name, c.cloud, got, c.want)
					}
				}()
				call()
			}()
		}
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	c := geomtest.Parabola[float32](5000, seed)
	var m Maxima[float32]
	var h Hull2D[float32]
	var dst []int32
	if n := testing.AllocsPerRun(5, func() {
		dst = h.Append(m.Append(dst[:0], c), c)
		m.Trace.Entropy()
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func FuzzResults(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 2, 2, 3, 3, 1, 2})
	f.Add([]byte{0x21, 5, 1, 1, 2, 2, 3, 3, 1, 2, 9, 250})
	f.Add([]byte{2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		checkCloud(t, "bytes", new(Maxima[float64]), new(Hull2D[float64]), geomtest.FromBytes[float64](b, 2))
		checkCloud(t, "bytes", new(Maxima[float32]), new(Hull2D[float32]), geomtest.FromBytes[float32](b, 2))
	})
}
