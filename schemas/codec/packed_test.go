package codec

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

// Records with padding, in rows with a gap, in either byte order, give the same columns.
func TestUnpackReadsAnyLayout(t *testing.T) {
	for _, big := range []bool{false, true} {
		var order binary.AppendByteOrder = binary.LittleEndian
		if big {
			order = binary.BigEndian
		}
		var data []byte
		for i := range 6 {
			f := float32(i)
			data = order.AppendUint16(data, uint16(10+i)) // ring
			data = append(data, 0xee, 0xee)               // padding
			for _, v := range []float32{f, -f, 2 * f, f / 2} {
				data = order.AppendUint32(data, math.Float32bits(v))
			}
			if i%3 == 2 {
				data = append(data, "row gap"...)
			}
		}
		p := Packed{Stride: 20, Width: 3, RowStride: 67, BigEndian: big, Fields: []Field{
			{Name: "ring", Role: Ring, Offset: 0, Type: Uint16}, {Name: "y", Role: Y, Offset: 8, Type: Float32},
			{Name: "x", Role: X, Offset: 4, Type: Float32}, {Name: "z", Role: Z, Offset: 12, Type: Float32},
			{Name: "intensity", Role: Intensity, Offset: 16, Type: Float32},
			{Name: "noise", Offset: 16, Type: Float32}}}
		var c Cloud
		if err := c.Unpack(&p, data, 6, 1<<20); err != nil {
			t.Fatalf("big endian %v: %v", big, err)
		}
		if want := []float32{0, -1, -2, -3, -4, -5}; !slices.Equal(c.Cloud32.Y, want) {
			t.Errorf("big endian %v: y is %v, want %v", big, c.Cloud32.Y, want)
		}
		if want := []int32{10, 11, 12, 13, 14, 15}; !slices.Equal(c.Ring, want) {
			t.Errorf("big endian %v: ring is %v, want %v", big, c.Ring, want)
		}
		if !slices.Equal(c.Ignored, []string{"noise"}) {
			t.Errorf("ignored fields are %q, want noise", c.Ignored)
		}
		if err := c.Unpack(&p, data[:len(data)-8], 6, 1<<20); err == nil || err.Reason != Truncated {
			t.Errorf("data without the last byte of the last point: %v, want %s", err, Truncated)
		}
	}
}

// A description that lies about the record is an error, never an access beyond the data.
func TestUnpackRefusesLies(t *testing.T) {
	xy := []Field{{Name: "x", Role: X, Type: Float32}, {Name: "y", Role: Y, Offset: 4, Type: Float32}}
	for name, c := range map[string]struct {
		p      Packed
		n      int
		reason string
	}{
		"no stride":      {Packed{Fields: xy}, 1, BadLength},
		"negative count": {Packed{Fields: xy, Stride: 8}, -1, BadLength},
		"many points":    {Packed{Fields: xy, Stride: 8}, 1 << 30, TooLarge},
		"few data":       {Packed{Fields: xy, Stride: 8}, 9, Truncated},
		"field beyond":   {Packed{Fields: xy, Stride: 7}, 1, BadLength},
		"two x":          {Packed{Fields: append(xy[:2:2], xy[0]), Stride: 8}, 1, Duplicate},
		"no y":           {Packed{Fields: xy[:1], Stride: 8}, 1, Missing},
		"unknown type":   {Packed{Fields: []Field{xy[0], {Name: "y", Role: Y, Type: 99}}, Stride: 8}, 1, BadType},
		"rows overlap":   {Packed{Fields: xy, Stride: 8, Width: 4, RowStride: 31}, 4, BadLength},
	} {
		var cloud Cloud
		if err := cloud.Unpack(&c.p, make([]byte, 64), c.n, 1<<20); err == nil || err.Reason != c.reason {
			t.Errorf("%s: %v, want reason %s", name, err, c.reason)
		}
	}
}

// Integers of more than 24 bits widen the cloud, so that no coordinate is rounded; one that
// float64 does not hold is refused.
func TestUnpackRoundsNoCoordinate(t *testing.T) {
	data := binary.LittleEndian.AppendUint64(nil, 1<<53+1)
	p := Packed{Stride: 8, Fields: []Field{{Name: "x", Role: X, Type: Int32}, {Name: "y", Role: Y, Type: Uint8}}}
	var c Cloud
	if err := c.Unpack(&p, data, 1, 1<<20); err != nil || !c.Double || c.Cloud64.X[0] != 1 {
		t.Errorf("int32: %v, double %v, x %v; want 1 as float64", err, c.Double, c.Cloud64.X)
	}
	p.Fields[0].Type = Int64
	if err := c.Unpack(&p, data, 1, 1<<20); err == nil || err.Reason != BadValue {
		t.Errorf("2^53+1: %v, want %s", err, BadValue)
	}
}

