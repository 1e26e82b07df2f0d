package hull

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

var campaign3 = flag.Int("campaign3", 2000, "small sets to compare with the oracle in space")

// wantHull3 compares with the oracle by definition.
func wantHull3[T geom.Float](h *Hull3D[T], c geom.Cloud[T]) error {
	v, f, dim := h.Append(nil, nil, c)
	wantV, wantF, wantDim := geomtest.Hull3D(c)
	if dim != wantDim || !slices.Equal(v, wantV) || !slices.Equal(f, wantF) {
		return fmt.Errorf("hull of %#v: dimension %d, vertices %v, faces %v; want %d, %v, %v", c, dim, v, f, wantDim, wantV, wantF)
	}
	return nil
}

// Small sets of every kind: few values an axis give coplanar, collinear and
// equal points by the dozen.
func TestHull3DOfSmallSets(t *testing.T) {
	var h32 Hull3D[float32]
	var h64 Hull3D[float64]
	for round := range *campaign3 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		name, c := smallSet(r)
		if err := wantHull3(&h64, c); err != nil {
			t.Fatalf("%s, round %d, seed %d: %v", name, round, seed, err)
		}
		if err := wantHull3(&h32, narrowed(c)); err != nil {
			t.Fatalf("%s, round %d, seed %d: %v", name, round, seed, err)
		}
	}
}

// narrowed rounds to float32, what is too large to the largest.
func narrowed(c geom.Cloud[float64]) geom.Cloud[float32] {
	narrow := func(v []float64) []float32 {
		w := make([]float32, len(v))
		for i := range v {
			w[i] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, v[i])))
		}
		return w
	}
	return geom.Cloud[float32]{X: narrow(c.X), Y: narrow(c.Y), Z: narrow(c.Z)}
}

func smallSet(r *rand.Rand) (string, geom.Cloud[float64]) {
	n := r.IntN(11)
	kinds := []string{"grid", "uniform", "flat", "noise", "offset", "tiny", "huge", "line", "subnormal", "mixed"}
	kind := kinds[r.IntN(len(kinds))]
	side := 2 + r.IntN(4)
	c := geom.Cloud[float64]{X: []float64{}, Y: []float64{}, Z: []float64{}}
	u, v := [3]float64{float64(r.IntN(5)), float64(r.IntN(5)), 1}, [3]float64{1, float64(r.IntN(5)), float64(r.IntN(5))}
	for range n {
		var p [3]float64
		for k := range p {
			p[k] = float64(r.IntN(side))
		}
		switch kind {
		case "uniform":
			p = [3]float64{r.Float64(), r.Float64(), r.Float64()}
		case "flat":
			s, m := float64(r.IntN(side)), float64(r.IntN(side))
			for k := range p {
				p[k] = s*u[k] + m*v[k]
			}
		case "noise":
			s, m := float64(r.IntN(side)), float64(r.IntN(side))
			for k := range p {
				p[k] = nudge(r, 1+s*u[k]*0x1p-6+m*v[k]*0x1p-6)
			}
		case "offset":
			for k := range p {
				p[k] = 1e15 + p[k]
			}
		case "tiny":
			for k := range p {
				p[k] *= 1e-150
			}
		case "huge":
			for k := range p {
				p[k] *= 1e150 * float64(1-2*r.IntN(2))
			}
		case "line":
			s := float64(r.IntN(7))
			for k := range p {
				p[k] = s * u[k]
			}
		case "subnormal":
			for k := range p {
				p[k] *= 0x1p-149
			}
		case "mixed":
			for k := range p {
				p[k] *= []float64{0, 1, -1, 1e-300, 1e300, 5e-324, 1e15}[r.IntN(7)]
			}
		}
		c.X, c.Y, c.Z = append(c.X, p[0]), append(c.Y, p[1]), append(c.Z, p[2])
	}
	return kind, c
}

func TestHull3DOfTiedClouds(t *testing.T) {
	var h Hull3D[float32]
	rapid.Check(t, func(t *rapid.T) {
		c := geomtest.Tied[float32](3).Draw(t, "cloud")
		c = c.Slice(0, min(c.Len(), 16))
		if err := wantHull3(&h, c); err != nil {
			t.Fatal(err)
		}
	})
}

// Every distribution, with the surface checked rather than compared.
func TestHull3DOfEveryDistribution(t *testing.T) {
	testHull3Distributions[float32](t)
	testHull3Distributions[float64](t)
}

func testHull3Distributions[T geom.Float](t *testing.T) {
	var h Hull3D[T]
	for _, n := range []int{0, 1, 2, 3, 4, 50, 700} {
		for _, c := range geomtest.Clouds3D[T](n, seed) {
			v, f, dim := h.Append(nil, nil, c.Cloud)
			if dim < 3 {
				continue
			}
			if err := geomtest.CheckHull3D(c.Cloud, v, f); err != nil {
				t.Errorf("%s[%T], %d points, seed %d: %v", c.Name, T(0), n, seed, err)
			}
		}
	}
}
