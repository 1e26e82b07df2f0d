package schemas

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"entropipe/algos/geom"
	"entropipe/algos/hull"
)

// halves makes a column of float16 values from their bits.
func halves(bits ...uint16) arrow.Array {
	b := array.NewFloat16Builder(memory.DefaultAllocator)
	for _, h := range bits {
		b.Append(float16.FromBits(h))
	}
	return b.NewArray()
}

func streamOf(t *testing.T, names []string, columns ...arrow.Array) []byte {
	t.Helper()
	var fields []arrow.Field
	for i, name := range names {
		fields = append(fields, arrow.Field{Name: name, Type: columns[i].DataType()})
	}
	return write(t, []arrow.Record{array.NewRecord(arrow.NewSchema(fields, nil), columns, int64(columns[0].Len()))})
}

// Law: each of the 65,536 values of a float16 is decoded to the value of IEEE
// 754's definition, with its sign, as a coordinate and as an intensity, alone
// and beside a column of float64.
func TestEveryHalfIsDecoded(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	x := halves(all...)
	doubles := array.NewFloat64Builder(memory.DefaultAllocator)
	for range all {
		doubles.Append(0.1)
	}
	for name, y := range map[string]arrow.Array{"float32": x, "float64": doubles.NewArray()} {
		frames, err := new(Decoder).Decode(Message{Topic: "t",
			Value: streamOf(t, []string{"x", "y", "intensity"}, x, y, x)})
		if err != nil {
			t.Fatal(err)
		}
		f := &frames[0]
		if want := name == "float64"; f.Double != want {
			t.Fatalf("the frame is double: %v, want %v", f.Double, want)
		}
		for column, got := range map[string][]float64{"x": f.axis(0), "intensity": widen(f.Intensity)} {
			for i, v := range got {
				want := halfByDefinition(uint16(i))
				if math.Float64bits(v) != math.Float64bits(want) && !(math.IsNaN(v) && math.IsNaN(want)) {
					t.Fatalf("%s frame, column %s: float16 %#04x is %g, want %g", name, column, i, v, want)
				}
			}
		}
	}
}

// A cloud whose heights are subnormal float16 values has the hull of its
// values: the middle point lies below the line through its neighbours only if
// subnormal values keep their size against normal ones.
func TestHullOfSubnormalHalves(t *testing.T) {
	value := streamOf(t, []string{"x", "y"},
		halves(0x0000, 0x3800, 0x3c00), // 0, 0.5, 1
		halves(0x0000, 0x0200, 0x0400)) // 0, 2^-15 (subnormal), 2^-14 (normal)
	frames, err := new(Decoder).Decode(Message{Topic: "t", Value: value})
	if err != nil {
		t.Fatal(err)
	}
	var h hull.Hull2D[float32]
	c := geom.Cloud[float32]{X: frames[0].Cloud32.X, Y: frames[0].Cloud32.Y}
	if got := fmt.Sprint(h.Append(nil, c)); got != "[0 2]" {
		t.Errorf("the hull of x %v, y %v is %s, want [0 2]: the three points are collinear", c.X, c.Y, got)
	}
}
