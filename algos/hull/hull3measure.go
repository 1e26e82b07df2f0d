package hull

import (
	"math"

	"entropipe/algos/geom"
)

// Measure3D returns the area of the closed surface that faces describes, three
// indices of c's points a triangle as Hull3D returns them, and the volume
// inside, in the units of the coordinates: square and cubic metres. No faces
// have neither: 0, 0.
//
// Coordinates are taken relative to the first corner, so that a small solid far
// from the origin keeps its digits, and scaled by a power of two, so that only
// a result out of range overflows or vanishes. With D the diameter and ε =
// 2^-53, a triangle's area is off by at most 8ε·D² and its part of the volume
// by 8ε·D³; the sums are compensated (Neumaier 1974) and add hardly anything.
// The operations and their order are fixed and never fused: equal input gives
// equal bits on every processor.
func Measure3D[T geom.Float](c geom.Cloud[T], faces []int32) (area, volume float64) {
	if len(faces) == 0 {
		return 0, 0
	}
	largest := 0.0
	for _, i := range faces {
		largest = max(largest, math.Abs(float64(c.X[i])), math.Abs(float64(c.Y[i])), math.Abs(float64(c.Z[i])))
	}
	s := scaleOf(largest)
	at := func(i int32) (x, y, z float64) {
		return s.of(float64(c.X[i])), s.of(float64(c.Y[i])), s.of(float64(c.Z[i]))
	}
	var a, v compensated
	x0, y0, z0 := at(faces[0])
	for k := 0; k+2 < len(faces); k += 3 {
		px, py, pz := at(faces[k])
		qx, qy, qz := at(faces[k+1])
		rx, ry, rz := at(faces[k+2])
		ux, uy, uz := qx-px, qy-py, qz-pz
		vx, vy, vz := rx-px, ry-py, rz-pz
		nx := float64(uy*vz) - float64(uz*vy)
		ny := float64(uz*vx) - float64(ux*vz)
		nz := float64(ux*vy) - float64(uy*vx)
		a.add(math.Sqrt(float64(nx*nx) + float64(ny*ny) + float64(nz*nz)))
		v.add(float64(nx*(px-x0)) + float64(ny*(py-y0)) + float64(nz*(pz-z0)))
	}
	return s.back(a.value()/2, 2), s.back(v.value()/6, 3)
}

// compensated is a sum that keeps what rounding takes from it.
type compensated struct{ sum, lost float64 }

func (s *compensated) add(v float64) {
	t := s.sum + v
	if math.Abs(s.sum) >= math.Abs(v) {
		s.lost += (s.sum - t) + v
	} else {
		s.lost += (v - t) + s.sum
	}
	s.sum = t
}

func (s *compensated) value() float64 { return s.sum + s.lost }
