package codec

import (
	"cmp"
	"encoding/binary"
	"math"
)

// place gives c the column of f, with undefined values.
func (c *Cloud) place(p *Packed, f *Field, data []byte, n int) *Error {
	switch f.Role {
	case X, Y, Z:
		if c.Double {
			*[...]*[]float64{&c.Cloud64.X, &c.Cloud64.Y, &c.Cloud64.Z}[f.Role-X] = c.Float64s(f.Role, n)
			return exact(p, f, data, n)
		}
		*[...]*[]float32{&c.Cloud32.X, &c.Cloud32.Y, &c.Cloud32.Z}[f.Role-X] = c.Float32s(f.Role, n)
	case Intensity:
		c.Points.Intensity = c.Float32s(f.Role, n)
	case Elongation:
		c.Elongation = c.Float32s(f.Role, n)
	case TOffset:
		c.TOffsetNs = c.Int64s(f.Role, n)
	case RGB:
		// Another size is not the layout that the name promises.
		if f.Type.Size() != 4 || c.Red != nil || c.Green != nil || c.Blue != nil {
			c.Ignored = append(c.Ignored, f.Name)
			return nil
		}
		c.Red, c.Green, c.Blue = c.Int32s(Red, n), c.Int32s(Green, n), c.Int32s(Blue, n)
	default:
		*c.int32Column(f.Role) = c.Int32s(f.Role, n)
	}
	return nil
}

// int32Column returns the column of a role that is neither of floats nor of times.
func (c *Cloud) int32Column(role Role) *[]int32 {
	return [...]*[]int32{&c.Ring, &c.Return, &c.Laser, &c.Label, nil, nil, &c.Red, &c.Green, &c.Blue}[role-Ring]
}

// blockPoints is the number of points whose fields are read before those of the next
// points: few enough that their records stay in a near cache, and so many that the columns,
// whose memory has equal distances to pages, are written in long runs.
const blockPoints = 1024

// unpackFields fills the columns that place gave to c.
func (c *Cloud) unpackFields(p *Packed, fields *[numRoles]*Field, data []byte, n int) {
	step := blockPoints
	if p.gaps() {
		step = p.Width
	}
	ignored := fields[RGB] != nil && (c.Red == nil || fields[Red] != nil || fields[Green] != nil || fields[Blue] != nil)
	for from := 0; from < n; from += step {
		to := min(from+step, n)
		for role := X; role < numRoles; role++ {
			if f := fields[role]; f != nil && !(role == RGB && ignored) {
				c.unpackField(p, f, p.from(f, data, from), from, to)
			}
		}
	}
}

// gaps reports whether bytes stand between the rows.
func (p *Packed) gaps() bool { return p.RowStride > 0 && p.RowStride != p.Width*p.Stride }

// from returns the data from record i on, which begins a row if there are gaps.
func (p *Packed) from(f *Field, data []byte, i int) []byte {
	if p.gaps() {
		return data[i/p.Width*p.RowStride:]
	}
	return data[i*cmp.Or(f.Step, p.Stride):]
}

// unpackField fills points [from, to) of the column of f. data begin with record from.
func (c *Cloud) unpackField(p *Packed, f *Field, data []byte, from, to int) {
	switch f.Role {
	case X, Y, Z:
		if c.Double {
			v := [...][]float64{c.Cloud64.X, c.Cloud64.Y, c.Cloud64.Z}[f.Role-X]
			unpackRow(p, f, data, v[from:to])
			return
		}
		v := [...][]float32{c.Cloud32.X, c.Cloud32.Y, c.Cloud32.Z}[f.Role-X]
		unpackRow(p, f, data, v[from:to])
	case Intensity:
		unpackRow(p, f, data, c.Points.Intensity[from:to])
	case Elongation:
		unpackRow(p, f, data, c.Elongation[from:to])
	case TOffset:
		unpackTimes(p, f, data, c.TOffsetNs[from:to])
	case RGB:
		c.unpackColours(p, f, data, from, to)
	default:
		v := (*c.int32Column(f.Role))[from:to]
		if !f.Type.IsFloat() {
			unpackRow(p, f, data, v)
			return
		}
		var wide [blockPoints]float64
		for len(v) > 0 {
			w := wide[:min(len(v), len(wide))]
			unpackRow(p, f, data, w)
			for i := range w {
				v[i] = roundInt32(w[i])
			}
			if v = v[len(w):]; len(v) > 0 {
				data = data[len(w)*cmp.Or(f.Step, p.Stride):]
			}
		}
	}
}

