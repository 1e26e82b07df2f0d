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

// inverse returns the motion back. It inverts the matrix as it is, because the rotations of
// published files are rounded.
func (a *rigid) inverse() (m rigid) {
	minor := a.minor
	m.r = [9]float64{minor(4, 8, 5, 7), minor(2, 7, 1, 8), minor(1, 5, 2, 4),
		minor(5, 6, 3, 8), minor(0, 8, 2, 6), minor(2, 3, 0, 5),
		minor(3, 7, 4, 6), minor(1, 6, 0, 7), minor(0, 4, 1, 3)}
	det := a.determinant()
	for i := range m.r {
		m.r[i] /= det
	}
	back := m.apply(a.t)
	m.t = [3]float64{-back[0], -back[1], -back[2]}
	return m
}

// minor returns r[i]·r[j] − r[k]·r[l].
func (a *rigid) minor(i, j, k, l int) float64 { return float64(a.r[i]*a.r[j]) - float64(a.r[k]*a.r[l]) }

// determinant returns the determinant of the rotation.
func (a *rigid) determinant() float64 {
	return float64(a.r[0]*a.minor(4, 8, 5, 7)) + float64(a.r[1]*a.minor(5, 6, 3, 8)) +
		float64(a.r[2]*a.minor(3, 7, 4, 6))
}

// pose returns the motion as the first three rows of its matrix.
func (a *rigid) pose() *codec.Pose {
	return &codec.Pose{a.r[0], a.r[1], a.r[2], a.t[0], a.r[3], a.r[4], a.r[5], a.t[1], a.r[6], a.r[7], a.r[8], a.t[2]}
}

// rigidRows returns the motion of the first three rows of a matrix, row-major. false: a number
// is not finite, or the rotation is none (the lengths of its rows or its determinant are not 1
// within a thousandth).
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
	return m, math.Abs(m.determinant()-1) < 1e-3
}
