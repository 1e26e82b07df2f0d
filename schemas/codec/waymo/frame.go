package waymo

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zlib"
	"google.golang.org/protobuf/encoding/protowire"

	"entropipe/schemas/codec"
)

// Decoder decodes frames of version 1, each a message waymo.open_dataset.Frame. Lasers and
// Returns select what is unpacked; the zero value unpacks nothing. A Decoder is not for
// concurrent use.
type Decoder struct {
	Lasers  LaserSet
	Returns ReturnSet

	parsed  [numLasers]laserBytes
	listed  LaserSet
	context string
	micros  int64
	world   []float64

	calibrations Calibrations
	storage      [numLasers]Calibration
	transform    Transform
	images       [numLasers][2]Image
	pose         PoseImage
	ignored      map[string]bool

	packed   bytes.Reader
	unpacker io.ReadCloser
	plain    []byte
	values   []float32
	dims     []int
}

// laserBytes are views of a record: the range images of a laser.
type laserBytes struct{ returns [2]imageBytes }

// imageBytes are the parts of a RangeImage; nil: absent.
type imageBytes struct {
	old    []byte // MatrixFloat that is not packed
	packed []byte // MatrixFloat in zlib
	pose   []byte // MatrixFloat in zlib
	at     int    // offset in the record
}

// Names of the fields that no column of ours holds.
const (
	ignoredZone         = "in_no_label_zone"
	ignoredProjection   = "camera_projection"
	ignoredFlow         = "range_image_flow"
	ignoredSegmentation = "segmentation_label"
	ignoredImages       = "images"
	ignoredLabels       = "laser_labels"
)

// Decode decodes a record into f, whose images and calibrations are those of d until the
// next call. limit bounds the unpacked bytes of an image. A record of the motion data set
// and a frame that lists no laser are errors. A laser without images, or without the
// second return, is none.
func (d *Decoder) Decode(f *Frame, record []byte, limit int64) *codec.Error {
	d.reset()
	if err := walk(record, 0, "the frame", func(v field) *codec.Error { return d.frameField(&v) }); err != nil {
		return err
	}
	*f = Frame{Context: d.context, TimeMicros: d.micros, Calibrations: &d.calibrations, Listed: d.listed}
	if d.listed == 0 {
		if d.ignored[ignoredImages] {
			return codec.Errorf(codec.Missing, -1, "the frame has camera images and no laser")
		}
		return codec.Errorf(codec.Missing, -1, "the frame has no laser")
	}
	if len(d.world) > 0 {
		if err := d.transform.set("pose of the frame", d.world); err != nil {
			return err
		}
		f.World = &d.transform
	}
	for _, laser := range d.Lasers.Each() {
		if err := d.unpackLaser(&f.Sweeps[laser], laser, limit); err != nil {
			err.Detail = fmt.Sprintf("laser %s: %s", laser, err.Detail)
			return err
		}
	}
	for name := range d.ignored {
		f.Ignored = append(f.Ignored, name)
	}
	slices.Sort(f.Ignored)
	return nil
}

func (d *Decoder) reset() {
	d.parsed, d.listed, d.context, d.micros, d.world = [numLasers]laserBytes{}, 0, "", 0, d.world[:0]
	d.calibrations = Calibrations{}
	d.ignored = map[string]bool{}
}

// set takes the 16 values of a matrix.
func (t *Transform) set(what string, values []float64) *codec.Error {
	if len(values) != len(t) {
		return codec.Errorf(codec.BadLength, -1, "the %s has %d values, want %d", what, len(values), len(t))
	}
	copy(t[:], values)
	return nil
}

