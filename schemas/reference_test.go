package schemas

import (
	"bytes"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// reference is a message as Arrow's own reader sees it: the columns we read,
// widened to float64, integers and strings.
type reference struct {
	rows   int
	floats map[string][]float64 // null: NaN
	ints   map[string][]int64
	labels []string
}

// readReference reads a stream with ipc.Reader. It is for values that the
// decoder has accepted: on others that reader allocates what they declare.
// It still does so for what we skip, dictionaries of other columns: an error
// here.
func readReference(value []byte) (ref reference, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ref = reference{floats: map[string][]float64{}, ints: map[string][]int64{}}
	r, err := ipc.NewReader(bytes.NewReader(value), ipc.WithAllocator(&limitedAllocator{}))
	if err != nil {
		return ref, err
	}
	defer r.Release()
	for r.Next() {
		rec := r.Record()
		ref.rows += int(rec.NumRows())
		for i := range int(rec.NumCols()) {
			ref.add(rec.ColumnName(i), rec.Column(i))
		}
	}
	return ref, r.Err()
}

func (r *reference) add(name string, col arrow.Array) {
	lower := string(bytes.ToLower([]byte(name)))
	switch lower {
	case "x", "y", "z", "intensity":
		if id := col.DataType().ID(); !arrow.IsFloating(id) && !arrow.IsInteger(id) {
			return // not read in drawings; refused in points
		}
		r.floats[name] = append(r.floats[name], floatsOf(col)...)
	case "drawing_id", "ts_ns":
		for i := range col.Len() {
			v := int64(nullInt64)
			if col.IsValid(i) {
				v = int64OfArray(col, i)
			}
			r.ints[lower] = append(r.ints[lower], v)
		}
	case "label":
		for i := range col.Len() {
			r.labels = append(r.labels, stringOfArray(col, i))
		}
	}
}

// floatsOf converts a value at a time, unlike the decoder.
func floatsOf(col arrow.Array) []float64 {
	out := make([]float64, col.Len())
	for i := range out {
		if out[i] = math.NaN(); col.IsNull(i) {
			continue
		}
		switch a := col.(type) {
		case *array.Float16:
			out[i] = halfByDefinition(a.Value(i).Uint16()) // Arrow's own conversion loses subnormals
		case *array.Float32:
			out[i] = float64(a.Value(i))
		case *array.Float64:
			out[i] = a.Value(i)
		case *array.Uint64:
			out[i] = float64(a.Value(i))
		default:
			out[i] = float64(int64OfArray(col, i))
		}
	}
	return out
}

// halfByDefinition returns the value that IEEE 754 gives to the 16 bits of a
// binary16: (-1)^s · 2^(e-15) · 1.m, and (-1)^s · 2^-14 · 0.m where e is 0.
func halfByDefinition(h uint16) float64 {
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)/1024
	v := math.Ldexp(1+fraction, exponent-15)
	switch {
	case exponent == 0:
		v = math.Ldexp(fraction, -14)
	case exponent == 31 && fraction == 0:
		v = math.Inf(1)
	case exponent == 31:
		return math.NaN()
	}
	if h>>15 == 1 {
		v = -v
	}
	return v
}

func int64OfArray(col arrow.Array, i int) int64 {
	switch a := col.(type) {
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Uint64:
		return int64(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	}
	panic(fmt.Sprintf("no integer: %T", col))
}

func stringOfArray(col arrow.Array, i int) string {
	if col.IsNull(i) {
		return ""
	}
	switch a := col.(type) {
	case *array.Dictionary:
		return stringOfArray(a.Dictionary(), a.GetValueIndex(i))
	case *array.String:
		return a.Value(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.StringView:
		return a.Value(i)
	}
	panic(fmt.Sprintf("no string: %T", col))
}

// column finds a column by its exact name, else by its letters.
func (r *reference) column(name string) []float64 {
	if v, ok := r.floats[name]; ok {
		return v
	}
	for k, v := range r.floats {
		if bytes.EqualFold([]byte(k), []byte(name)) {
			return v
		}
	}
	return nil
}

// compare tells how frames differ from what Arrow's reader found, "" if they
// do not.
func (r *reference) compare(frames []Frame) string {
	at := 0
	for k := range frames {
		f := &frames[k]
		n := f.Len()
		if at+n > r.rows {
			return fmt.Sprintf("frame %d ends at row %d of %d", k, at+n, r.rows)
		}
		axes := map[string][]float64{"x": f.axis(0), "y": f.axis(1), "intensity": nil}
		if f.Intensity != nil {
			axes["intensity"] = widen(f.Intensity)
		}
		if f.Drawing == nil {
			axes["z"] = f.axis(2)
		} else if diff := r.compareDrawing(f, at, n); diff != "" {
			return fmt.Sprintf("frame %d: %s", k, diff)
		}
		for name, got := range axes {
			want := r.column(name)
			if f.Drawing != nil && name == "intensity" {
				continue
			}
			if (got == nil) != (want == nil) && r.rows > 0 {
				return fmt.Sprintf("frame %d: column %s: have %v, want %v", k, name, got != nil, want != nil)
			}
			for i, v := range got {
				w := want[at+i]
				if name == "intensity" {
					w = float64(float32(w))
				}
				if math.Float64bits(v) != math.Float64bits(w) && !(math.IsNaN(v) && math.IsNaN(w)) {
					return fmt.Sprintf("frame %d, column %s, point %d: %v, want %v", k, name, i, v, w)
				}
			}
		}
		at += n
	}
	if at != r.rows {
		return fmt.Sprintf("%d points in %d frames, want %d", at, len(frames), r.rows)
	}
	return ""
}

func (r *reference) compareDrawing(f *Frame, at, n int) string {
	for i := at; i < at+n; i++ {
		if r.ints["drawing_id"][i] != f.Drawing.ID {
			return fmt.Sprintf("row %d: drawing %d, want %d", i, f.Drawing.ID, r.ints["drawing_id"][i])
		}
	}
	if r.labels != nil && f.Drawing.Label != r.labels[at] {
		return fmt.Sprintf("label %q, want %q", f.Drawing.Label, r.labels[at])
	}
	if ts := r.ints["ts_ns"]; ts != nil && ts[at] != nullInt64 && ts[at] != f.TimeNs {
		return fmt.Sprintf("time %d, want %d", f.TimeNs, ts[at])
	}
	return ""
}

// axis returns a coordinate as float64, nil if the cloud has not got it.
func (f *Frame) axis(i int) []float64 {
	if f.Double {
		return [...][]float64{f.Cloud64.X, f.Cloud64.Y, f.Cloud64.Z}[i]
	}
	v := [...][]float32{f.Cloud32.X, f.Cloud32.Y, f.Cloud32.Z}[i]
	if v == nil {
		return nil
	}
	return widen(v)
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, w := range v {
		out[i] = float64(w)
	}
	return out
}

// limitedAllocator refuses what no value of the tests can need.
type limitedAllocator struct{ memory.GoAllocator }

const errAllocation = "reference: Arrow's reader asks for more than 256 MiB"

func (a *limitedAllocator) Allocate(n int) []byte {
	if n > 256<<20 {
		panic(errAllocation)
	}
	return a.GoAllocator.Allocate(n)
}

func (a *limitedAllocator) Reallocate(n int, b []byte) []byte {
	if n > 256<<20 {
		panic(errAllocation)
	}
	return a.GoAllocator.Reallocate(n, b)
}
