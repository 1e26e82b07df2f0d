package las

import (
	"bytes"
	"encoding/binary"
	"math"

	"entropipe/schemas/codec"
)

// layout is a point format.
type layout struct {
	size    int // bytes of a record without extra bytes
	old     bool
	gps     int // position of the GPS time in the record; 0: none
	colour  int // position of red; 0: none
	ignored []string
}

// columnBytes returns the bytes that a point takes in the columns.
func (l *layout) columnBytes() int64 {
	n := int64(3*8 + 3*4)
	if !l.old {
		n += 4
	}
	if l.gps > 0 {
		n += 8
	}
	if l.colour > 0 {
		n += 12
	}
	return n
}

var (
	oldNames = []string{"number_of_returns", "scan_direction_flag", "edge_of_flight_line", "synthetic", "key_point",
		"withheld", "scan_angle_rank", "user_data", "point_source_id"}
	newNames = []string{"number_of_returns", "scan_direction_flag", "edge_of_flight_line", "synthetic", "key_point",
		"withheld", "overlap", "scan_angle", "user_data", "point_source_id"}
)

func with(names []string, more ...string) []string {
	return append(names[:len(names):len(names)], more...)
}

// layouts are the point formats by number.
var layouts = [...]layout{
	{size: 20, old: true, ignored: oldNames},
	{size: 28, old: true, gps: 20, ignored: oldNames},
	{size: 26, old: true, colour: 20, ignored: oldNames},
	{size: 34, old: true, gps: 20, colour: 28, ignored: oldNames},
	{size: 57, old: true, gps: 20, ignored: with(oldNames, "wave_packet")},
	{size: 63, old: true, gps: 20, colour: 28, ignored: with(oldNames, "wave_packet")},
	{size: 30, gps: 22, ignored: newNames},
	{size: 36, gps: 22, colour: 30, ignored: newNames},
	{size: 38, gps: 22, colour: 30, ignored: with(newNames, "nir")},
	{size: 59, gps: 22, ignored: with(newNames, "wave_packet")},
	{size: 67, gps: 22, colour: 30, ignored: with(newNames, "nir", "wave_packet")},
}

// header is what the public header block and the records after it say of the points.
type header struct {
	layout        *layout
	points        int // position of the first point
	record        int // bytes of a point
	count         uint64
	scale, offset [3]float64
	adjusted      bool // times are adjusted standard GPS times
	extra         []string
}

const (
	shortest   = 227 // bytes of the header of LAS 1.0 to 1.2
	longest    = 375 // bytes of the header of LAS 1.4
	vlrHeader  = 54
	extraBytes = 192 // bytes of a description of extra bytes
)

func readHeader(value []byte) (*header, *codec.Error) {
	if len(value) < shortest {
		return nil, codec.Errorf(codec.Truncated, len(value), "a header of LAS has %d bytes at least; there are %d",
			shortest, len(value))
	}
	le := binary.LittleEndian
	major, minor := value[24], value[25]
	if major != 1 || minor > 4 {
		return nil, codec.Errorf(codec.Unsupported, 24, "this is LAS %d.%d; known are 1.0 to 1.4", major, minor)
	}
	format := value[104]
	if format&0xc0 != 0 {
		return nil, compressed(value)
	}
	if int(format) >= len(layouts) {
		return nil, codec.Errorf(codec.Unsupported, 104, "point format %d is unknown; known are 0 to 10", format)
	}
	h := &header{layout: &layouts[format], record: int(le.Uint16(value[105:])), adjusted: value[6]&1 != 0}
	if h.record < h.layout.size {
		return nil, codec.Errorf(codec.BadLength, 105, "a point of format %d has %d bytes at least; the header says %d",
			format, h.layout.size, h.record)
	}
	size, points := int(le.Uint16(value[94:])), int64(le.Uint32(value[96:]))
	switch {
	case size < shortest:
		return nil, codec.Errorf(codec.BadLength, 94, "the header says that it has %d bytes; it has %d at least", size,
			shortest)
	case points < int64(size):
		return nil, codec.Errorf(codec.BadLength, 96, "the points begin at byte %d, within the header of %d bytes",
			points, size)
	case points > int64(len(value)):
		return nil, codec.Errorf(codec.Truncated, len(value), "the points begin at byte %d; the file has %d bytes",
			points,
			len(value))
	}
	h.points = int(points)
	if err := h.readNumbers(value, size); err != nil {
		return nil, err
	}
	h.readRecords(value[:h.points], size, int(min(le.Uint32(value[100:]), math.MaxInt32)))
	return h, nil
}

