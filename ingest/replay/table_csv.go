package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/csv"
)

// textTable reads tables of text. It keeps its memory for the next one.
type textTable struct {
	c      *codec.Cloud
	plan   columnPlan
	width  int64                        // bytes of a row
	values [len(columnPlan{})][]float64 // values of rows, by role; a number of int32 fits exactly
	times  []int64                      // times that are written as integers
	floats bool                         // a time is not: all are seconds
}

// read reads a table into c, one cloud. Coordinates are the float64 nearest to the decimals. An
// empty field has no value: NaN in a column of floats. limit bounds the bytes of the columns. The
// columns are valid until the next call. The error is a *BadInputError.
func (t *textTable) read(c *codec.Cloud, from io.Reader, path string, names Columns, limit int64) error {
	c.Reset()
	c.Double = true
	r := csv.NewReader(from)
	header, err := r.Header(names.X, names.Y, names.Z, names.Intensity)
	if err != nil {
		return badText(path, err)
	}
	if header == nil {
		c.Cloud64.X, c.Cloud64.Y, c.Cloud64.Z = []float64{}, []float64{}, []float64{}
		return nil
	}
	columns := make([]schemas.TableColumn, len(header))
	for i, name := range header {
		columns[i] = schemas.TableColumn{Name: name, Number: true}
	}
	plan, ignored, err := planColumns(columns, names)
	if err != nil {
		return &BadInputError{File: path, Line: 1, Detail: err.Error(), Err: err}
	}
	t.begin(c, plan)
	for n := int64(1); err == nil; n++ {
		var fields [][]byte
		fields, err = r.Next()
		if err == nil && n*t.width > limit {
			err = fmt.Errorf("%d points take more than the limit of %d bytes", n, limit)
		}
		if err == nil {
			err = t.add(r, fields)
		}
	}
	if err != io.EOF {
		c.Reset()
		return badText(path, err)
	}
	t.finish()
	c.Ignored = append(c.Ignored, ignored...)
	return nil
}

// badText returns the error for a file of text.
func badText(path string, err error) error {
	bad := &BadInputError{File: path, Detail: err.Error(), Err: err}
	var at *csv.Error
	if errors.As(err, &at) {
		bad.Line, bad.Col, bad.Detail = at.Line, at.Col, at.Detail
	}
	return bad
}

// begin empties the columns.
func (t *textTable) begin(c *codec.Cloud, plan columnPlan) {
	t.c, t.plan, t.width, t.floats, t.times = c, plan, 0, false, resize(t.times, 0)
	for role, at := range plan {
		if at > 0 {
			t.values[role] = resize(t.values[role], 0)
			t.width += 8
		}
	}
}

// add appends the values of a row.
func (t *textTable) add(r *csv.Reader, fields [][]byte) error {
	for role, at := range t.plan {
		if at == 0 {
			continue
		}
		field, role := fields[at-1], codec.Role(role)
		v := math.NaN()
		if len(field) > 0 {
			var err error
			if v, err = parseFloat(field); err != nil && !errors.Is(err, strconv.ErrRange) {
				return r.Wrong(at-1, "want a number for %s, got %.60q", codec.RoleNames[role], field)
			}
		}
		whole := true
		switch role {
		case codec.X, codec.Y, codec.Z, codec.Intensity, codec.Elongation:
		case codec.TOffset:
			t.addTime(field)
		case codec.RGB:
			whole = v != v || v >= 0 && v <= math.MaxUint32 && v == math.Trunc(v)
		default:
			_, err := int32Of(v)
			whole = err == nil
		}
		if !whole {
			return r.Wrong(at-1, "want an integer for %s, got %.60q", codec.RoleNames[role], field)
		}
		t.values[role] = append(t.values[role], v)
	}
	return nil
}

// powers are the powers of ten that float64 holds exactly, up to that of 15 digits.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseFloat is strconv.ParseFloat, with a short way for decimals of at most 15 digits without
// exponent: two exact numbers, whose quotient is rounded once.
func parseFloat(field []byte) (float64, error) {
	digits, minus := field, len(field) > 0 && field[0] == '-'
	if minus {
		digits = digits[1:]
	}
	mantissa, count, after := uint64(0), 0, -1
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9' && count < 15:
			mantissa = 10*mantissa + uint64(c-'0')
			count++
			if after >= 0 {
				after++
			}
		case c == '.' && after < 0:
			after = 0
		default:
			return strconv.ParseFloat(string(field), 64)
		}
	}
	if count == 0 {
		return strconv.ParseFloat(string(field), 64)
	}
	v := float64(mantissa) / powers[max(after, 0)]
	if minus {
		v = -v
	}
	return v, nil
}

// addTime appends a time as an integer, and notices one that is none.
func (t *textTable) addTime(field []byte) {
	ns := int64(codec.NoInt64)
	if len(field) > 0 {
		var err error
		ns, err = strconv.ParseInt(string(field), 10, 64)
		t.floats = t.floats || err != nil
	}
	t.times = append(t.times, ns)
}

// finish makes the columns of the cloud.
func (t *textTable) finish() {
	c := t.c
	for role, at := range t.plan {
		if at == 0 {
			continue
		}
		v, n := t.values[role], len(t.values[role])
		switch role := codec.Role(role); role {
		case codec.X:
			c.Cloud64.X = v
		case codec.Y:
			c.Cloud64.Y = v
		case codec.Z:
			c.Cloud64.Z = v
		case codec.Intensity:
			c.Points.Intensity = narrowed(c.Float32s(role, n), v)
		case codec.Elongation:
			c.Elongation = narrowed(c.Float32s(role, n), v)
		case codec.TOffset:
			if c.TOffsetNs = t.times; t.floats {
				for i := range v {
					t.times[i] = nanoseconds(v[i])
				}
			}
		case codec.RGB:
			bits := c.Int64s(role, n)
			for i := range v {
				if bits[i] = codec.NoInt64; v[i] == v[i] {
					bits[i] = int64(v[i])
				}
			}
			setColours(c, bits)
		default:
			ints := c.Int32s(role, n)
			for i := range v {
				ints[i], _ = int32Of(v[i]) // add has checked it
			}
			*intColumn(&c.Extra, role) = ints
		}
	}
}

func narrowed(dst []float32, v []float64) []float32 {
	for i := range v {
		dst[i] = float32(v[i])
	}
	return dst
}
