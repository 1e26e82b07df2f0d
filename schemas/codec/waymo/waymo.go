// Package waymo decodes the LiDAR frames of the Waymo Open Dataset, perception, versions 1
// and 2.
//
// It does not decode camera images, labels or maps, and it opens no file. Version 1 is a
// protobuf message for each frame (Decoder); version 2 is a set of Parquet files for each
// segment, joined by key (Segment). Both give a Frame, whose range images a Projector
// turns into points.
//
// Vocabulary. A segment is a recording of 20 seconds, named by its context. A frame is a
// tenth of a second of it, and a sweep is what one laser saw in a frame. A laser is one of
// five LiDAR devices. A return is the first or second echo of a pulse. A range image has a
// row for each beam, from the highest, and a column for each azimuth, from the rear
// clockwise. A pixel of the pose image is the pose of the vehicle when the pixel was
// measured. The vehicle frame has x forward, y left and z up, in metres.
//
// A range r in row i and column j of an image with H rows and W columns is the point
//
//	inclination = stored[H-1-i], or min + (H-1-i+0.5)/H (max-min)
//	azimuth     = ((W-j-0.5)/W 2 - 1) π - atan2(E10, E00)
//	p           = E (r cos inclination cos azimuth, r cos inclination sin azimuth, r sin inclination)
//
// in the vehicle frame, where E is the extrinsic calibration. Points of the laser TOP were
// measured while the vehicle moved: p moves to the world by the pixel's pose, and back to
// the vehicle by the inverse of the frame's pose. The computation is in float64. The points
// are float32: the rounding is below 8e-6 m up to 128 m from the vehicle, and below 1.6e-5 m
// up to 256 m.
package waymo

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"entropipe/schemas/codec"
)

// Laser is one of the five LiDAR devices.
type Laser uint8

// The lasers, by the numbers of the data set.
const (
	Unknown Laser = iota
	Top
	Front
	SideLeft
	SideRight
	Rear
	numLasers
)

var laserNames = [numLasers]string{"unknown", "top", "front", "side_left", "side_right", "rear"}

// String returns the name in lower case: top, front, side_left, side_right, rear.
func (l Laser) String() string {
	if l < numLasers {
		return laserNames[l]
	}
	return fmt.Sprintf("laser %d", uint8(l))
}

// ParseLaser returns the laser with the name, in any letters; Unknown if there is none.
func ParseLaser(name string) Laser {
	for l := Top; l < numLasers; l++ {
		if strings.EqualFold(name, laserNames[l]) {
			return l
		}
	}
	return Unknown
}

// LaserSet is a set of lasers: bit 1<<Laser.
type LaserSet uint8

// AllLasers are the five lasers.
const AllLasers LaserSet = 1<<numLasers - 2

// Has reports whether l is in the set.
func (s LaserSet) Has(l Laser) bool { return s>>l&1 != 0 }

// Each returns the lasers of the set by number.
func (s LaserSet) Each() []Laser {
	all := make([]Laser, 0, bits.OnesCount8(uint8(s)))
	for l := Top; l < numLasers; l++ {
		if s.Has(l) {
			all = append(all, l)
		}
	}
	return all
}

// ReturnSet is a set of returns: bit 0 is return 1, bit 1 is return 2.
type ReturnSet uint8

// BothReturns are the first and the second return.
const BothReturns ReturnSet = 3

// Transform is a 4 x 4 matrix, row-major.
type Transform [16]float64

// rigid returns an error unless the matrix is a rotation and a translation. Values of
// float32 are rigid to 1e-6.
func (t *Transform) rigid(what string) *codec.Error {
	for i := range 3 {
		for j := range i + 1 {
			dot := 0.0
			for k := range 3 {
				dot += t[4*i+k] * t[4*j+k]
			}
			want := 0.0
			if i == j {
				want = 1
			}
			if !(math.Abs(dot-want) < 1e-3) {
				return codec.Errorf(codec.BadValue, -1,
					"the %s is no rigid motion: rows %d and %d have the product %g", what,
					j, i, dot)
			}
		}
		if math.IsNaN(t[4*i+3]) || math.IsInf(t[4*i+3], 0) {
			return codec.Errorf(codec.BadValue, -1, "the %s has the translation %g", what, t[4*i+3])
		}
	}
	return nil
}

