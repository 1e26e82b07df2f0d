package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every length, alignment and amount of room, at every level: the points that
// the definition calls outside, in order, each once.
func TestOutside(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testOutside[float32](t)
		testOutside[float64](t)
	})
}

func testOutside[T float32 | float64](t *testing.T) {
	const seed, most = 1, 300
	r := rand.New(rand.NewPCG(seed, 0))
	odd := []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1)), T(math.Copysign(0, -1)), 1e30, -1e30}
	roomX, roomY := make([]T, most+20), make([]T, most+20)
	for round := range 3 * most {
		c := randomChords[T](r)
		at, n := r.IntN(17), round%most
		x, y := roomX[at:at+n], roomY[at:at+n]
		spread := []float64{0.3, 1, 3}[r.IntN(3)] // nearly all inside, about half, few
		for i := range x {
			x[i], y[i] = T(spread*(2*r.Float64()-1)), T(spread*(2*r.Float64()-1))
			if d := x[i] - c.Origin; r.IntN(10) == 0 { // on a line
				k := bucket(T(d*c.Scale) + magic[T]())
				y[i] = T(c.UpSlope[k]*d) + c.Up[k]
			}
			if r.IntN(30) == 0 {
				x[i] = odd[r.IntN(len(odd))]
			}
			if r.IntN(30) == 0 {
				y[i] = odd[r.IntN(len(odd))]
			}
		}
		var want []int32
		c.magic = magic[T]()
		for i := range x {
			if !c.inside(x[i], y[i]) {
				want = append(want, 100+int32(i))
			}
		}
		var got []int32
		dst := make([]int32, OutsideRoom+r.IntN(200))
		for from := 0; from < n; {
			read, written := c.Outside(x[from:], y[from:], int32(100+from), dst)
			if read == 0 {
				t.Fatalf("%T, seed %d, round %d: no point read with room for %d", c.Left, seed, round, len(dst))
			}
			got = append(got, dst[:written]...)
			from += read
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%T, seed %d, round %d: %d points from %d:\ngot  %v\nwant %v", c.Left, seed,
				round, n, at, got, want)
		}
	}
}

// randomChords has lines between -1 and 1 in each of its buckets.
func randomChords[T float32 | float64](r *rand.Rand) Chords[T] {
	c := Chords[T]{Origin: T(r.Float64() - 0.5), Scale: T(4 + 4*r.Float64()), Left: -1, Right: 1}
	for k := range Buckets {
		c.UpSlope[k], c.Up[k] = T(r.Float64()-0.5), T(r.Float64())
		c.LowSlope[k], c.Low[k] = T(r.Float64()-0.5), T(-r.Float64())
	}
	return c
}

// The fraction of one read of the points that testing them costs.
func BenchmarkOutside(b *testing.B) {
	for _, l := range []Level{Portable, AVX2, AVX512} {
		b.Run("float32/"+l.String(), func(b *testing.B) { benchOutside[float32](b, l) })
		b.Run("float64/"+l.String(), func(b *testing.B) { benchOutside[float64](b, l) })
	}
}

func benchOutside[T float32 | float64](b *testing.B, l Level) {
	if l > Best() {
		b.Skipf("this CPU has %v", Best())
	}
	defer Limit(l)()
	const n = 20_000
	r := rand.New(rand.NewPCG(1, 0))
	x, y := make([]T, n), make([]T, n)
	for i := range x {
		x[i], y[i] = T(r.Float64()), T(r.Float64())
	}
	c := Chords[T]{Origin: 0.5, Scale: 16, Left: -0.499, Right: 0.499}
	for k := range Buckets {
		c.Up[k], c.Low[k] = 0.999, 0.001
	}
	dst := make([]int32, n+OutsideRoom)
	for b.Loop() {
		if read, written := c.Outside(x, y, 0, dst); read != n || written > n/100 {
			b.Fatal(read, written)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
}
