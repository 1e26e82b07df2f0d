package codec

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doublesOf returns n records of x, y as float32 and a time as float64.
func doublesOf(times ...float64) []byte {
	var b []byte
	for i, v := range times {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(-i)))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func timedFields(name string) []Field {
	return []Field{{Name: "x", Role: X, Type: Float32}, {Name: "y", Role: Y, Type: Float32, Offset: 4},
		{Name: name, Role: RoleOf(name), Type: Float64, Offset: 8}}
}

func TestTimesOfDrivers(t *testing.T) {
	const stamp = int64(1_700_000_000_500_000_000)
	for _, c := range []struct {
		name, field string
		times       []float64
		stamp       int64
		want        []int64
		wantStamp   int64
	}{
		{"relative seconds", "time", []float64{0, 0.0125, -0.5}, stamp, []int64{0, 12_500_000, -500_000_000}, stamp},
		{"absolute seconds", "timestamp", []float64{1_700_000_000.5, 1_700_000_000.75}, stamp,
			[]int64{0, 250_000_000}, stamp},
		{"milliseconds", "timestamp", []float64{1_700_000_000_500, 1_700_000_000_750.5}, stamp,
			[]int64{0, 250_500_000}, stamp},
		{"microseconds", "timestamp", []float64{1_700_000_000_500_000, 1_700_000_000_500_001}, stamp,
			[]int64{0, 1000}, stamp},
		{"nanoseconds", "timestamp", []float64{1_700_000_000_500_000_000, 1_700_000_000_500_000_256}, stamp,
			[]int64{0, 256}, stamp},
		{"no stamp", "timestamp", []float64{1_700_000_001, 1_700_000_000.5}, 0, []int64{500_000_000, 0}, stamp},
		{"not finite", "timestamp", []float64{math.NaN(), 1_700_000_000.5, math.Inf(1), math.Inf(-1)}, stamp,
			[]int64{0, 0, 0, 0}, stamp},
		{"only NaN", "t", []float64{math.NaN()}, stamp, []int64{0}, stamp},
		{"no points", "t", []float64{}, stamp, []int64{}, stamp},
		{"beyond all dates", "t", []float64{1e300}, stamp, []int64{math.MaxInt64 - stamp}, stamp},
	} {
		t.Run(c.name, func(t *testing.T) {
			cloud := Cloud{TimeNs: c.stamp, HasTime: c.stamp != 0}
			p := Packed{Fields: timedFields(c.field), Stride: 16}
			if err := cloud.UnpackMessage(&p, doublesOf(c.times...), len(c.times), 1<<20); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, cloud.TOffsetNs); diff != "" || cloud.TimeNs != c.wantStamp || !cloud.HasTime {
				t.Errorf("stamp %d, %s", cloud.TimeNs, diff)
			}
			if len(cloud.Ignored) > 0 || cloud.Len() != len(c.times) {
				t.Errorf("ignored %v, %d points", cloud.Ignored, cloud.Len())
			}
		})
	}
}

// Ouster has intensity and reflectivity, other drivers have only one of them.
func TestSeveralFieldsOfOneRole(t *testing.T) {
	field := func(name string, at int) Field {
		return Field{Name: name, Role: RoleOf(name), Type: Float32, Offset: at}
	}
	data := make([]byte, 24)
	for i := range 6 {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i+1)))
	}
	for _, c := range []struct {
		name      string
		fields    []Field
		intensity float32
		ignored   []string
		reason    string
	}{
		{"intensity first", []Field{field("x", 0), field("y", 4), field("intensity", 8), field("reflectivity", 12)}, 3,
			[]string{"reflectivity"}, ""},
		{"intensity last", []Field{field("x", 0), field("y", 4), field("reflectivity", 12), field("intensity", 8)}, 3,
			[]string{"reflectivity"}, ""},
		{"neither", []Field{field("x", 0), field("y", 4), field("reflectivity", 12), field("i", 8)}, 4,
			[]string{"i"}, ""},
		{"two x", []Field{field("x", 0), field("x", 4), field("y", 8)}, 0, nil, Duplicate},
		{"X and x", []Field{field("X", 0), field("x", 4), field("y", 8)}, 0, nil, Duplicate},
		{"two of a name", []Field{field("x", 0), field("y", 4), field("i", 8), field("i", 12)}, 0, nil, Duplicate},
		{"time beyond the point", []Field{field("x", 0), field("y", 4),
			{Name: "time", Role: TOffset, Type: Float64, Offset: 20}}, 0, nil, BadLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cloud Cloud
			err := cloud.UnpackMessage(&Packed{Fields: c.fields, Stride: 24}, data, 1, 1<<20)
			if c.reason != "" {
				if err == nil || err.Reason != c.reason {
					t.Errorf("%v instead of %s", err, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cloud.Points.Intensity[0] != c.intensity || !cmp.Equal(cloud.Ignored, c.ignored) {
				t.Errorf("intensity %v, ignored %v", cloud.Points.Intensity, cloud.Ignored)
			}
		})
	}
}
