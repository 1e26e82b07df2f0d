package schemas

import (
	"fmt"
	"math"
)

// A raw KITTI .bin has no magic number and no length, so a header must identify it
// (ContentTypeKITTI). From a client that cannot set headers only bytes arrive, and
// reading them as points is a guess. The decoder guesses only in topics that the user
// has named (ContentTypes), and only if every number could be a measurement.

// rawWidth is the size of a point: x, y, z and reflectance as float32.
const rawWidth = 16

// What a number of a raw value may be. A lidar sees some hundred metres; the bounds are
// far from that, and still far from text and from integers taken for floats:
// four lower-case letters are above 1e20, four blanks are 1.4e-19, four digits
// below 2e-4, an int32 below 2^23 is below 1.2e-38.
const (
	maxRawCoordinate  = 1e5   // metres
	minRawCoordinate  = 1e-18 // metres, but 0: what rounding leaves of a zero is above it
	minRawExtent      = 1e-2  // metres: the largest coordinate of a cloud, but 0
	maxRawReflectance = 65535 // devices count to 1, 255 or 65535
)

// implausible says why a value cannot be a raw .bin; "" if it can be one. Numbers
// that are not finite stand for directions without an echo: half of the points
// may have some. A value of no byte is a cloud of no point.
func implausible(value []byte) string {
	if r := len(value) % rawWidth; r != 0 {
		return fmt.Sprintf("%d bytes are no whole number of points of %d bytes", len(value), rawWidth)
	}
	blind, largest := 0, 0.
	for i := 0; i < len(value); i += rawWidth {
		p := (*[rawWidth]byte)(value[i:])
		finite := true
		for k := 0; k < rawWidth; k += 4 {
			v := float64(float32At(p, k))
			if v-v != 0 {
				finite = false
				continue
			}
			size := math.Abs(v)
			if k < 12 {
				largest = max(largest, size)
			}
			coordinate := k < 12 && (size == 0 || size >= minRawCoordinate) && size <= maxRawCoordinate
			reflectance := k == 12 && v >= 0 && v <= maxRawReflectance
			if !coordinate && !reflectance {
				return fmt.Sprintf("point %d would have %s %g", i/rawWidth,
					[4]string{"x", "y", "z", "reflectance"}[k/4], v)
			}
		}
		if !finite {
			blind++
		}
	}
	if n := len(value) / rawWidth; 2*blind > n {
		return fmt.Sprintf("%d of %d points would have numbers that are not finite", blind, n)
	}
	if largest > 0 && largest < minRawExtent {
		return fmt.Sprintf("no coordinate would be larger than %g", largest)
	}
	return ""
}
