package geomtest

import (
	"math"
	"math/big"
)

// OrientExact3 returns the sign of the volume (b - a) × (c - a) · (d - a): +1
// when d lies on the side of the plane a, b, c from which these appear
// counter-clockwise, -1 on the other side, 0 on the plane. It is exact for all finite
// coordinates. Cost: about 20 ns, or some microseconds for almost coplanar points.
//
// As in OrientExact the first test is deliberately loose: 1e-14 is ten times the rounding
// error, and for lengths below 1e100 the loss to underflow is below 1e-200.
func OrientExact3(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz float64) int {
	px, py, pz := bx-ax, by-ay, bz-az
	qx, qy, qz := cx-ax, cy-ay, cz-az
	rx, ry, rz := dx-ax, dy-ay, dz-az
	det := float64(px*(float64(qy*rz)-float64(qz*ry))) +
		float64(py*(float64(qz*rx)-float64(qx*rz))) +
		float64(pz*(float64(qx*ry)-float64(qy*rx)))
	p := math.Abs(px) + math.Abs(py) + math.Abs(pz)
	q := math.Abs(qx) + math.Abs(qy) + math.Abs(qz)
	r := math.Abs(rx) + math.Abs(ry) + math.Abs(rz)
	if e := 1e-14*p*q*r + 1e-150; max(p, q, r) < 1e100 {
		if det > e {
			return 1
		}
		if -det > e {
			return -1
		}
	}
	v := integers(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz)
	from := func(k int) [3]*big.Int { return less(v, k, 0) }
	return volumeBig(from(1), from(2), from(3)).Sign()
}

// InSphereExact returns +1 when e lies inside the sphere through a, b, c and d,
// -1 outside, 0 on it, where OrientExact3 of a, b, c, d is +1; the opposite signs where
// it is -1. It is exact for all finite coordinates. Cost: some microseconds, since it has
// no filter.
func InSphereExact(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, ex, ey, ez float64) int {
	v := integers(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, ex, ey, ez)
	var p [4][3]*big.Int
	var lift [4]*big.Int
	for k := range p {
		p[k] = less(v, k, 4)
		lift[k] = new(big.Int)
		for _, c := range p[k] {
			lift[k].Add(lift[k], mul(c, c))
		}
	}
	// The determinant of the rows (x, y, z, lift), developed by the last column.
	sum := mul(lift[0], volumeBig(p[1], p[2], p[3]))
	sum.Sub(sum, mul(lift[1], volumeBig(p[0], p[2], p[3])))
	sum.Add(sum, mul(lift[2], volumeBig(p[0], p[1], p[3])))
	sum.Sub(sum, mul(lift[3], volumeBig(p[0], p[1], p[2])))
	return sum.Sign()
}

// less returns point k of v minus point origin.
func less(v []*big.Int, k, origin int) [3]*big.Int {
	return [3]*big.Int{sub(v[3*k], v[3*origin]), sub(v[3*k+1], v[3*origin+1]), sub(v[3*k+2], v[3*origin+2])}
}

// volumeBig returns p · (q × r).
func volumeBig(p, q, r [3]*big.Int) *big.Int {
	sum := new(big.Int)
	for k := range 3 {
		i, j := (k+1)%3, (k+2)%3
		sum.Add(sum, mul(p[k], sub(mul(q[i], r[j]), mul(q[j], r[i]))))
	}
	return sum
}