// Pose returns the first three rows.
func (t *Transform) Pose() *codec.Pose { return (*codec.Pose)(t[:12]) }

// Calibration is the calibration of a laser.
type Calibration struct {
	Extrinsic    Transform // laser to vehicle
	Min, Max     float64   // inclinations of the lowest and highest beam's edge, radians
	Inclinations []float64 // of each beam from the lowest, radians; empty: uniform between Min and Max
}

// Calibrations holds the calibration of each laser; nil: not said.
type Calibrations [numLasers]*Calibration

// Image is a range image: the pixels with a range above 0, by position.
type Image struct {
	H, W       int
	At         []int32 // row times W plus column, ascending
	Range      []float32
	Intensity  []float32
	Elongation []float32
}

// maxPixels bounds an image, so that positions fit into int32. Images of the data set have
// at most 169,600 pixels.
const maxPixels = 1 << 24

// checkShape returns an error if an image of these dimensions has not n values, or fewer
// than least channels.
func checkShape(what string, dims []int, n, least int) *codec.Error {
	if len(dims) != 3 || dims[0] < 1 || dims[1] < 1 || dims[0] > maxPixels/dims[1] || dims[2] < least || dims[2] > 64 {
		return codec.Errorf(codec.BadLength, -1,
			"the %s has the shape %v; rows, columns and at least %d channels are read",
			what, dims[:min(len(dims), 8)], least)
	}
	if want := dims[0] * dims[1] * dims[2]; want != n {
		return codec.Errorf(codec.BadLength, -1, "the %s has %d values, its shape %v has %d", what, n, dims, want)
	}
	return nil
}

// set takes the pixels with a range above 0 from values of the shape dims. No values make
// an image without pixels.
func (m *Image) set(dims []int, values []float32) *codec.Error {
	m.At, m.Range, m.Intensity, m.Elongation = m.At[:0], m.Range[:0], m.Intensity[:0], m.Elongation[:0]
	if len(values) == 0 {
		m.H, m.W = 0, 0
		return nil
	}
	if err := checkShape("range image", dims, len(values), 3); err != nil {
		return err
	}
	m.H, m.W = dims[0], dims[1]
	channels := dims[2]
	for at := 0; len(values) >= channels; at++ {
		if values[0] > 0 {
			m.At = append(m.At, int32(at))
			m.Range = append(m.Range, values[0])
			m.Intensity = append(m.Intensity, values[1])
			m.Elongation = append(m.Elongation, values[2])
		}
		values = values[channels:]
	}
	return nil
}

// poseChannels are roll, pitch, yaw, x, y, z: vehicle to world.
const poseChannels = 6

// PoseImage is a pose image: six values for each pixel.
type PoseImage struct {
	H, W   int
	Values []float32
}

func (m *PoseImage) set(dims []int, values []float32) *codec.Error {
	if len(values) == 0 {
		m.H, m.W = 0, 0
		return nil
	}
	if err := checkShape("pose image", dims, len(values), poseChannels); err != nil {
		return err
	}
	if dims[2] != poseChannels {
		return codec.Errorf(codec.BadLength, -1, "the pose image has %d channels, want %d", dims[2], poseChannels)
	}
	m.H, m.W = dims[0], dims[1]
	m.Values = append(m.Values[:0], values...)
	return nil
}

// Sweep is what one laser saw in a frame.
type Sweep struct {
	Returns [2]*Image  // nil: none
	Pose    *PoseImage // nil: no motion compensation
}

// Frame is a tenth of a second of a segment. Its images are those of the lasers and returns
// that were asked for, and belong to the reader that filled it.
type Frame struct {
	Context      string
	TimeMicros   int64      // microseconds since 1970
	World        *Transform // vehicle to world in the middle of the frame; nil: not said
	Calibrations *Calibrations
	Listed       LaserSet // lasers that the frame lists, asked for or not
	Sweeps       [numLasers]Sweep
	Ignored      []string // names of fields that have no role
}
