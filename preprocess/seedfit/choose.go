package seedfit

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/algos/extreme"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
)

// frame is a training frame whose box is the unit cube.
type frame struct {
	cloud   geom.Cloud[float64]
	outside []int32 // points outside the hull of the points that the directions find
	finder  extreme.Finder[float64]
	hull    hull.Hull3D[float64]
}

// boxedFrames returns copies of the frames that have volume, scaled to the unit cube.
func boxedFrames[T geom.Float](frames []geom.Cloud[T]) []*frame {
	var out []*frame
	for _, c := range frames {
		if c.Z == nil || c.Len() < 4 || !c.Finite() {
			continue
		}
		f := &frame{cloud: geom.Cloud[float64]{X: unit(c.X), Y: unit(c.Y), Z: unit(c.Z)}}
		if _, _, dim := f.hull.Append(nil, nil, f.cloud); dim < 3 || !f.finder.Look(f.cloud) {
			continue
		}
		for i := range c.X {
			f.outside = append(f.outside, int32(i))
		}
		out = append(out, f)
	}
	return out
}

// unit maps an axis to [0, 1].
func unit[T geom.Float](v []T) []float64 {
	low, high := float64(slices.Min(v)), float64(slices.Max(v))
	size := high - low
	if !(size > 0) {
		size = 1
	}
	u := make([]float64, len(v))
	for i := range v {
		u[i] = (float64(v[i]) - low) / size
	}
	return u
}

// evenly returns k directions spread over the sphere along a spiral, [k][3]. The seed
// decides the rotation of the spiral.
func evenly(k int, seed uint64) (u []float32) {
	turn := rand.New(rand.NewPCG(seed, 0)).Float64()
	for i := range k {
		z := 1 - (2*float64(i)+1)/float64(k)
		r, a := math.Sqrt(1-float64(z*z)), 2*math.Pi*(turn+float64(float64(i)*((math.Sqrt(5)-1)/2)))
		u = append(u, float32(r*math.Cos(a)), float32(r*math.Sin(a)), float32(z))
	}
	return u
}

// ground returns directions that point down, in rings around the vertical. The
// ground is wide and has many points, and the heights of its lowest points differ by
// little: only directions close to the vertical separate them.
func ground() (u []float32) {
	for ring, tilt := range [rings]float64{0.32, 0.16} {
		size := math.Sqrt(1 + tilt*tilt)
		for k := range around {
			a := 2 * math.Pi * (float64(k) + float64(ring)/2) / around
			u = append(u, float32(tilt*math.Cos(a)/size), float32(tilt*math.Sin(a)/size), float32(-1/size))
		}
	}
	return u
}

const (
	rings  = 2
	around = 8 // directions a ring
)

// choose adds directions to u until u has count directions. Each new direction is
// the outer normal of the facet with most points beyond it, among the hulls of the
// points that the directions find in each frame. So each new direction enlarges at
// least one of these hulls.
func choose(frames []*frame, u []float32, count int) []float32 {
	for len(u) < 3*count {
		var best facet
		for _, f := range frames {
			if g := f.heaviest(f.finder.Append(nil, u)); g.weight > best.weight {
				best = g
			}
		}
		if best.weight == 0 { // the hulls hold all points, or none has a volume yet
			return append(u, evenly(count-len(u)/3, uint64(len(u)))...)
		}
		u = append(u, best.normal[:]...)
	}
	return u
}

// facet is a plane, and the number of points beyond it as weight.
type facet struct {
	normal [3]float32
	weight int
}

// heaviest returns the facet of the hull of the points at that has most points
// beyond it. It removes the points that are beyond no facet from f.outside: later
// hulls contain this hull.
func (f *frame) heaviest(at []int32) (best facet) {
	var c geom.Cloud[float64]
	for _, i := range at {
		c.X, c.Y, c.Z = append(c.X, f.cloud.X[i]), append(c.Y, f.cloud.Y[i]), append(c.Z, f.cloud.Z[i])
	}
	_, faces, dim := f.hull.Append(nil, nil, c)
	if dim < 3 {
		return facet{}
	}
	beyond := make([]bool, len(f.outside))
	for t := range slices.Chunk(faces, 3) {
		n, offset := planeOf(c, t)
		weight := 0
		for k, i := range f.outside {
			if float64(n[0]*f.cloud.X[i])+float64(n[1]*f.cloud.Y[i])+float64(n[2]*f.cloud.Z[i]) > offset+slack {
				beyond[k] = true
				weight++
			}
		}
		if weight > best.weight {
			best = facet{[3]float32{float32(n[0]), float32(n[1]), float32(n[2])}, weight}
		}
	}
	left := f.outside[:0]
	for k, i := range f.outside {
		if beyond[k] {
			left = append(left, i)
		}
	}
	f.outside = left
	return best
}

// slack is the distance, in unit coordinates, up to which a point beyond a plane
// counts as rounding.
const slack = 1e-6

// planeOf returns the outer normal, of length 1, and the offset of a triangle.
func planeOf(c geom.Cloud[float64], t []int32) (n [3]float64, offset float64) {
	var p, a, b [3]float64
	for k, v := range [][]float64{c.X, c.Y, c.Z} {
		p[k], a[k], b[k] = v[t[0]], v[t[1]]-v[t[0]], v[t[2]]-v[t[0]]
	}
	n = [3]float64{float64(a[1]*b[2]) - float64(a[2]*b[1]), float64(a[2]*b[0]) - float64(a[0]*b[2]),
		float64(a[0]*b[1]) - float64(a[1]*b[0])}
	size := math.Sqrt(float64(n[0]*n[0]) + float64(n[1]*n[1]) + float64(n[2]*n[2]))
	if !(size > 0) { // a sliver, its normal lost in rounding
		return n, math.Inf(1)
	}
	for k := range n {
		n[k] /= size
		offset += float64(n[k] * p[k])
	}
	return n, offset
}