// Values of one field that stand together give the columns that records give.
func TestUnpackReadsColumns(t *testing.T) {
	for _, big := range []bool{false, true} {
		var order binary.AppendByteOrder = binary.LittleEndian
		if big {
			order = binary.BigEndian
		}
		var data []byte
		for i := range 4 {
			data = order.AppendUint64(data, math.Float64bits(float64(i)/3))
		}
		for i := range 4 {
			data = order.AppendUint32(data, math.Float32bits(float32(-i)))
		}
		data = order.AppendUint32(order.AppendUint32(data, 0x010203), 0x040506)
		data = order.AppendUint32(order.AppendUint32(data, 0x070809), 0x0a0b0c)
		p := Packed{Stride: 16, BigEndian: big, Fields: []Field{{Name: "x", Role: X, Step: 8, Type: Float64},
			{Name: "y", Role: Y, Offset: 32, Step: 4, Type: Float32},
			{Name: "rgb", Role: RGB, Offset: 48, Step: 4, Type: Uint32}}}
		var c Cloud
		if err := c.Unpack(&p, data, 4, 1<<20); err != nil {
			t.Fatalf("big endian %v: %v", big, err)
		}
		if x, y := []float64{0, 1. / 3, 2. / 3, 1}, []float64{0, -1, -2, -3}; !slices.Equal(c.Cloud64.X, x) ||
			!slices.Equal(c.Cloud64.Y, y) {
			t.Errorf("big endian %v: got %v and %v, want %v and %v", big, c.Cloud64.X, c.Cloud64.Y, x, y)
		}
		if want := []int32{2, 5, 8, 11}; !slices.Equal(c.Green, want) {
			t.Errorf("big endian %v: green is %v, want %v", big, c.Green, want)
		}
		if err := c.Unpack(&p, data[:len(data)-1], 4, 1<<20); err == nil || err.Reason != Truncated {
			t.Errorf("data without the last byte: %v, want %s", err, Truncated)
		}
	}
}

// Floats that are no integers become a marked or a bounded integer on every CPU.
func TestUnpackRoundsFloatsOfIntegerColumns(t *testing.T) {
	var data []byte
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 7, 6.75, -3} {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	p := Packed{Stride: 8, Fields: []Field{{Name: "x", Role: X, Type: Float64}, {Name: "y", Role: Y, Type: Float64},
		{Name: "label", Role: Label, Type: Float64}}}
	var c Cloud
	if err := c.Unpack(&p, data, 7, 1<<20); err != nil {
		t.Fatal(err)
	}
	want := []int32{NoInt32, math.MaxInt32, math.MinInt32 + 1, math.MaxInt32, 7, 7, -3}
	if !slices.Equal(c.Label, want) {
		t.Errorf("labels are %v, want %v", c.Label, want)
	}
}

func TestAssignRoles(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  []Role
		wrong string
	}{
		{[]string{"x", "y", "z", "intensity"}, []Role{X, Y, Z, Intensity}, ""},
		{[]string{"X", "Y", "nx"}, []Role{X, Y, NoRole}, ""},
		{[]string{"x", "y", "reflectivity", "intensity"}, []Role{X, Y, NoRole, Intensity}, ""},
		{[]string{"x", "y", "intensity", "reflectivity"}, []Role{X, Y, Intensity, NoRole}, ""},
		{[]string{"x", "y", "i", "reflectance"}, []Role{X, Y, Intensity, NoRole}, ""},
		{[]string{"_", "_", "x", "y"}, []Role{NoRole, NoRole, X, Y}, ""},
		{[]string{"x", "y", "x"}, nil, "two fields x"},
		{[]string{"x", "y", "X"}, nil, "two fields X"},
	} {
		fields := make([]Field, len(test.names))
		for i, name := range test.names {
			fields[i].Name = name
		}
		err := AssignRoles(fields, nil)
		if test.wrong != "" {
			if err == nil || err.Reason != Duplicate || !strings.Contains(err.Detail, test.wrong) {
				t.Errorf("%q: %v, want %s with %q", test.names, err, Duplicate, test.wrong)
			}
			continue
		}
		for i := range fields {
			if err != nil || fields[i].Role != test.want[i] {
				t.Errorf("%q: field %s has role %d (%v), want %d", test.names, fields[i].Name, fields[i].Role, err,
					test.want[i])
			}
		}
	}
}
