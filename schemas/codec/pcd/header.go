package pcd

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"entropipe/schemas/codec"
)

const (
	maxHeader = 64 << 10 // bytes
	maxCount  = 1 << 20  // values of one field of a point
)

// header is what stands before the points.
type header struct {
	fields   []field
	stride   int // bytes of a point
	points   int
	encoding string // ascii, binary or binary_compressed
	data     int    // position of the first point
	lines    int    // number of lines of the header
	view     []float64
}

type field struct {
	name        string
	size, count int
	kind        byte // I, U or F
}

// entries are the lines of a header by their keywords.
type entries map[string]entry

type entry struct {
	values []string
	at     int // position of the line
}

// readHeader reads the lines up to DATA.
func readHeader(value []byte) (*header, *codec.Error) {
	h := &header{}
	lines := entries{}
	for at := 0; ; {
		if at >= maxHeader {
			return nil, codec.Errorf(codec.Corrupt, at, "the header has no line DATA within %d bytes", maxHeader)
		}
		end := bytes.IndexByte(value[at:], '\n')
		if end < 0 {
			return nil, codec.Errorf(codec.Truncated, len(value), "the header ends before the line DATA")
		}
		h.lines++
		words := strings.Fields(string(value[at : at+min(end, maxHeader)]))
		if len(words) > 0 && words[0][0] != '#' {
			word := words[0]
			if _, twice := lines[word]; twice {
				return nil, codec.Errorf(codec.Corrupt, at, "the header has two lines %s", word)
			}
			lines[word] = entry{words[1:], at}
		}
		at += end + 1
		if len(words) > 0 && words[0] == "DATA" {
			h.data = at
			return h, h.read(lines)
		}
	}
}

func (h *header) read(lines entries) *codec.Error {
	data := lines["DATA"]
	if len(data.values) != 1 {
		return codec.Errorf(codec.Corrupt, data.at, "the line DATA has %d words, want one", len(data.values))
	}
	switch h.encoding = data.values[0]; h.encoding {
	case "ascii", "binary", "binary_compressed":
	default:
		return codec.Errorf(codec.Unsupported, data.at,
			"DATA %.40s is unknown; want ascii, binary or binary_compressed",
			h.encoding)
	}
	if err := h.readFields(lines); err != nil {
		return err
	}
	if err := h.readPoints(lines); err != nil {
		return err
	}
	view, there := lines["VIEWPOINT"]
	if !there {
		return nil
	}
	for _, word := range view.values {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return codec.Errorf(codec.BadValue, view.at, "VIEWPOINT has the word %.40q", word)
		}
		h.view = append(h.view, v)
	}
	if len(h.view) != 7 {
		return codec.Errorf(codec.BadLength, view.at, "VIEWPOINT has %d numbers, want 7", len(h.view))
	}
	return nil
}

// readFields reads FIELDS, SIZE, TYPE and COUNT.
func (h *header) readFields(lines entries) *codec.Error {
	names, there := lines["FIELDS"]
	if !there {
		names, there = lines["COLUMNS"]
	}
	if !there || len(names.values) == 0 {
		return codec.Errorf(codec.Corrupt, 0, "the header names no fields")
	}
	for _, word := range [...]string{"SIZE", "TYPE", "COUNT"} {
		line, there := lines[word]
		if !there && word != "COUNT" {
			return codec.Errorf(codec.Corrupt, names.at, "the header has no line %s", word)
		}
		if there && len(line.values) != len(names.values) {
			return codec.Errorf(codec.Corrupt, line.at, "%s has %d words, but there are %d fields", word,
				len(line.values), len(names.values))
		}
	}
	for i, name := range names.values {
		f := field{name: name, count: 1}
		var err error
		if f.size, err = strconv.Atoi(lines["SIZE"].values[i]); err != nil || f.size < 1 || f.size > 8 {
			return codec.Errorf(codec.BadType, lines["SIZE"].at, "field %.40s has SIZE %.40s, want 1, 2, 4 or 8", name,
				lines["SIZE"].values[i])
		}
		f.kind = lines["TYPE"].values[i][0]
		if len(lines["TYPE"].values[i]) != 1 || typeOf(f.kind, f.size) == 0 {
			return codec.Errorf(codec.BadType, lines["TYPE"].at,
				"field %.40s has TYPE %.40s and SIZE %d; there are I and "+
					"U of 1, 2, 4 and 8 bytes, F of 4 and 8", name, lines["TYPE"].values[i], f.size)
		}
		if counts, there := lines["COUNT"]; there {
			if f.count, err = strconv.Atoi(counts.values[i]); err != nil || f.count < 0 || f.count > maxCount {
				return codec.Errorf(codec.BadLength, counts.at, "field %.40s has COUNT %.40s, want 0 to %d", name,
					counts.values[i], maxCount)
			}
		}
		h.stride += f.size * f.count
		h.fields = append(h.fields, f)
	}
	if h.stride == 0 || h.stride > math.MaxInt32 {
		return codec.Errorf(codec.BadLength, names.at, "a point has %d bytes", h.stride)
	}
	return nil
}

