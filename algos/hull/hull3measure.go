package hull

import (
	"math"

	"entropipe/algos/geom"
)

// Measure3D returns the area of a closed surface and the volume inside, in the units
// of the coordinates: square and cubic metres. faces names the corners of its
// triangles, three indices of c each, as Hull3D returns them. No faces give 0, 0; a
// surface that is turned inside out has a negative volume.
//
// Both are within 4 units in the last place of the exact values: for flat solids,
// far from the origin, and for coordinates of very different magnitudes, too. A
// value beyond float64 is infinite; a value below half of the least float64 is 0; no
// other hull has area or volume 0. The operations and their order are fixed and
// never fused: equal input gives equal bits on every processor.
//
// Cost: 60 ns a face; for solids flatter than about 2^-40 of their box some
// microseconds a face, with allocations. Measure3D may be called concurrently.
// faces must hold indices of c; other indices panic.
func Measure3D[T geom.Float](c geom.Cloud[T], faces []int32) (area, volume float64) {
	if len(faces) == 0 {
		return 0, 0
	}
	area, volume, proven := surfaceInDoubles(c, faces)
	if !proven {
		return exactSurface(c, faces)
	}
	return area, volume
}

// surfaceInDoubles computes Measure3D in doubles. proven reports whether the error
// bounds prove both results.
func surfaceInDoubles[T geom.Float](c geom.Cloud[T], faces []int32) (area, volume float64, proven bool) {
	var x, y, z interval
	for _, i := range faces {
		x.add(float64(c.X[i]))
		y.add(float64(c.Y[i]))
		z.add(float64(c.Z[i]))
	}
	s := scaleOf(max(x.largest(), y.largest(), z.largest()))
	twice, six, abs := shells(c, faces, s)
	// Let dx, dy, dz be the sides of the box. A normal's components are minors of
	// products of at most dy·dz, dz·dx and dx·dy, each off by 2·16 of these
	// products. The length of the normal is off by at most the sum of the three
	// errors; 1 more covers higher orders. The further errors of the roots are
	// relative to the sum: 1/2 + 1 + 1 roundings.
	//
	// A normal's component times a distance is at most 2·dx·dy·dz. The dot product
	// loses 54 of that, its three factors 16 each, and plus 2·14 for its low half,
	// together 130; 20 more cover higher orders.
	dx, dy, dz := x.width(s), y.width(s), z.width(s)
	n := float64(len(faces) / 3)
	areaBound := n * (float64(ulp2*float64(33*(float64(dy*dz)+float64(dz*dx)+float64(dx*dy)))) + 0x1p-500)
	volumeBound := n * (float64(ulp2*(float64(300*dx*dy*dz)+float64(4*abs))) + underflow)
	proven = twice.hi > float64(proves*areaBound) && math.Abs(six.hi) > float64(proves*volumeBound)
	return s.back(twice.hi/2, 2), s.back(six.hi/6, 3), proven
}

// shells returns twice the area of the scaled surface; six times its volume, as a
// sum over the tetrahedra at the first corner; and abs, the sum of the magnitudes of
// these terms.
//
// A normal shorter than 2^-500 may be lost, since its square underflows; the bound
// of the area covers that loss.
func shells[T geom.Float](c geom.Cloud[T], faces []int32, s scale) (twice, six double, abs float64) {
	at := func(i int32) (x, y, z float64) {
		return s.of(float64(c.X[i])), s.of(float64(c.Y[i])), s.of(float64(c.Z[i]))
	}
	x0, y0, z0 := at(faces[0])
	for k := 0; k+2 < len(faces); k += 3 {
		px, py, pz := at(faces[k])
		qx, qy, qz := at(faces[k+1])
		rx, ry, rz := at(faces[k+2])
		ux, uy, uz := twoDifference(qx, px), twoDifference(qy, py), twoDifference(qz, pz)
		vx, vy, vz := twoDifference(rx, px), twoDifference(ry, py), twoDifference(rz, pz)
		nx, ny, nz := minor(uy, uz, vy, vz), minor(uz, ux, vz, vx), minor(ux, uy, vx, vy)
		twice = twice.add(math.Sqrt(sumOfSquares(nx, ny, nz)))
		t := sumOfProducts(nx, ny, nz, twoDifference(px, x0), twoDifference(py, y0), twoDifference(pz, z0))
		six, abs = six.plus(t), abs+math.Abs(t.hi)
	}
	return twice, six, abs
}
