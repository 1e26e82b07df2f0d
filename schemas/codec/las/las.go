// Package las reads LAS files of versions 1.0 to 1.4 and point formats 0 to 10, the format
// of the ASPRS for laser surveys. Compressed files, LAZ and COPC, are refused by name.
package las

import (
	"bytes"
	"encoding/binary"
	"math"

	"entropipe/schemas/codec"
)

// Is reports whether a value that begins with head is a LAS file, compressed or not.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte("LASF")) }

// Decode reads the LAS file value into the columns of c: coordinates in float64, each the
// integer of the file times the scale plus the offset of the header; intensity; return;
// label from the classification; laser from the scanner channel; colours. TOffsetNs is the
// GPS time less that of the first point that has one; codec.NoInt64 marks a time that is no
// number. The first time is TimeNs if the header says that times are adjusted standard GPS
// times: these have a date, while seconds of a GPS week have none. Dimensions without a
// column, extra bytes among them, are named in c.Ignored.
//
// limit bounds the bytes of the columns. Errors are of type *codec.Error.
func Decode(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	if !Is(value) {
		return codec.NotMagic("LAS", value)
	}
	h, err := readHeader(value)
	if err == nil {
		err = h.decode(c, value, limit)
	}
	if err != nil {
		return err
	}
	return nil
}

func (h *header) decode(c *codec.Cloud, value []byte, limit int64) *codec.Error {
	data := value[h.points:]
	if need := h.count; need > uint64(len(data)/h.record) {
		return codec.Errorf(codec.Truncated, len(value), "the header says %d points of %d bytes; %d bytes follow it, "+
			"which hold %d", h.count, h.record, len(data), len(data)/h.record)
	}
	n := int(h.count)
	if need := int64(n) * h.layout.columnBytes(); n > math.MaxInt32 || need > limit {
		return codec.Errorf(codec.TooLarge, h.points, "%d points take %d bytes, more than the limit of %d", n, need,
			limit)
	}
	c.Double = true
	c.Cloud64.X, c.Cloud64.Y, c.Cloud64.Z = c.Float64s(codec.X, n), c.Float64s(codec.Y, n), c.Float64s(codec.Z, n)
	h.readPlaces(c, data)
	h.readAttributes(c, data, n)
	if h.layout.gps > 0 {
		h.readTimes(c, data, n)
	}
	if at := h.layout.colour; at > 0 {
		c.Red, c.Green, c.Blue = c.Int32s(codec.Red, n), c.Int32s(codec.Green, n), c.Int32s(codec.Blue, n)
		for i := range n {
			p := data[i*h.record+at:][:6]
			c.Red[i] = int32(binary.LittleEndian.Uint16(p))
			c.Green[i] = int32(binary.LittleEndian.Uint16(p[2:]))
			c.Blue[i] = int32(binary.LittleEndian.Uint16(p[4:]))
		}
	}
	c.Ignored = append(c.Ignored, h.layout.ignored...)
	c.Ignored = append(c.Ignored, h.extra...)
	return nil
}

// readPlaces fills x, y and z. The product is rounded before the sum on every CPU, as other
// readers round it.
func (h *header) readPlaces(c *codec.Cloud, data []byte) {
	x, y, z := c.Cloud64.X, c.Cloud64.Y, c.Cloud64.Z
	scale, offset := h.scale, h.offset
	for i := range x {
		p := data[i*h.record:][:12]
		x[i] = float64(float64(int32(binary.LittleEndian.Uint32(p)))*scale[0]) + offset[0]
		y[i] = float64(float64(int32(binary.LittleEndian.Uint32(p[4:])))*scale[1]) + offset[1]
		z[i] = float64(float64(int32(binary.LittleEndian.Uint32(p[8:])))*scale[2]) + offset[2]
	}
}

// readAttributes fills the columns that every format of its family has.
func (h *header) readAttributes(c *codec.Cloud, data []byte, n int) {
	c.Intensity, c.Return, c.Label = c.Float32s(codec.Intensity, n), c.Int32s(codec.Return, n), c.Int32s(codec.Label, n)
	intensity, returns, labels := c.Intensity, c.Return, c.Label
	if h.layout.old {
		for i := range intensity {
			p := data[i*h.record+12:][:4]
			intensity[i] = float32(binary.LittleEndian.Uint16(p))
			returns[i], labels[i] = int32(p[2]&7), int32(p[3]&31)
		}
		return
	}
	c.Laser = c.Int32s(codec.Laser, n)
	lasers := c.Laser
	for i := range intensity {
		p := data[i*h.record+12:][:5]
		intensity[i] = float32(binary.LittleEndian.Uint16(p))
		returns[i], lasers[i], labels[i] = int32(p[2]&15), int32(p[3]>>4&3), int32(p[4])
	}
}

// readTimes fills TOffsetNs, and TimeNs if times have a date.
func (h *header) readTimes(c *codec.Cloud, data []byte, n int) {
	at := func(i int) float64 {
		return math.Float64frombits(binary.LittleEndian.Uint64(data[i*h.record+h.layout.gps:]))
	}
	first, found := 0.0, false
	for i := 0; i < n && !found; i++ {
		first = at(i)
		found = math.Abs(first) <= maxSeconds // false for NaN
	}
	c.TOffsetNs = c.Int64s(codec.TOffset, n)
	for i := range c.TOffsetNs {
		c.TOffsetNs[i] = codec.NoInt64
		if t := at(i); math.Abs(t) <= maxSeconds {
			c.TOffsetNs[i] = int64(math.RoundToEven((t - first) * 1e9))
		}
	}
	if found && first != 0 && h.adjusted { // writers without a clock write 0
		c.TimeNs, c.HasTime = unixNs(first), true
	}
}

// maxSeconds bounds GPS times: 140 years. A difference of two has less than 2^63
// nanoseconds.
const maxSeconds = 140 * 365.25 * 86400

// unixNs returns nanoseconds since 1970, in UTC, of an adjusted standard GPS time, which is
// seconds since 1980-01-06 less 10^9.
func unixNs(adjusted float64) int64 {
	const gpsEpoch = 315964800 // 1980-01-06 in seconds since 1970
	whole := math.Floor(adjusted)
	gps := int64(whole) + 1e9
	leap := int64(0)
	for _, unix := range leapSeconds {
		if gps < unix-gpsEpoch+leap+1 {
			break
		}
		leap++
	}
	return (gps+gpsEpoch-leap)*1e9 + int64(math.RoundToEven((adjusted-whole)*1e9))
}

// leapSeconds are the first seconds since 1970 after each leap second since 1980. None came
// after 2017.
var leapSeconds = [...]int64{362793600, 394329600, 425865600, 489024000, 567993600, 631152000, 662688000, 709948800,
	741484800, 773020800, 820454400, 867715200, 915148800, 1136073600, 1230768000, 1341100800, 1435708800, 1483228800}
