package ply

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/codectest"
)

const limit = 1 << 24

// scene returns a file with faces and an empty element before the vertices, and with lists
// before, between and after the scalar properties of a vertex.
func scene(format string, n int) []byte {
	text := "ply\nformat " + format + " 1.0\ncomment element vertex 9\nobj_info made by a test\n" +
		"element face 2\nproperty list uchar int vertex_indices\nproperty short flags\nelement nothing 5\n" +
		"element camera 1\nproperty float64 focus\n" +
		fmt.Sprintf("element vertex %d\n", n) +
		"property list uint8 float64 weights\nproperty double x\nproperty list int short tags\nproperty double y\n" +
		"property float z\nproperty float scalar_Intensity\nproperty uchar red\nproperty uint8 green\n" +
		"property uchar blue\nproperty int8 label\nproperty ushort ring\nproperty uint omg\n" +
		"property list ushort uchar rest\nelement edge 1\nproperty int vertex1\nend_header\n"
	var order binary.AppendByteOrder = binary.LittleEndian
	if format == "binary_big_endian" {
		order = binary.BigEndian
	}
	var b []byte
	var lines strings.Builder
	for k := range 2 {
		b = append(b, 3)
		for i := range 3 {
			b = order.AppendUint32(b, uint32(i+k))
		}
		b = order.AppendUint16(b, 0xffff)
		fmt.Fprintf(&lines, "3 %d %d %d -1\n", k, k+1, k+2)
	}
	b = order.AppendUint64(b, math.Float64bits(1.5))
	fmt.Fprintln(&lines, 1.5)
	for i := range n {
		v := float64(i)
		b = append(b, byte(i%3))
		fmt.Fprint(&lines, i%3)
		for range i % 3 {
			b = order.AppendUint64(b, math.Float64bits(v))
			fmt.Fprint(&lines, " ", v)
		}
		b = order.AppendUint64(b, math.Float64bits(v+1./3))
		b = order.AppendUint32(b, 1)
		b = order.AppendUint16(b, 7)
		b = order.AppendUint64(b, math.Float64bits(-v))
		b = order.AppendUint32(b, math.Float32bits(float32(i)/3))
		b = order.AppendUint32(b, math.Float32bits(float32(i)/7))
		b = append(b, byte(i), byte(i+1), byte(i+2), byte(-i))
		b = order.AppendUint16(b, uint16(65000+i))
		b = order.AppendUint32(b, math.MaxUint32)
		b = append(order.AppendUint16(b, 2), 1, 2)
		fmt.Fprintf(&lines, " %v 1 7  %v\t%v %v %d %d %d %d %d %d 2 1 2 \n", v+1./3, -v, float32(i)/3,
			float32(i)/7, i, i+1,
			i+2, -i, 65000+i, uint32(math.MaxUint32))
	}
	if format == "ascii" {
		return []byte(text + lines.String() + "17\n")
	}
	return append([]byte(text), order.AppendUint32(b, 17)...)
}

func TestDecodeReadsEveryFormat(t *testing.T) {
	for _, format := range []string{"ascii", "binary_little_endian", "binary_big_endian"} {
		for _, n := range []int{0, 1, 100} {
			name := fmt.Sprintf("%s, %d points", format, n)
			var c codec.Cloud
			if err := Decode(&c, scene(format, n), limit); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			ignored := []string{"omg", "weights", "tags", "rest", "element face", "element nothing", "element camera",
				"element edge"}
			if !slices.Equal(c.Ignored, ignored) || c.Len() != n || !c.Double {
				t.Errorf("%s: %d points, ignored %q; want %q", name, c.Len(), c.Ignored, ignored)
				continue
			}
			for i := range n {
				got := fmt.Sprint(c.Cloud64.X[i], c.Cloud64.Y[i], float32(c.Cloud64.Z[i]), c.Intensity[i], c.Red[i],
					c.Green[i], c.Blue[i], c.Label[i], c.Ring[i])
				want := fmt.Sprint(float64(i)+1./3, -float64(i), float32(i)/3, float32(i)/7, i, i+1, i+2, -i, 65000+i)
				if got != want {
					t.Fatalf("%s: point %d is %s, want %s", name, i, got, want)
				}
			}
		}
	}
}