func (d *Decoder) frameField(v *field) *codec.Error {
	const what = "the frame"
	switch v.number {
	case 1:
		if v.kind == protowire.Fixed64Type { // Scenario.timestamps_seconds
			return codec.Errorf(codec.Unsupported, v.at,
				"the record is a scenario of the motion data set, which has no "+
					"LiDAR frames")
		}
		if err := v.is(what, protowire.BytesType); err != nil {
			return err
		}
		return walk(v.bytes, v.at, "the context", func(v field) *codec.Error { return d.contextField(&v) })
	case 2:
		if err := v.is(what, protowire.VarintType); err != nil {
			return err
		}
		d.micros = int64(v.bits)
		if d.micros > math.MaxInt64/1000 || d.micros < math.MinInt64/1000 {
			return codec.Errorf(codec.BadValue, v.at, "the time of the frame is %d microseconds", d.micros)
		}
	case 3:
		return transformField(v, "the pose of the frame", &d.world)
	case 4:
		d.ignored[ignoredImages] = true
	case 5:
		if err := v.is(what, protowire.BytesType); err != nil {
			return err
		}
		return d.laserField(v)
	case 6:
		d.ignored[ignoredLabels] = true
	}
	return nil
}

func (d *Decoder) contextField(v *field) *codec.Error {
	const what = "the context"
	switch v.number {
	case 1:
		if err := v.is(what, protowire.BytesType); err != nil {
			return err
		}
		d.context = string(v.bytes)
	case 3:
		if err := v.is(what, protowire.BytesType); err != nil {
			return err
		}
		return d.calibrationField(v)
	}
	return nil
}

// transformField appends the values of a Transform.
func transformField(v *field, what string, dst *[]float64) *codec.Error {
	if err := v.is(what, protowire.BytesType); err != nil {
		return err
	}
	return walk(v.bytes, v.at, what, func(v field) *codec.Error {
		if v.number != 1 {
			return nil
		}
		return v.doubles(what, dst)
	})
}

func (d *Decoder) calibrationField(v *field) *codec.Error {
	const what = "a laser's calibration"
	name := uint64(0)
	inclinations, extrinsic := []float64(nil), []float64(nil)
	var c Calibration
	err := walk(v.bytes, v.at, what, func(v field) *codec.Error {
		switch v.number {
		case 1:
			name = v.bits
			return v.is(what, protowire.VarintType)
		case 2:
			return v.doubles(what, &inclinations)
		case 3:
			return v.double(what, &c.Min)
		case 4:
			return v.double(what, &c.Max)
		case 5:
			return transformField(&v, "a laser's extrinsic calibration", &extrinsic)
		}
		return nil
	})
	if err != nil || name == uint64(Unknown) || name >= uint64(numLasers) {
		return err
	}
	if d.calibrations[name] != nil {
		return codec.Errorf(codec.Duplicate, v.at, "laser %s has two calibrations", Laser(name))
	}
	if err := c.Extrinsic.set("extrinsic calibration of laser "+Laser(name).String(), extrinsic); err != nil {
		return err
	}
	c.Inclinations = inclinations
	d.storage[name] = c
	d.calibrations[name] = &d.storage[name]
	return nil
}

func (d *Decoder) laserField(v *field) *codec.Error {
	const what = "a laser"
	name := uint64(0)
	var images laserBytes
	err := walk(v.bytes, v.at, what, func(v field) *codec.Error {
		switch v.number {
		case 1:
			name = v.bits
			return v.is(what, protowire.VarintType)
		case 2, 3:
			if err := v.is(what, protowire.BytesType); err != nil {
				return err
			}
			return d.imageField(&v, &images.returns[v.number-2])
		}
		return nil
	})
	if err != nil || name == uint64(Unknown) || name >= uint64(numLasers) {
		return err
	}
	if d.listed.Has(Laser(name)) {
		return codec.Errorf(codec.Duplicate, v.at, "the frame lists laser %s twice", Laser(name))
	}
	d.listed |= 1 << name
	d.parsed[name] = images
	return nil
}

func (d *Decoder) imageField(v *field, image *imageBytes) *codec.Error {
	const what = "a range image"
	image.at = v.at
	return walk(v.bytes, v.at, what, func(v field) *codec.Error {
		switch v.number {
		case 1:
			image.old = v.bytes
		case 2:
			image.packed = v.bytes
		case 3:
			d.ignored[ignoredProjection] = true
		case 4:
			image.pose = v.bytes
		case 5:
			d.ignored[ignoredFlow] = true
		case 6:
			d.ignored[ignoredSegmentation] = true
		default:
			return nil
		}
		return v.is(what, protowire.BytesType)
	})
}

