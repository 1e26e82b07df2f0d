package net

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
)

// chosen draws a non-empty choice of the points of a cloud, with repetitions.
func chosen(t *rapid.T, n int) []int32 {
	return rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 1, 2*n).Draw(t, "predicted")
}

// bracketHull bounds the largest distance of any point to the hull of the
// predicted ones.
func bracketHull(c geom.Cloud[float64], predicted []int32) (least, most float64) {
	for i := range c.X {
		lo, hi := bracket(point(c, int32(i), 1), c, predicted)
		least, most = max(least, lo), max(most, hi)
	}
	return least, most
}

// bracket bounds the distance of p to conv(predicted) by Gilbert's algorithm:
// a point of the hull gives the upper bound, the hull's extreme point towards p
// the lower one. It needs no surface.
func bracket(p vector, c geom.Cloud[float64], predicted []int32) (least, most float64) {
	at := point(c, predicted[0], 1)
	most = math.Inf(1)
	for range 500 {
		d := minus(p, at)
		far, best := at, math.Inf(-1)
		for _, i := range predicted {
			q := point(c, i, 1)
			if v := dot(minus(q, at), d); v > best {
				far, best = q, v
			}
		}
		l := math.Sqrt(dot(d, d))
		if most = min(most, l); l < 1e-12 || best <= 0 {
			return most, most
		}
		least = max(least, l-best/l)
		step := minus(far, at)
		t := min(1, best/dot(step, step))
		for k := range at {
			at[k] += t * step[k]
		}
	}
	return least, most
}

// The error of a hull is the largest distance of any point to it, and the hull
// is that of the predicted points in canonical form.
func TestHullErrorIsTheLargestDistance(t *testing.T) {
	var j Judge[float64]
	for _, dims := range []int{2, 3} {
		rapid.Check(t, func(t *rapid.T) {
			c := geomtest.Tied[float64](dims).Draw(t, "cloud")
			if c.Len() == 0 {
				return
			}
			predicted := chosen(t, c.Len())
			var idx, faces []int32
			var got float64
			dim := 2
			if dims == 2 {
				idx, got = j.Hull2D([]int32{-7}, c, predicted)
			} else {
				idx, faces, dim, got = j.Hull3D([]int32{-7}, nil, c, predicted)
			}
			if least, most := bracketHull(c, predicted); got < least-1e-9*(1+least) || got > most+1e-9*(1+most) {
				t.Fatalf("%d dimensions: error %v, want %v to %v; predicted %v", dims, got, least, most, predicted)
			}
			if idx[0] != -7 {
				t.Fatal("dst was overwritten")
			}
			ascending := slices.Compact(slices.Sorted(slices.Values(predicted)))
			part := geomtest.Gather(c, ascending)
			var ref, refFaces []int32
			refDim := 2
			if dims == 2 {
				ref = (&hull.Hull2D[float64]{}).Append(nil, part)
			} else {
				ref, refFaces, refDim = (&hull.Hull3D[float64]{}).Append(nil, nil, part)
			}
			for _, list := range [][]int32{ref, refFaces} {
				for k := range list {
					list[k] = ascending[list[k]]
				}
			}
			if dim != refDim || !slices.Equal(faces, refFaces) {
				t.Fatalf("dimension %d, faces %v, want %d, %v", dim, faces, refDim, refFaces)
			}
			if !slices.Equal(idx[1:], ref) {
				t.Fatalf("hull %v, want %v", idx[1:], ref)
			}
		})
	}
}

// A complete prediction has no error, on every hostile cloud.
func TestACompletePredictionHasNoError(t *testing.T) {
	var j Judge[float64]
	for _, g := range geomtest.Clouds3D[float64](300, 1) {
		all := make([]int32, g.Cloud.Len())
		for i := range all {
			all[i] = int32(i)
		}
		_, e2 := j.Hull2D(nil, g.Cloud, all)
		_, _, _, e3 := j.Hull3D(nil, nil, g.Cloud, all)
		em := j.Maxima(g.Cloud, all, 3, [3]bool{})
		if e2 != 0 || e3 != 0 || em != 0 {
			t.Errorf("%s: errors %v %v %v", g.Name, e2, e3, em)
		}
	}
}

// Known figures: the corner of a square left out, at every scale.
func TestErrorOfALostCorner(t *testing.T) {
	var j Judge[float64]
	for _, s := range []float64{1, 1e-300, 1e300, 3} {
		c := geom.Cloud[float64]{X: []float64{0, s, s, 0}, Y: []float64{0, 0, s, s}, Z: []float64{0, 0, 0, 0}}
		_, e := j.Hull2D(nil, c, []int32{0, 1, 3})
		_, _, _, e3 := j.Hull3D(nil, nil, c, []int32{3, 1, 0})
		if want := s / math.Sqrt2; math.Abs(e/want-1) > 1e-14 || math.Abs(e3/want-1) > 1e-14 {
			t.Errorf("scale %v: errors %v and %v, want %v", s, e, e3, want)
		}
		if e := j.Maxima(c, []int32{1, 3}, 2, [3]bool{}); math.Abs(e/s-1) > 1e-14 {
			t.Errorf("scale %v: maxima miss by %v, want %v", s, e, s)
		}
	}
}

// ε is enough for every point and nothing less is.
func TestMaximaErrorIsTheLeastEpsilon(t *testing.T) {
	var j Judge[float32]
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(2, 3).Draw(t, "dims")
		c := geomtest.Tied[float32](dims).Draw(t, "cloud")
		if c.Len() == 0 {
			return
		}
		var low [3]bool
		for d := range dims {
			low[d] = rapid.Bool().Draw(t, "low")
		}
		predicted := chosen(t, c.Len())
		want := 0.0
		axes := [][]float32{c.X, c.Y, c.Z}[:dims]
		for p := range c.X {
			least := math.Inf(1)
			for _, q := range predicted {
				e := 0.0
				for d, a := range axes {
					gap := float64(a[p]) - float64(a[q])
					if low[d] {
						gap = -gap
					}
					e = max(e, gap)
				}
				least = min(least, e)
			}
			want = max(want, least)
		}
		if got := j.Maxima(c, predicted, dims, low); math.Abs(got-want) > 1e-12*want {
			t.Fatalf("ε %v, want %v (low %v, predicted %v)", got, want, low, predicted)
		}
	})
}

// The search stays cheap where every point is a vertex.
func TestErrorOfManyVertices(t *testing.T) {
	c := geomtest.Circle[float64](20000, 3)
	r := rand.New(rand.NewPCG(1, 2))
	var half []int32
	for i := range c.X {
		if r.IntN(2) == 0 {
			half = append(half, int32(i))
		}
	}
	var j Judge[float64]
	if _, e := j.Hull2D(nil, c, half); e <= 0 || e > 1e-4 {
		t.Errorf("error %v of a circle with every second point", e)
	}
}