// readNumbers reads the number of points, scales and offsets.
func (h *header) readNumbers(value []byte, size int) *codec.Error {
	le := binary.LittleEndian
	h.count = uint64(le.Uint32(value[107:]))
	if value[25] >= 4 && size >= longest && len(value) >= longest {
		switch wide := le.Uint64(value[247:]); {
		case h.count == 0 || h.count == wide:
			h.count = wide
		case wide != 0:
			return codec.Errorf(codec.BadLength, 247, "the header says %d points, and %d for old readers", wide,
				h.count)
		}
	}
	for i := range h.scale {
		h.scale[i] = math.Float64frombits(le.Uint64(value[131+8*i:]))
		h.offset[i] = math.Float64frombits(le.Uint64(value[155+8*i:]))
		if v := h.scale[i]; v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return codec.Errorf(codec.BadValue, 131+8*i, "the scale of %c is %g", 'x'+rune(i), v)
		}
		if v := h.offset[i]; math.IsNaN(v) || math.IsInf(v, 0) {
			return codec.Errorf(codec.BadValue, 155+8*i, "the offset of %c is %g", 'x'+rune(i), v)
		}
	}
	return nil
}

// readRecords finds the names of extra bytes in the variable length records. head ends where
// the points begin. A count of records that lies does no harm: the records end there, too.
func (h *header) readRecords(head []byte, at, count int) {
	left := h.record - h.layout.size
	for range count {
		if left == 0 || at > len(head)-vlrHeader {
			break
		}
		user, id := text(head[at+2:at+18]), binary.LittleEndian.Uint16(head[at+18:])
		size := int(binary.LittleEndian.Uint16(head[at+20:]))
		if at += vlrHeader; size > len(head)-at {
			break
		}
		if user == "LASF_Spec" && id == 4 {
			for body := head[at : at+size]; len(body) >= extraBytes && left > 0; body = body[extraBytes:] {
				if name := text(body[4:36]); name != "" && len(h.extra) < h.record {
					h.extra = append(h.extra, name)
				}
				left -= max(1, extraSize(body[2], body[3]))
			}
		}
		at += size
	}
	if left > 0 {
		h.extra = append(h.extra, "extra bytes")
	}
}

// extraSize returns the bytes of a value of extra bytes.
func extraSize(kind, options byte) int {
	sizes := [...]int{0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8}
	switch {
	case kind == 0:
		return int(options)
	case int(kind) < len(sizes):
		return sizes[kind]
	case kind <= 30: // vectors of two and three values, which LAS 1.4 R14 withdrew
		return sizes[(int(kind)-1)%10+1] * (int(kind-1)/10 + 1)
	}
	return 1
}

// text returns the bytes before the first zero byte.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// compressed returns the refusal of LAZ, or of COPC, which is LAZ with an index.
func compressed(value []byte) *codec.Error {
	name := "LAZ, compressed LAS"
	if len(value) > longest+6 && string(value[longest+2:longest+6]) == "copc" {
		name = "COPC, compressed LAS with an index"
	}
	return codec.Errorf(codec.Unsupported, 104, "this is %s; only LAS is read. Convert it first: "+
		"pdal translate in.laz out.las, or laszip -i in.laz -o out.las", name)
}