// unpackLaser unpacks the images of a laser that were asked for. The pose image stands in
// the first return and serves both.
func (d *Decoder) unpackLaser(s *Sweep, laser Laser, limit int64) *codec.Error {
	parsed := &d.parsed[laser]
	for k := range parsed.returns {
		from := &parsed.returns[k]
		if d.Returns>>k&1 == 0 || len(from.packed) == 0 && len(from.old) == 0 {
			continue
		}
		matrix, err := from.old, (*codec.Error)(nil)
		if len(from.packed) > 0 {
			matrix, err = d.unpack(from.packed, "range image", from.at, limit)
		}
		if err == nil {
			err = d.matrix(matrix, "the matrix of a range image")
		}
		if err == nil {
			err = d.images[laser][k].set(d.dims, d.values)
		}
		if err != nil {
			return located(err, from.at)
		}
		d.ignored[ignoredZone] = true
		s.Returns[k] = &d.images[laser][k]
	}
	from := &parsed.returns[0]
	if laser != Top || len(from.pose) == 0 || s.Returns[0] == nil && s.Returns[1] == nil {
		return nil
	}
	matrix, err := d.unpack(from.pose, "pose image", from.at, limit)
	if err == nil {
		err = d.matrix(matrix, "the matrix of the pose image")
	}
	if err == nil {
		err = d.pose.set(d.dims, d.values)
	}
	if err != nil {
		return located(err, from.at)
	}
	s.Pose = &d.pose
	return nil
}

// located gives an error within an image the offset of the image: offsets in unpacked bytes
// help nobody.
func located(err *codec.Error, at int) *codec.Error {
	err.At = int64(at)
	return err
}

// unpack returns the unpacked bytes of a zlib stream, valid until the next call.
func (d *Decoder) unpack(packed []byte, what string, at int, limit int64) ([]byte, *codec.Error) {
	d.packed.Reset(packed)
	var err error
	if d.unpacker == nil {
		d.unpacker, err = zlib.NewReader(&d.packed)
	} else {
		err = d.unpacker.(zlib.Resetter).Reset(&d.packed, nil)
	}
	d.plain = d.plain[:0]
	for err == nil {
		if len(d.plain) == cap(d.plain) {
			d.plain = slices.Grow(d.plain, max(64<<10, len(d.plain)))
		}
		var n int
		n, err = d.unpacker.Read(d.plain[len(d.plain):cap(d.plain)])
		d.plain = d.plain[:len(d.plain)+n]
		if int64(len(d.plain)) > limit {
			return nil, codec.Errorf(codec.TooLarge, at, "the %s unpacks to more than the limit of %d bytes", what,
				limit)
		}
	}
	if err != io.EOF {
		return nil, codec.Errorf(codec.Corrupt, at, "the %s does not unpack: %v", what, err)
	}
	return d.plain, nil
}

// matrix sets values and dims to those of a MatrixFloat.
func (d *Decoder) matrix(message []byte, what string) *codec.Error {
	d.values, d.dims = d.values[:0], d.dims[:0]
	return walk(message, 0, what, func(v field) *codec.Error {
		switch v.number {
		case 1:
			if v.kind != protowire.Fixed32Type {
				if err := v.is(what, protowire.BytesType); err != nil {
					return err
				}
			}
			if len(v.bytes)%4 != 0 {
				return codec.Errorf(codec.BadLength, v.at, "%s has %d bytes of numbers of 4", what, len(v.bytes))
			}
			d.values = slices.Grow(d.values, len(v.bytes)/4)
			for b := v.bytes; len(b) > 0; b = b[4:] {
				d.values = append(d.values, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			}
		case 2:
			if err := v.is(what, protowire.BytesType); err != nil {
				return err
			}
			return walk(v.bytes, v.at, "a shape", func(v field) *codec.Error {
				if v.number != 1 {
					return nil
				}
				return v.ints("a shape", &d.dims)
			})
		}
		return nil
	})
}
