// Package nuscenes decodes the LiDAR scans of nuScenes, files that end with .pcd.bin.
//
// A scan has no header. A point has 20 bytes, five little-endian float32:
//
//	byte  0  x          metres, to the right of the sensor
//	byte  4  y          metres, forward
//	byte  8  z          metres, up
//	byte 12  intensity  0 to 255
//	byte 16  ring       number of the beam, an integer
//
// The format has no magic number either. A scan of KITTI (16 bytes a point) may have a length
// that fits, so Decode checks that every ring is the number of a beam.
package nuscenes

import (
	"encoding/binary"
	"fmt"
	"math"

	"entropipe/schemas/codec"
)

const (
	pointBytes = 20
	kittiBytes = 16   // bytes of a point of KITTI
	maxRing    = 255  // greatest number of a beam that is accepted; nuScenes itself has 32 beams
	farthest   = 2000 // metres; no LiDAR sees farther
	sampled    = 4096 // points that Is and IsKITTI look at, at most
)

// Is reports whether head, the first bytes of a value, reads as points of nuScenes: there is a
// whole point, and every whole point, up to the 4096th, has coordinates within 2 km, an
// intensity from 0 to 255 and the number of a beam. A scan without points is not recognised.
func Is(head []byte) bool {
	n := min(len(head)/pointBytes, sampled)
	for i := range n {
		p := head[i*pointBytes:][:pointBytes]
		if !near(p) || !within(float32At(p, 12), 255) {
			return false
		}
		if ring := float32At(p, 16); !isRing(ring) {
			return false
		}
	}
	return n > 0
}

// isKITTI is Is for scans of KITTI, whose reflectance is from 0 to 1.
func isKITTI(value []byte) bool {
	n := min(len(value)/kittiBytes, sampled)
	for i := range n {
		p := value[i*kittiBytes:][:kittiBytes]
		if !near(p) || !within(float32At(p, 12), 1) {
			return false
		}
	}
	return n > 0 && len(value)%kittiBytes == 0
}

// near reports whether x, y and z at the begin of p are those of a point in sight.
func near(p []byte) bool {
	for at := 0; at < 12; at += 4 {
		if v := float32At(p, at); !(v >= -farthest && v <= farthest) {
			return false
		}
	}
	return true
}

func within(v, most float32) bool { return v >= 0 && v <= most }

func isRing(v float32) bool { return v >= 0 && v <= maxRing && v == float32(int32(v)) }

func float32At(p []byte, at int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(p[at:]))
}

// Decode reads a scan into the columns x, y, z, intensity and ring of c. A value without a
// byte is a cloud without points. Coordinates and intensities may be anything, NaN too; a ring
// that is not an integer from 0 to 255 is an error, because the value is then another format.
// limit bounds the bytes of the columns. The error is a *codec.Error.
func Decode(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	if rest := len(value) % pointBytes; rest != 0 {
		return codec.Errorf(codec.BadLength, len(value)-rest,
			"the scan has %d bytes, no multiple of the %d bytes of a point of nuScenes: %d are left over%s", len(value),
			pointBytes, rest, hint(value))
	}
	n := len(value) / pointBytes
	if n > math.MaxInt32 || int64(len(value)) > limit {
		return codec.Errorf(codec.TooLarge, -1, "%d points take %d bytes, more than the limit of %d", n, len(value),
			limit)
	}
	x, y, z := c.Float32s(codec.X, n), c.Float32s(codec.Y, n), c.Float32s(codec.Z, n)
	intensity, ring := c.Float32s(codec.Intensity, n), c.Int32s(codec.Ring, n)
	for i := range x {
		p := value[i*pointBytes:][:pointBytes:pointBytes]
		x[i], y[i], z[i], intensity[i] = float32At(p, 0), float32At(p, 4), float32At(p, 8), float32At(p, 12)
		beam := float32At(p, 16)
		if !isRing(beam) {
			c.Reset()
			return codec.Errorf(codec.BadValue, i*pointBytes+16,
				"point %d has %v where the number of its beam belongs, so this is no scan of nuScenes%s", i, beam,
				hint(value))
		}
		ring[i] = int32(beam)
	}
	c.Cloud32.X, c.Cloud32.Y, c.Cloud32.Z, c.Points.Intensity, c.Ring = x, y, z, intensity, ring
	return nil
}

// hint names the format that the value has instead, if it is the one often taken for this one.
func hint(value []byte) string {
	if !isKITTI(value) {
		return ""
	}
	return fmt.Sprintf("; it reads as a scan of KITTI, %d points of %d bytes", len(value)/kittiBytes, kittiBytes)
}