// unpackTimes fills v with nanoseconds.
func unpackTimes(p *Packed, f *Field, data []byte, v []int64) {
	scale := f.NsPerUnit
	if !f.Type.IsFloat() && (scale == 0 || scale == 1) {
		unpackRow(p, f, data, v)
		return
	}
	if scale == 0 {
		scale = 1e9
	}
	var wide [blockPoints]float64
	for len(v) > 0 {
		w := wide[:min(len(v), len(wide))]
		unpackRow(p, f, data, w)
		for i := range w {
			v[i] = roundNs(w[i] * scale)
		}
		if v = v[len(w):]; len(v) > 0 {
			data = data[len(w)*cmp.Or(f.Step, p.Stride):]
		}
	}
}

// unpackColours fills Red, Green and Blue from the bits of one value.
func (c *Cloud) unpackColours(p *Packed, f *Field, data []byte, from, to int) {
	at, step := f.Offset, cmp.Or(f.Step, p.Stride)
	for i := from; i < to; i++ {
		v := uint32(p.bits(data, at, 4))
		c.Red[i], c.Green[i], c.Blue[i] = int32(v>>16&0xff), int32(v>>8&0xff), int32(v&0xff)
		at += step
	}
}

// roundNs returns the nearest integer; 0 for NaN, the nearest bound beyond int64.
func roundNs(ns float64) int64 {
	// The sum has no bits for a fraction: the processor has rounded to the nearest even.
	const whole = 3 << 51
	if ns > -1<<50 && ns < 1<<50 {
		return int64(math.Float64bits(float64(ns)+whole) - math.Float64bits(whole))
	}
	switch ns = math.RoundToEven(ns); {
	case ns != ns:
		return 0
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	}
	return int64(ns)
}

// roundInt32 returns the nearest integer; NoInt32 for NaN, the nearest bound beyond int32.
func roundInt32(v float64) int32 {
	if v != v {
		return NoInt32
	}
	return int32(math.RoundToEven(min(max(v, math.MinInt32+1), math.MaxInt32)))
}

// number is a type of a column.
type number interface {
	float32 | float64 | int32 | int64
}

// unpack converts the values of f to dst, one for each record, as Go converts. A float
// that is no int32 or int64 becomes an undefined integer, as Go has it: callers unpack
// floats into floats.
func unpack[T number](p *Packed, f *Field, data []byte, dst []T) {
	if len(dst) == 0 {
		return
	}
	if p.RowStride > 0 && p.RowStride != p.Width*p.Stride {
		for from := 0; from < len(dst); from += p.Width {
			row := data[from/p.Width*p.RowStride:]
			unpackRow(p, f, row, dst[from:min(from+p.Width, len(dst))])
		}
		return
	}
	unpackRow(p, f, data, dst)
}

func unpackRow[T number](p *Packed, f *Field, data []byte, dst []T) {
	at, step := f.Offset, cmp.Or(f.Step, p.Stride)
	if p.BigEndian {
		unpackBig(f.Type, data, at, step, dst)
		return
	}
	switch f.Type {
	case Float32:
		for i := range dst {
			dst[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(data[at:])))
			at += step
		}
	case Float64:
		for i := range dst {
			dst[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(data[at:])))
			at += step
		}
	case Int8:
		for i := range dst {
			dst[i] = T(int8(data[at]))
			at += step
		}
	case Uint8:
		for i := range dst {
			dst[i] = T(data[at])
			at += step
		}
	case Int16:
		for i := range dst {
			dst[i] = T(int16(binary.LittleEndian.Uint16(data[at:])))
			at += step
		}
	case Uint16:
		for i := range dst {
			dst[i] = T(binary.LittleEndian.Uint16(data[at:]))
			at += step
		}
	case Int32:
		for i := range dst {
			dst[i] = T(int32(binary.LittleEndian.Uint32(data[at:])))
			at += step
		}
	case Uint32:
		for i := range dst {
			dst[i] = T(binary.LittleEndian.Uint32(data[at:]))
			at += step
		}
	case Int64:
		for i := range dst {
			dst[i] = T(int64(binary.LittleEndian.Uint64(data[at:])))
			at += step
		}
	case Uint64:
		for i := range dst {
			dst[i] = T(binary.LittleEndian.Uint64(data[at:]))
			at += step
		}
	}
}

// unpackBig is unpackRow for big-endian values.
func unpackBig[T number](t Type, data []byte, at, step int, dst []T) {
	p := Packed{BigEndian: true}
	for i := range dst {
		v := p.bits(data, at, t.Size())
		switch t {
		case Float32:
			dst[i] = T(math.Float32frombits(uint32(v)))
		case Float64:
			dst[i] = T(math.Float64frombits(v))
		case Int8:
			dst[i] = T(int8(v))
		case Int16:
			dst[i] = T(int16(v))
		case Int32:
			dst[i] = T(int32(v))
		case Int64:
			dst[i] = T(int64(v))
		default:
			dst[i] = T(v)
		}
		at += step
	}
}