func TestDecodeReadsHeaders(t *testing.T) {
	le := func(f ...float32) string {
		var b []byte
		for _, v := range f {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return string(b)
	}
	const xy = "element vertex 1\nproperty float x\nproperty float y\n"
	for _, test := range []struct {
		name, file string
		x          []float32
		ignored    []string
	}{
		{"blank after the magic", "ply \nformat ascii 1.0\n" + xy + "end_header\n1 2\n", []float32{1}, nil},
		{"blank lines", "ply\nformat ascii 1.0\n\n" + xy + "end_header\n\n 1 2 \n\n", []float32{1}, nil},
		{"lines of DOS", strings.ReplaceAll("ply\nformat ascii 1.0\n"+xy+"end_header\n1 2\n", "\n", "\r\n"),
			[]float32{1},
			nil},
		{"lines of old Macs", strings.ReplaceAll("ply\nformat ascii 1.0\n"+xy+"end_header\n1 2\n", "\n", "\r"),
			[]float32{1}, nil},
		{"binary after lines of DOS", strings.ReplaceAll("ply\nformat binary_little_endian 1.0\n"+xy+"end_header\n",
			"\n",
			"\r\n") + le(10.000001, 2), []float32{10.000001}, nil},
		{"bytes after the points", "ply\nformat binary_little_endian 1.0\n" + xy + "end_header\n" + le(1, 2) + "more",
			[]float32{1}, nil},
		{"NaN", "ply\nformat ascii 1.0\n" + xy + "end_header\nnan -nan\n", []float32{float32(math.NaN())}, nil},
		{"s and t are no time", "ply\nformat ascii 1.0\n" + xy +
			"property float s\nproperty float t\nend_header\n1 2 3 4\n",
			[]float32{1}, []string{"s", "t"}},
		{"no vertex", "ply\nformat ascii 1.0\n" + strings.Replace(xy, "1", "0", 1) + "end_header\n", []float32{}, nil},
	} {
		var c codec.Cloud
		if err := Decode(&c, []byte(test.file), limit); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		equal := func(a, b float32) bool { return a == b || a != a && b != b }
		if !slices.EqualFunc(c.Cloud32.X, test.x, equal) || !slices.Equal(c.Ignored, test.ignored) ||
			c.TOffsetNs != nil {
			t.Errorf("%s: got %v, ignored %q; want %v, %q", test.name, c.Cloud32.X, c.Ignored, test.x, test.ignored)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	const xy = "element vertex 1\nproperty float x\nproperty float y\n"
	const text, little = "ply\nformat ascii 1.0\n", "ply\nformat binary_little_endian 1.0\n"
	for _, test := range []struct{ name, file, reason, detail string }{
		{"nothing", "", codec.Empty, "no byte"},
		{"Draco", "DRACO\x02\x02", codec.WrongMagic, "this is a Draco file"},
		{"plywood", "plywood\n", codec.WrongMagic, "no PLY file"},
		{"only the magic", "ply\n", codec.Truncated, "end_header"},
		{"no format", "ply\n" + xy + "end_header\n1 2\n", codec.Corrupt, "no line format"},
		{"unknown format", "ply\nformat ebcdic 1.0\n", codec.Unsupported, "ebcdic"},
		{"version 2.0", "ply\nformat ascii 2.0\n", codec.Unsupported, "2.0"},
		{"no element vertex", text + "end_header\n", codec.Missing, "the elements are none"},
		{"faces alone", text + "element face 0\nproperty list uchar int v\nend_header\n", codec.Missing, "face"},
		{"property before the first element", text + "property float x\n", codec.Corrupt, "before the first"},
		{"unknown line", text + "vertices 3\n", codec.Corrupt, "vertices 3"},
		{"unknown type", text + "element vertex 1\nproperty half x\nend_header\n", codec.BadType, "half"},
		{"list of floats long", text + "element vertex 1\nproperty list float int x\nend_header\n",
			codec.BadType, "integer"},
		{"list without a name", text + "element vertex 1\nproperty list uchar int\nend_header\n",
			codec.Corrupt, "no property"},
		{"count of vertices", text + "element vertex many\n", codec.BadLength, "many"},
		{"negative count", text + "element vertex -1\n", codec.BadLength, "-1"},
		{"element twice", text + xy + xy + "end_header\n1 2\n1 2\n", codec.Duplicate, "two elements vertex"},
		{"x twice", text + xy + "property float x\nend_header\n1 2 3\n", codec.Duplicate, "two fields x"},
		{"x is a list", text + "element vertex 1\nproperty list uchar float x\nproperty float y\nend_header\n1 1 2\n",
			codec.Missing, "x"},
		{"a number too few", text + xy + "end_header\n1\n", codec.BadValue, "line 7"},
		{"a number too many", text + xy + "end_header\n1 2 3\n", codec.BadValue, "line 7"},
		{"a word", text + xy + "end_header\n1 two\n", codec.BadValue, "line 7"},
		{"a line too few", text + xy + "end_header\n", codec.Truncated, "vertex"},
		{"a line too few before", text + "element face 2\nproperty list uchar int v\n" + xy + "end_header\n1 2\n",
			codec.Truncated, "face"},
		{"text without data", text + "element vertex 2147483647\nproperty float x\nproperty float y\nend_header\n1 2\n",
			codec.Truncated, "2147483647"},
		{"binary without data", little +
			"element vertex 2147483647\nproperty float x\nproperty float y\nend_header\n1 " +
			"2\n",
			codec.Truncated, "2147483647"},
		{"faces without data", little + "element face 2147483647\nproperty int x\n" + xy + "end_header\n",
			codec.Truncated,
			"face"},
		{"list without data", little + "element vertex 1\nproperty list uint float v\nproperty float x\n" +
			"property float y\nend_header\n\xff\xff\xff\xff1234567812345678", codec.Truncated, "list v"},
		{"negative list", little + "element vertex 1\nproperty list int float v\nproperty float x\nproperty float y\n" +
			"end_header\n\xff\xff\xff\xff1234567812345678", codec.BadLength, "negative"},
		{"negative list in text", text + "element vertex 1\nproperty list int float v\nproperty float x\n" +
			"property float y\nend_header\n-1 1 2\n", codec.BadValue, "line 8"},
		{"too large", little + "element vertex 2097152\nproperty float x\nproperty float y\nend_header\n" +
			strings.Repeat("\x00", 1<<24), codec.TooLarge, "limit"},
		{"header without end", text + strings.Repeat("comment a\n", 10000), codec.Corrupt, "65536"},
	} {
		err := Decode(&codec.Cloud{}, []byte(test.file), limit)
		var e *codec.Error
		if !errors.As(err, &e) || e.Reason != test.reason || !strings.Contains(e.Detail, test.detail) {
			t.Errorf("%s: %v, want %s with %q", test.name, err, test.reason, test.detail)
		}
	}
}

// A file that ends within the vertices is an error, or, in text, has all its points: digits
// may be cut off the last one. What follows the vertices is not read.
func TestDecodeOfTruncated(t *testing.T) {
	for _, format := range []string{"ascii", "binary_little_endian", "binary_big_endian"} {
		file := scene(format, 3)
		after := 4
		if format == "ascii" {
			after = len(" 1 2 \n17\n")
		}
		for n := range len(file) - after {
			var c codec.Cloud
			if err := Decode(&c, file[:n:n], limit); err == nil {
				t.Errorf("%s: the first %d of %d bytes are %d points without an error", format, n, len(file), c.Len())
			}
		}
	}
}

func TestDecodeOfDamaged(t *testing.T) {
	for _, encoding := range []string{"ascii", "binary_little_endian", "binary_big_endian"} {
		codectest.Flips(t, Decode, scene(encoding, 2), 1<<20)
	}
}

func FuzzPLY(f *testing.F) {
	for _, format := range []string{"ascii", "binary_little_endian", "binary_big_endian"} {
		f.Add(scene(format, 3))
	}
	f.Fuzz(func(t *testing.T, value []byte) { codectest.Check(t, Decode, value, 1<<20) })
}

func BenchmarkDecode(b *testing.B) {
	const n = 120_000
	for _, format := range []string{"binary_little_endian", "binary_big_endian", "ascii"} {
		file := []byte("ply\nformat " + format + " 1.0\nelement vertex 120000\nproperty float x\nproperty float y\n" +
			"property float z\nproperty float intensity\nend_header\n")
		for i := range n {
			for k := range 4 {
				v := float32((i*7919+k)%80000) / 1000
				switch format {
				case "ascii":
					file = fmt.Append(file, v, " ")
				case "binary_big_endian":
					file = binary.BigEndian.AppendUint32(file, math.Float32bits(v))
				default:
					file = binary.LittleEndian.AppendUint32(file, math.Float32bits(v))
				}
			}
			if format == "ascii" {
				file = append(file, '\n')
			}
		}
		b.Run(format, func(b *testing.B) {
			var c codec.Cloud
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if err := Decode(&c, file, limit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
