package hull

import (
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

// Four times the points cost about four times as much, however they lie and
// whatever their order. Cost is what loops count, so that no other load of the
// machine matters; with a vector unit and without, shared by goroutines and not.
func TestTouched(t *testing.T) {
	testTouched(t, 1<<13, 1, hostile[float32]())
	testTouched(t, 1<<13, 1, hostile[float64]())
	testTouched(t, laneFrom, 4, hostile[float64]()[:6]) // the larger clouds have four lanes
	defer kernel.Limit(kernel.Portable)()
	testTouched(t, 1<<13, 1, hostile[float64]())
}

// hostile are orders and places of points that make other hulls quadratic.
func hostile[T geom.Float]() []geomtest.Generator[T] {
	return append([]geomtest.Generator[T]{
		{Name: "spiral", Make: spiral[T]},
		{Name: "nested", Make: nested[T]},
		{Name: "halving", Make: halving[T]},
		{Name: "outliers", Make: outliers[T]},
		{Name: "late", Make: late[T]},
		{Name: "thin", Make: thin[T]},
	}, geomtest.Generators2D[T]()...)
}

func testTouched[T geom.Float](t *testing.T, n, workers int, inputs []geomtest.Generator[T]) {
	grown := 5.5
	if workers > 1 {
		grown = 8 // which lane sees which points depends on timing; what is quadratic grows by 16
	}
	for _, g := range inputs {
		small, large := touchedBy(g.Make(n, seed), workers), touchedBy(g.Make(4*n, seed), workers)
		// 40 is a handful of looks at each of log2 n places: nothing quadratic
		// stays below it.
		if large > grown*small+float64(n) || large > 40*4*float64(n) {
			t.Errorf("%s[%T], %d workers, %v, seed %d: %.0f looks at %d points, %.0f at %d", g.Name, T(0), workers,
				kernel.Best(), seed, small, n, large, 4*n)
		}
	}
}

// touchedBy adds up what all lanes count.
func touchedBy[T geom.Float](c geom.Cloud[T], workers int) float64 {
	h := Hull2D[T]{Workers: workers}
	h.Append(nil, c)
	sum := 0
	for _, l := range h.lanes {
		sum += l.touched
	}
	return float64(sum)
}

func make2[T geom.Float](n int, f func(i int) (x, y float64)) geom.Cloud[T] {
	c := geom.Cloud[T]{X: make([]T, n), Y: make([]T, n)}
	for i := range n {
		x, y := f(i)
		c.X[i], c.Y[i] = T(x), T(y)
	}
	return c
}

// spiral has every point outside the hull of those before it.
func spiral[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	return make2[T](n, func(i int) (x, y float64) {
		s, c := math.Sincos(2.399963 * float64(i))
		r := 1 + float64(i)/float64(n)
		return r * c, r * s
	})
}

// nested is circles inside one another, the innermost first: a hull that grows
// all the time and has many vertices.
func nested[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	side := int(math.Sqrt(float64(n)))
	return make2[T](n, func(i int) (x, y float64) {
		s, c := math.Sincos(2 * math.Pi * float64(i%side) / float64(side))
		r := 1 + float64(i/side)
		return r * c, r * s
	})
}

// halving has coordinates that are halved from point to point: all of them in
// one bucket, of whatever width.
func halving[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	return make2[T](n, func(i int) (x, y float64) {
		x = math.Ldexp(1+float64(i)/float64(n), -i%120)
		return x, x * x
	})
}

// outliers has one point in twenty far away.
func outliers[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	r := rand.New(rand.NewPCG(seed, 3))
	return make2[T](n, func(i int) (x, y float64) {
		far := 1.0
		if i%20 == 0 {
			far = math.Ldexp(1, r.IntN(60))
		}
		return far * (r.Float64() - 0.5), far * (r.Float64() - 0.5)
	})
}

// late is a point, until its second half.
func late[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	c := geomtest.Circle[T](n, seed)
	for i := range n / 2 {
		c.X[i], c.Y[i] = 0, 0
	}
	return c
}

// thin is an arc, flatter than any margin of the filter.
func thin[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	r := rand.New(rand.NewPCG(seed, 4))
	return make2[T](n, func(int) (x, y float64) {
		x = r.Float64()
		return x, x + 1e-30*x*x
	})
}
