package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// layouts are those that drivers of LiDARs use.
var layouts = map[string]Packed{
	"points16": {Stride: 16, Fields: []Field{{Name: "x", Role: X, Type: Float32},
		{Name: "y", Role: Y, Offset: 4, Type: Float32}, {Name: "z", Role: Z, Offset: 8, Type: Float32},
		{Name: "intensity", Role: Intensity, Offset: 12, Type: Float32}}},
	"velodyne22": {Stride: 22, Fields: []Field{{Name: "x", Role: X, Type: Float32},
		{Name: "y", Role: Y, Offset: 4, Type: Float32}, {Name: "z", Role: Z, Offset: 8, Type: Float32},
		{Name: "intensity", Role: Intensity, Offset: 12, Type: Float32},
		{Name: "ring", Role: Ring, Offset: 16, Type: Uint16},
		{Name: "time", Role: TOffset, Offset: 18, Type: Float32}}},
	"ouster48": {Stride: 48, Fields: []Field{{Name: "x", Role: X, Type: Float32},
		{Name: "y", Role: Y, Offset: 4, Type: Float32}, {Name: "z", Role: Z, Offset: 8, Type: Float32},
		{Name: "intensity", Role: Intensity, Offset: 16, Type: Float32},
		{Name: "t", Role: TOffset, Offset: 20, Type: Uint32},
		{Name: "ring", Role: Ring, Offset: 26, Type: Uint16}}},
	"wide": {Stride: 44, Fields: []Field{{Name: "x", Role: X, Type: Float64},
		{Name: "y", Role: Y, Offset: 8, Type: Float64}, {Name: "z", Role: Z, Offset: 16, Type: Float64},
		{Name: "ring", Role: Ring, Offset: 24, Type: Float64},
		{Name: "elongation", Role: Elongation, Offset: 32, Type: Int16},
		{Name: "time", Role: TOffset, Offset: 34, Type: Float32}, {Name: "rgb", Role: RGB, Offset: 38, Type: Uint32}}},
	"mixed": {Stride: 20, Fields: []Field{{Name: "z", Role: Z, Type: Float32},
		{Name: "y", Role: Y, Offset: 4, Type: Int16}, {Name: "x", Role: X, Offset: 8, Type: Float32},
		{Name: "red", Role: Red, Offset: 12, Type: Uint8}, {Name: "rgb", Role: RGB, Offset: 16, Type: Uint32}}},
}

// value reads field f of record i as a float64, without any of the code under test.
func value(p *Packed, f *Field, data []byte, i int) float64 {
	var order binary.ByteOrder = binary.LittleEndian
	if p.BigEndian {
		order = binary.BigEndian
	}
	b := data[i*p.Stride+f.Offset:]
	if p.RowStride > 0 {
		b = data[i/p.Width*p.RowStride+i%p.Width*p.Stride+f.Offset:]
	}
	switch f.Type {
	case Float32:
		return float64(math.Float32frombits(order.Uint32(b)))
	case Float64:
		return math.Float64frombits(order.Uint64(b))
	case Uint32:
		return float64(order.Uint32(b))
	case Uint16:
		return float64(order.Uint16(b))
	case Int16:
		return float64(int16(order.Uint16(b)))
	}
	return float64(b[0])
}

// column64 returns the column of a role as float64.
func column64(c *Cloud, role Role) (v []float64) {
	floats := map[Role][]float32{X: c.Cloud32.X, Y: c.Cloud32.Y, Z: c.Cloud32.Z, Intensity: c.Points.Intensity,
		Elongation: c.Elongation}
	switch {
	case role <= Z && c.Double:
		return [][]float64{c.Cloud64.X, c.Cloud64.Y, c.Cloud64.Z}[role-X]
	case role == TOffset:
		for _, x := range c.TOffsetNs {
			v = append(v, float64(x))
		}
		return v
	case floats[role] != nil:
		for _, x := range floats[role] {
			v = append(v, float64(x))
		}
		return v
	}
	for _, x := range *c.int32Column(role) {
		v = append(v, float64(x))
	}
	return v
}

// Every value of every layout is that of its record, whatever the number of points is beside
// that of a block, in rows with and without gaps, and in both byte orders.
func TestUnpackReadsEveryValue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, layout := range layouts {
		for _, n := range []int{1, blockPoints - 1, blockPoints, 3*blockPoints + 1} {
			for variant := range 4 {
				p := layout
				p.BigEndian = variant&1 > 0
				size := n * p.Stride
				if variant&2 > 0 {
					p.Width = 1 + n/3
					p.RowStride = p.Width*p.Stride + 5
					size = (n + p.Width - 1) / p.Width * p.RowStride
				}
				data := make([]byte, size)
				for i := range data {
					data[i] = byte(r.Uint32()) &^ 0x40 // no NaN and no infinity
				}
				compare(t, fmt.Sprintf("%s, %d points, variant %d", name, n, variant), &p, data, n)
			}
		}
	}
}

func compare(t *testing.T, name string, p *Packed, data []byte, n int) {
	t.Helper()
	var c Cloud
	if err := c.Unpack(p, data, n, 1<<30); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for k := range p.Fields {
		f := &p.Fields[k]
		if f.Role == RGB {
			continue
		}
		for i, got := range column64(&c, f.Role) {
			want := value(p, f, data, i)
			switch {
			case f.Role == TOffset && f.Type.IsFloat():
				want = math.RoundToEven(want * 1e9)
				if want >= math.MaxInt64 || want <= math.MinInt64 {
					continue
				}
			case f.Role == Ring && f.Type.IsFloat():
				want = math.RoundToEven(min(max(want, math.MinInt32+1), math.MaxInt32))
			}
			if math.Float64bits(got) != math.Float64bits(want) && got != want {
				t.Fatalf("%s: %s of point %d is %v, want %v", name, f.Name, i, got, want)
			}
		}
	}
}

// The short way to a nanosecond gives what the long one gives.
func TestRoundNs(t *testing.T) {
	for _, v := range []float64{0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 1<<50 - 0.5, 1 << 50,
		1<<50 + 1, -1<<50 + 0.5, -1 << 50, 1 << 53, math.MaxInt64, math.MinInt64,
		1e300, -1e300, math.Inf(1), math.Inf(-1)} {
		want := int64(math.MaxInt64)
		if rounded := math.RoundToEven(v); rounded <= math.MinInt64 {
			want = math.MinInt64
		} else if rounded < math.MaxInt64 {
			want = int64(rounded)
		}
		if got := roundNs(v); got != want {
			t.Errorf("%v ns becomes %d, want %d", v, got, want)
		}
	}
	if got := roundNs(math.NaN()); got != 0 {
		t.Errorf("NaN becomes %d, want 0", got)
	}
}

func BenchmarkUnpack(b *testing.B) {
	const n = 120_000
	for name, p := range layouts {
		b.Run(name, func(b *testing.B) {
			data := make([]byte, n*p.Stride)
			var c Cloud
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := c.Unpack(&p, data, n, 1<<30); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
