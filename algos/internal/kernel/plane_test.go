package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// arbitraryPlanes has normals of every kind, some of them NaN.
func arbitraryPlanes[T float32 | float64](r *rand.Rand) *Planes[T] {
	p := &Planes[T]{Center: [3]T{1.5, -20, 0}, Scale: [3]T{0.25, 2, 1}}
	for k := range p.Normal {
		for i := range p.Normal[k] {
			p.Normal[k][i] = float32(r.NormFloat64())
			if r.IntN(50) == 0 {
				p.Normal[k][i] = float32(math.NaN())
			}
		}
	}
	return p
}

// arbitraryPoints lie in and around the cube, some of them on the borders of
// cells, on diagonals, at the centre, or far away.
func arbitraryPoints[T float32 | float64](r *rand.Rand, p *Planes[T], n int) (axes [3][]T) {
	large := T(math.MaxFloat32)
	for range n {
		v := [3]T{T(2.2*r.Float64() - 1.1), T(2.2*r.Float64() - 1.1), T(2.2*r.Float64() - 1.1)}
		switch r.IntN(4) {
		case 0:
			for k := range v {
				v[k] = T(r.IntN(17)-8) / 8
			}
		case 1:
			v[r.IntN(3)] = []T{0, 1e-30, -1e-30, 1, -1, large, -large, T(math.Copysign(0, -1))}[r.IntN(8)]
		}
		for k := range v {
			axes[k] = append(axes[k], max(-large, min(large, v[k]/p.Scale[k]+p.Center[k])))
		}
	}
	return axes
}

// Every level gives the same bits, for every length and alignment.
func TestBeyond(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testBeyond[float32](t)
		testBeyond[float64](t)
	})
}

func testBeyond[T float32 | float64](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := arbitraryPlanes[T](r)
	axes := arbitraryPoints(r, p, 700)
	var got, want [12]uint64
	for from := range 17 {
		for n := 0; from+n <= 700; n += 1 + n/100 {
			x, y, z := axes[0][from:from+n], axes[1][from:from+n], axes[2][from:from+n]
			for k := range got {
				got[k], want[k] = 0x5555, 0x5555 // words after the last stay
			}
			Beyond(p, x, y, z, got[:])
			beyond(p, x, y, z, want[:])
			if got != want {
				t.Fatalf("%T: %d points from %d: %x, want %x", T(0), n, from, got, want)
			}
		}
	}
	inside := 700
	beyond(p, axes[0], axes[1], axes[2], want[:])
	for i := range 700 {
		inside -= int(want[i/64] >> (i % 64) & 1)
	}
	if inside < 100 || inside > 600 {
		t.Errorf("%d of 700 points are inside: nothing was tested", inside)
	}
}

// A point is inside by the plane of its own cell.
func TestBeyondLooksAtTheRightCell(t *testing.T) {
	for cell := range CubeCells {
		p := &Planes[float64]{Scale: [3]float64{1, 1, 1}}
		for k := range p.Normal {
			for i := range p.Normal[k] {
				p.Normal[k][i] = float32(math.NaN())
			}
			p.Normal[k][cell] = 0
		}
		side, i, j := cell/Cells/Cells, cell/Cells%Cells, cell%Cells
		v := [3]float64{0.5 - float64(side%2)}
		v[1], v[2] = ((float64(i)+0.5)/Cells*2-1)/2, ((float64(j)+0.5)/Cells*2-1)/2
		switch side / 2 {
		case 1:
			v[0], v[1] = v[1], v[0]
		case 2:
			v[0], v[1], v[2] = v[1], v[2], v[0]
		}
		mask := []uint64{7}
		if Beyond(p, v[:1], v[1:2], v[2:], mask); mask[0] != 0 {
			t.Fatalf("cell %d: %v is beyond", cell, v)
		}
	}
}

func BenchmarkBeyond(b *testing.B) {
	benchBeyond[float32](b)
	benchBeyond[float64](b)
}

func benchBeyond[T float32 | float64](b *testing.B) {
	for _, l := range []Level{Portable, AVX2, AVX512} {
		b.Run(fmt.Sprintf("%T/%v", T(0), l), func(b *testing.B) {
			if l > Best() {
				b.Skipf("this CPU has %v", Best())
			}
			defer Limit(l)()
			r := rand.New(rand.NewPCG(1, 2))
			p := arbitraryPlanes[T](r)
			const n = 4096
			axes := arbitraryPoints(r, p, n)
			mask := make([]uint64, n/64)
			for b.Loop() {
				Beyond(p, axes[0], axes[1], axes[2], mask)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
		})
	}
}