// readPoints reads WIDTH, HEIGHT and POINTS, which must agree. Old writers leave out some.
func (h *header) readPoints(lines entries) *codec.Error {
	var number [3]int64
	var there [3]bool
	for i, word := range [...]string{"WIDTH", "HEIGHT", "POINTS"} {
		line, ok := lines[word]
		if !ok {
			continue
		}
		var err error
		if len(line.values) == 1 {
			number[i], err = strconv.ParseInt(line.values[0], 10, 64)
		}
		if len(line.values) != 1 || err != nil || number[i] < 0 || number[i] > math.MaxInt32 {
			return codec.Errorf(codec.BadLength, line.at, "%s is %.60q, want one number from 0 to %d", word,
				strings.Join(line.values, " "), math.MaxInt32)
		}
		there[i] = true
	}
	width, height, points := number[0], number[1], number[2]
	if !there[1] {
		height = 1
	}
	if !there[0] {
		if !there[2] || there[1] {
			return codec.Errorf(codec.Corrupt, 0, "the header has no line WIDTH")
		}
		width = points
	}
	if !there[2] {
		points = width * height // below 2^62
	}
	if points != width*height || points > math.MaxInt32 {
		return codec.Errorf(codec.BadLength, lines["POINTS"].at, "POINTS %d are not WIDTH %d times HEIGHT %d", points,
			width, height)
	}
	h.points = int(points)
	return nil
}

var (
	integers = [9]codec.Type{1: codec.Int8, 2: codec.Int16, 4: codec.Int32, 8: codec.Int64}
	naturals = [9]codec.Type{1: codec.Uint8, 2: codec.Uint16, 4: codec.Uint32, 8: codec.Uint64}
	floats   = [9]codec.Type{4: codec.Float32, 8: codec.Float64}
)

// typeOf returns the type of a field of size 1 to 8; 0 if there is none.
func typeOf(kind byte, size int) codec.Type {
	switch kind {
	case 'I':
		return integers[size]
	case 'U':
		return naturals[size]
	case 'F':
		return floats[size]
	}
	return 0
}

// packed returns the fields of a record, without roles.
func (h *header) packed() []codec.Field {
	fields, at := make([]codec.Field, len(h.fields)), 0
	for i, f := range h.fields {
		fields[i] = codec.Field{Name: f.name, Offset: at, Type: typeOf(f.kind, f.size)}
		at += f.size * f.count
	}
	return fields
}

// pose returns the motion from the sensor to the world that VIEWPOINT says; nil for the
// identity, and for a quaternion without direction.
func (h *header) pose() *codec.Pose {
	v := h.view
	if len(v) != 7 || v[0] == 0 && v[1] == 0 && v[2] == 0 && v[3] != 0 && v[4] == 0 && v[5] == 0 && v[6] == 0 {
		return nil
	}
	norm := math.Sqrt(float64(v[3]*v[3]) + float64(v[4]*v[4]) + float64(v[5]*v[5]) + float64(v[6]*v[6]))
	if norm == 0 || math.IsInf(norm, 0) || math.IsNaN(norm+v[0]+v[1]+v[2]) || math.IsInf(v[0]+v[1]+v[2], 0) {
		return nil
	}
	w, x, y, z := v[3]/norm, v[4]/norm, v[5]/norm, v[6]/norm
	xx, yy, zz := float64(x*x), float64(y*y), float64(z*z)
	xy, xz, yz := float64(x*y), float64(x*z), float64(y*z)
	wx, wy, wz := float64(w*x), float64(w*y), float64(w*z)
	return &codec.Pose{
		1 - float64(2*(yy+zz)), float64(2 * (xy - wz)), float64(2 * (xz + wy)), v[0],
		float64(2 * (xy + wz)), 1 - float64(2*(xx+zz)), float64(2 * (yz - wx)), v[1],
		float64(2 * (xz - wy)), float64(2 * (yz + wx)), 1 - float64(2*(xx+yy)), v[2],
	}
}
