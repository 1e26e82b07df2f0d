package schemas

import (
	"errors"
	"math"
	"unicode/utf8"

	"entropipe/schemas/codec"
)

// foreign makes the one frame of a value that is a cloud of the format f, which by names.
func (d *Decoder) foreign(m *Message, f *format, by authority, key FrameKey) *FormatError {
	if name := headerValue(m.Headers, HeaderSchema); len(name) > 0 && string(name) != SchemaPoints {
		return formatErr(ReasonUnknownSchema, -1, "schema is %.80q, but a value of %s is %s", name, f.contentType,
			SchemaPoints)
	}
	if len(headerValue(m.Headers, HeaderPrunedFor)) > 0 {
		return formatErr(ReasonBadHeader, -1, "header %s is set, but a value of %s cannot hold the numbers of its "+
			"points", HeaderPrunedFor, f.contentType)
	}
	if err := d.decodeCloud(m, f, by); err != nil {
		return named(m, f, by, err)
	}
	if err := d.cloudNames(m, &key); err != nil {
		return err
	}
	frames, err := d.newFrames(1, &key)
	if err != nil {
		return err
	}
	frames[0].Points = d.cloud.Points
	return nil
}

// decodeCloud fills d.cloud.
func (d *Decoder) decodeCloud(m *Message, f *format, by authority) (failed *FormatError) {
	defer func() {
		// Formats return for any bytes. A fault of theirs refuses the record and ends no
		// process.
		if p := recover(); p != nil {
			d.cloud = codec.Cloud{}
			failed = formatErr(ReasonInternal, -1, "the reader of %s failed on the value: %v", f.contentType, p)
		}
	}()
	if f.numbers {
		if why := d.otherThan(m.Value, f, by); why != nil {
			return why
		}
	}
	err := f.decode(&d.cloud, m.Value, d.limit())
	if err == nil {
		return nil
	}
	var fault *codec.Error
	if !errors.As(err, &fault) {
		return formatErr(ReasonInternal, -1, "%v", err)
	}
	return &FormatError{Stage: StageDecode, Reason: fault.Reason, Detail: fault.Detail, At: fault.At}
}

// otherThan returns an error if a value of a format without magic has the magic of another
// and no plausible numbers, or, without a header, no plausible numbers at all.
func (d *Decoder) otherThan(value []byte, f *format, by authority) *FormatError {
	guessed := by == byTopic && f.name == "kitti"
	name := codec.Name(value)
	if name == "" && !guessed {
		return nil
	}
	why := implausible(value)
	switch {
	case why == "":
		return nil
	case name != "":
		return formatErr(ReasonWrongMagic, 0, "this is %s, not %s: %s", name, f.what, why)
	}
	return formatErr(ReasonNotArrow, 0, "the value (%d bytes, beginning % x) is no Arrow IPC stream, and no raw KITTI "+
		".bin: %s", len(value), value[:min(len(value), 8)], why)
}

// cloudNames fills the names, the time and the pose that the headers of m leave to the value.
func (d *Decoder) cloudNames(m *Message, key *FrameKey) *FormatError {
	c := &d.cloud
	if key.Sensor == "" && c.Sensor != "" {
		if len(c.Sensor) > maxName || !utf8.ValidString(c.Sensor) {
			return formatErr(ReasonBadValue, -1, "the frame id of the cloud is %.40q: it must be UTF-8 of at most %d "+
				"bytes", c.Sensor, maxName)
		}
		key.Sensor = d.names.get(c.Sensor)
	}
	if c.HasTime && c.TimeNs != 0 && len(headerValue(m.Headers, HeaderTimeNs)) == 0 {
		key.TimeNs = c.TimeNs
	}
	if c.Pose != nil && key.Pose == nil {
		pose := *c.Pose // the row outlives the cloud
		key.Pose = &pose
	}
	return nil
}

// decodeKITTI reads a raw .bin file: x, y, z and reflectance of each point as little-endian
// float32. An empty value is a cloud without points.
func decodeKITTI(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	if r := len(value) % rawWidth; r != 0 {
		return codec.Errorf(codec.BadLength, len(value)-r,
			"the value has %d bytes, which is no multiple of the %d bytes of a point: %d are left over", len(value),
			rawWidth, r)
	}
	n := len(value) / rawWidth
	if n > math.MaxInt32 || int64(len(value)) > limit {
		return codec.Errorf(codec.TooLarge, -1, "the frame has %d points of %d bytes, more than the limit of %d bytes",
			n, rawWidth, limit)
	}
	x, y, z, w := c.Float32s(codec.X, n), c.Float32s(codec.Y, n), c.Float32s(codec.Z, n), c.Float32s(codec.Intensity, n)
	for i := range x {
		p := (*[rawWidth]byte)(value[i*rawWidth:])
		x[i], y[i], z[i], w[i] = float32At(p, 0), float32At(p, 4), float32At(p, 8), float32At(p, 12)
	}
	c.Cloud32.X, c.Cloud32.Y, c.Cloud32.Z, c.Points.Intensity = x, y, z, w
	return nil
}

func float32At(p *[rawWidth]byte, i int) float32 {
	return math.Float32frombits(uint32(p[i]) | uint32(p[i+1])<<8 | uint32(p[i+2])<<16 | uint32(p[i+3])<<24)
}
