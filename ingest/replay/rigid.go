package replay

import (
	"math"

	"entropipe/schemas/codec"
)

// rigid is a rigid motion: a rotation, then a translation in metres. Every product is rounded
// by itself, so that all CPUs give the same bits.
type rigid struct {
	r [9]float64 // row-major
	t [3]float64
}

// rigidOf returns the motion of a quaternion w, x, y, z of any length and a translation. false:
// a number is not finite, or the quaternion has no direction.
func rigidOf(q [4]float64, t [3]float64) (m rigid, ok bool) {
	n := math.Sqrt(float64(q[0]*q[0]) + float64(q[1]*q[1]) + float64(q[2]*q[2]) + float64(q[3]*q[3]))
	if !(n > 1e-9 && n < 1e9) {
		return m, false
	}
	for _, v := range t {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return m, false
		}
	}
	w, x, y, z := q[0]/n, q[1]/n, q[2]/n, q[3]/n
	double := func(a, b float64) float64 { return 2 * float64(a*b) }
	m.t = t
	m.r = [9]float64{
		1 - (double(y, y) + double(z, z)), double(x, y) - double(w, z), double(x, z) + double(w, y),
		double(x, y) + double(w, z), 1 - (double(x, x) + double(z, z)), double(y, z) - double(w, x),
		double(x, z) - double(w, y), double(y, z) + double(w, x), 1 - (double(x, x) + double(y, y)),
	}
	return m, true
}

// times returns the motion b followed by a.
func (a *rigid) times(b *rigid) (m rigid) {
	for i := range 3 {
		for k := range 3 {
			m.r[3*i+k] = float64(a.r[3*i]*b.r[k]) + float64(a.r[3*i+1]*b.r[3+k]) + float64(a.r[3*i+2]*b.r[6+k])
		}
	}
	m.t = a.apply(b.t)
	return m
}

// apply moves a point.
func (a *rigid) apply(p [3]float64) (q [3]float64) {
	for i := range q {
		q[i] = float64(a.r[3*i]*p[0]) + float64(a.r[3*i+1]*p[1]) + float64(a.r[3*i+2]*p[2]) + a.t[i]
	}
	return q
}

// inverse returns the motion back. The inverse of a rotation is its transpose.
func (a *rigid) inverse() (m rigid) {
	for i := range 3 {
		for k := range 3 {
			m.r[3*i+k] = a.r[3*k+i]
		}
	}
	back := m.apply(a.t)
	m.t = [3]float64{-back[0], -back[1], -back[2]}
	return m
}

// pose returns the motion as the first three rows of its matrix.
func (a *rigid) pose() *codec.Pose {
	return &codec.Pose{a.r[0], a.r[1], a.r[2], a.t[0], a.r[3], a.r[4], a.r[5], a.t[1], a.r[6], a.r[7], a.r[8], a.t[2]}
}

// rigidRows returns the motion of the first three rows of a matrix, row-major. false: a number
// is not finite, or the rotation is none (its rows are not of length 1 within a thousandth).
func rigidRows(v [12]float64) (m rigid, ok bool) {
	for i := range 3 {
		row := v[4*i : 4*i+4]
		length := float64(row[0]*row[0]) + float64(row[1]*row[1]) + float64(row[2]*row[2])
		if !(math.Abs(length-1) < 2e-3) || math.IsNaN(row[3]) || math.IsInf(row[3], 0) {
			return m, false
		}
		copy(m.r[3*i:], row[:3])
		m.t[i] = row[3]
	}
	return m, true
}
