package nuscenes

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"entropipe/schemas/codec"
)

// scan returns the bytes of points, each of any number of values.
func scan(points ...[]float32) []byte {
	var b []byte
	for _, p := range points {
		for _, v := range p {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

var two = [][]float32{{-3.25, 0.5, -1.87, 4, 0}, {12.5, -7, 2, 255, 31}}

func TestDecode(t *testing.T) {
	value := scan(two...)
	var c codec.Cloud
	if err := Decode(&c, value, 1<<20); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Cloud32.X, []float32{-3.25, 12.5}) || !slices.Equal(c.Cloud32.Y, []float32{0.5, -7}) ||
		!slices.Equal(c.Cloud32.Z, []float32{-1.87, 2}) || !slices.Equal(c.Points.Intensity, []float32{4, 255}) ||
		!slices.Equal(c.Ring, []int32{0, 31}) {
		t.Errorf("the columns are %+v", c.Points)
	}
	if !Is(value) || !Is(value[:25]) {
		t.Error("the scan is not recognised")
	}
	if err := Decode(&c, nil, 0); err != nil || c.Len() != 0 || !c.HasZ() || c.Ring == nil || Is(nil) {
		t.Errorf("a scan without points: %v, %+v", err, c.Points)
	}
	nan := float32(math.NaN())
	if err := Decode(&c, scan([]float32{nan, 1, 2, nan, 3}), 1<<20); err != nil || c.Len() != 1 || c.Ring[0] != 3 {
		t.Errorf("a point that is not a number: %v, %+v", err, c.Points)
	}
}

// A scan cut short at any byte is an error unless whole points are left.
func TestTruncated(t *testing.T) {
	value := scan(two...)
	var c codec.Cloud
	for n := range value {
		err := Decode(&c, value[:n], 1<<20)
		if n%pointBytes == 0 {
			if err != nil || c.Len() != n/pointBytes {
				t.Errorf("%d bytes: %v, %d points", n, err, c.Len())
			}
			continue
		}
		var known *codec.Error
		if !errors.As(err, &known) || known.Reason != codec.BadLength || known.At != int64(n-n%pointBytes) {
			t.Errorf("%d bytes: %v, want %s at the last whole point", n, err, codec.BadLength)
		}
	}
}

func TestOtherFormats(t *testing.T) {
	kitti := scan([]float32{1, 2, 3, .5}, []float32{-1.5, 0, -1.73, 0}, []float32{49.52, 22.668, 2.051, .99},
		[]float32{4, 5, 6, .1}, []float32{7, 8, 9, .2})
	for name, c := range map[string]struct {
		value          []byte
		reason, detail string
	}{
		"KITTI whose length fits":  {kitti, codec.BadValue, "reads as a scan of KITTI, 5 points"},
		"KITTI whose length is 16": {kitti[:16], codec.BadLength, "reads as a scan of KITTI, 1 points"},
		"a ring between two beams": {scan([]float32{1, 2, 3, 4, 5.5}), codec.BadValue, "point 0 has 5.5"},
		"a negative ring":          {scan(two[0], []float32{1, 2, 3, 4, -1}), codec.BadValue, "point 1 has -1"},
		"a ring of NaN":            {scan([]float32{1, 2, 3, 4, float32(math.NaN())}), codec.BadValue, "NaN"},
		"a ring beyond all":        {scan([]float32{1, 2, 3, 4, 256}), codec.BadValue, "point 0 has 256"},
		"text":                     {[]byte("x,y,z\n1,2,3\n4,5,6\n"), codec.BadLength, "18 are left over"},
	} {
		var cloud codec.Cloud
		var known *codec.Error
		err := Decode(&cloud, c.value, 1<<20)
		if !errors.As(err, &known) || known.Reason != c.reason || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%s: %v, want %s with %q", name, err, c.reason, c.detail)
		}
		if Is(c.value) {
			t.Errorf("%s is taken for a scan of nuScenes", name)
		}
	}
	var cloud codec.Cloud
	var known *codec.Error
	if err := Decode(&cloud, scan(two...), 39); !errors.As(err, &known) || known.Reason != codec.TooLarge {
		t.Errorf("40 bytes with a limit of 39: %v", err)
	}
}

// No value makes Decode panic, and what it accepts has a column value for each 20 bytes.
func FuzzDecode(f *testing.F) {
	f.Add(scan(two...))
	f.Add(scan(two...)[:21])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		var c codec.Cloud
		err := Decode(&c, value, 1<<16)
		n := len(value) / pointBytes
		if err == nil && (c.Len() != n || len(c.Ring) != n || len(c.Points.Intensity) != n || len(value) > 1<<16) {
			t.Fatalf("%d bytes give %d points", len(value), c.Len())
		}
		if err != nil && Is(value) && len(value)%pointBytes == 0 && len(value) <= 1<<16 && n <= sampled {
			t.Fatalf("Is accepts what Decode refuses: %v", err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	value := make([]byte, 0, 34688*pointBytes) // points of a sweep
	for i := range 34688 {
		v := float32(i)
		value = append(value, scan([]float32{v / 1000, -v / 2000, v / 30000, float32(i % 256), float32(i % 32)})...)
	}
	var c codec.Cloud
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if err := Decode(&c, value, 64<<20); err != nil {
			b.Fatal(err)
		}
	}
}
