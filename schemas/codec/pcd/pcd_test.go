package pcd

import (
	"bytes"
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

// head returns a header for n points with the given fields.
func head(fields, size, kind, count string, n int, data string) string {
	return fmt.Sprintf("# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS %s\nSIZE %s\nTYPE %s\nCOUNT "+
		"%s\n"+
		"WIDTH %d\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %d\nDATA %s\n", fields, size, kind, count, n, n, data)
}

// compress is a plain compressor of LZF: it takes the nearest earlier match.
func compress(src []byte) []byte {
	var dst []byte
	literal := func(b []byte) {
		for len(b) > 0 {
			n := min(len(b), maxLiteral)
			dst = append(append(dst, byte(n-1)), b[:n]...)
			b = b[n:]
		}
	}
	begin := 0
	for at := 0; at < len(src); {
		best, back := 0, 0
		for d := 1; d <= min(at, 1<<13) && best < 64; d++ {
			n := 0
			for at+n < len(src) && n < maxRun && src[at+n] == src[at+n-d] {
				n++
			}
			if n > best {
				best, back = n, d
			}
		}
		if best < 3 {
			at++
			continue
		}
		literal(src[begin:at])
		n, d := best-2, back-1
		if n < 7 {
			dst = append(dst, byte(n<<5|d>>8), byte(d))
		} else {
			dst = append(dst, byte(7<<5|d>>8), byte(n-7), byte(d))
		}
		at += best
		begin = at
	}
	literal(src[begin:])
	return dst
}

// wide is a point of every type, with a field of two values and padding.
const (
	wideFields = "x y z intensity ring label _ normal rgb huge small"
	wideSize   = "8 8 8 4 2 4 1 4 4 8 1"
	wideType   = "F F F F U I U F F U I"
	wideCount  = "1 1 1 1 1 1 3 2 1 1 1"
)

// wideFile returns n points in the named encoding.
func wideFile(n int, encoding string) []byte {
	le := binary.LittleEndian
	var lines strings.Builder
	columns := make([][]byte, 11)
	var records []byte
	for i := range n {
		v := float64(i)
		rgb := uint32(0x010203 + i)
		var f [11][]byte
		for k, x := range []float64{v + 1./3, -v, math.Inf(1)} {
			f[k] = le.AppendUint64(nil, math.Float64bits(x))
		}
		f[3] = le.AppendUint32(nil, math.Float32bits(float32(i)/7))
		f[4] = le.AppendUint16(nil, uint16(60000+i))
		f[5] = le.AppendUint32(nil, uint32(-i))
		f[6] = []byte{1, 2, 3}
		f[7] = le.AppendUint32(le.AppendUint32(nil, math.Float32bits(0.5)), math.Float32bits(0.25))
		f[8] = le.AppendUint32(nil, rgb)
		f[9] = le.AppendUint64(nil, math.MaxUint64)
		f[10] = []byte{0xff}
		for k := range f {
			columns[k] = append(columns[k], f[k]...)
			records = append(records, f[k]...)
		}
		fmt.Fprintf(&lines, "%v %v inf %v %d %d 1 2 3 0.5 0.25 %v %d -1\n", v+1./3, -v, float32(i)/7, 60000+i, -i,
			math.Float32frombits(rgb), uint64(math.MaxUint64))
	}
	text := []byte(head(wideFields, wideSize, wideType, wideCount, n, encoding))
	switch encoding {
	case "ascii":
		return append(text, lines.String()...)
	case "binary":
		return append(text, records...)
	}
	raw := bytes.Join(columns, nil)
	packed := compress(raw)
	text = le.AppendUint32(le.AppendUint32(text, uint32(len(packed))), uint32(len(raw)))
	return append(text, packed...)
}

func TestDecodeReadsEveryEncoding(t *testing.T) {
	for _, encoding := range []string{"ascii", "binary", "binary_compressed"} {
		for _, n := range []int{0, 1, 3, 200} {
			name := fmt.Sprintf("%s, %d points", encoding, n)
			var c codec.Cloud
			if err := Decode(&c, wideFile(n, encoding), limit); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !c.Double || c.Len() != n || !c.HasZ() {
				t.Errorf("%s: got %d points, float64 %v, z %v", name, c.Len(), c.Double, c.HasZ())
				continue
			}
			if want := []string{"normal", "huge", "small"}; !slices.Equal(c.Ignored, want) {
				t.Errorf("%s: ignored are %q, want %q", name, c.Ignored, want)
			}
			for i := range n {
				got := fmt.Sprint(c.Cloud64.X[i], c.Cloud64.Y[i], c.Cloud64.Z[i], c.Intensity[i], c.Ring[i], c.Label[i],
					c.Red[i], c.Green[i], c.Blue[i])
				rgb := 0x010203 + i
				want := fmt.Sprint(float64(i)+1./3, -float64(i), math.Inf(1), float32(i)/7, 60000+i, -i, rgb>>16,
					rgb>>8&255, rgb&255)
				if got != want {
					t.Fatalf("%s: point %d is %s, want %s", name, i, got, want)
				}
			}
		}
	}
}

func TestDecodeReadsHeaders(t *testing.T) {
	const xy = "FIELDS x y\nSIZE 4 4\nTYPE F F\n"
	point := func(f ...float32) string {
		var b []byte
		for _, v := range f {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return string(b)
	}
	for _, test := range []struct {
		name, file string
		x, y       []float32
		ignored    []string
	}{
		{"version 0.5 without COUNT and VIEWPOINT",
			"VERSION .5\n" + xy + "WIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA ascii\n1 2\n",
			[]float32{1}, []float32{2}, nil},
		{"without POINTS", "VERSION 0.6\n" + xy + "WIDTH 1\nHEIGHT 2\nDATA ascii\n1 2\n3 4", []float32{1, 3},
			[]float32{2, 4}, nil},
		{"without WIDTH and HEIGHT", "VERSION 0.7\n" + xy + "POINTS 1\nDATA ascii\n1 2\n", []float32{1},
			[]float32{2}, nil},
		{"COLUMNS", "COLUMNS x y\nSIZE 4 4\nTYPE F F\nWIDTH 1\nDATA ascii\n1 2\n", []float32{1}, []float32{2}, nil},
		{"tabs, commas, blank lines, comments", "VERSION 0.7\n" + xy +
			"WIDTH 3\nDATA ascii\n1\t2\n\n3,4\n# end\n 5 , 6 \n",
			[]float32{1, 3, 5}, []float32{2, 4, 6}, nil},
		{"lines of DOS", "VERSION 0.7\r\nFIELDS x y\r\nSIZE 4 4\r\nTYPE F F\r\nWIDTH 1\r\nDATA ascii\r\n1 2\r\n",
			[]float32{1}, []float32{2}, nil},
		{"NaN", "VERSION 0.7\n" + xy + "WIDTH 2\nDATA ascii\nnan -nan\nNaN 1e99\n",
			[]float32{float32(math.NaN()), float32(math.NaN())}, []float32{float32(math.NaN()), float32(math.Inf(1))},
			nil},
		{"padding after the points", "VERSION 0.7\n" + xy + "WIDTH 1\nDATA binary\n" + point(1, 2) + "\x00\x00\x00",
			[]float32{1}, []float32{2}, []string{"3 bytes after the points"}},
		{"two names of one column", "VERSION 0.7\nFIELDS x y i intensity\nSIZE 4 4 4 4\nTYPE F F F F\nWIDTH 1\n" +
			"DATA ascii\n1 2 3 4\n", []float32{1}, []float32{2}, []string{"i"}},
		{"no point", "VERSION 0.7\n" + xy + "WIDTH 0\nHEIGHT 1\nPOINTS 0\nDATA binary_compressed\n", []float32{},
			[]float32{}, nil},
	} {
		var c codec.Cloud
		if err := Decode(&c, []byte(test.file), limit); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if !same(c.Cloud32.X, test.x) || !same(c.Cloud32.Y, test.y) || !slices.Equal(c.Ignored, test.ignored) {
			t.Errorf("%s: got %v, %v, ignored %q; want %v, %v, %q", test.name, c.Cloud32.X,
				c.Cloud32.Y, c.Ignored, test.x,
				test.y, test.ignored)
		}
	}
}

// same compares floats, all NaN alike.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return a == b || a != a && b != b })
}

func TestDecodeReadsViewpoint(t *testing.T) {
	file := func(view string) []byte {
		return []byte("VERSION 0.7\nFIELDS x y\nSIZE 4 4\nTYPE F F\nWIDTH 1\nVIEWPOINT " + view + "\nDATA ascii\n1 2\n")
	}
	for _, test := range []struct {
		view string
		want *codec.Pose
	}{
		{"0 0 0 1 0 0 0", nil},
		{"0 0 0 0 0 0 0", nil},
		{"0 0 0 nan 0 0 0", nil},
		{"inf 0 0 1 0 0 0", nil},
		{"1 2 3 1 0 0 0", &codec.Pose{1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 3}},
		{"0 0 0 0 1 0 0", &codec.Pose{1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0}},
		{"5 0 0 2 0 0 2", &codec.Pose{0, -1, 0, 5, 1, 0, 0, 0, 0, 0, 1, 0}},
	} {
		var c codec.Cloud
		if err := Decode(&c, file(test.view), limit); err != nil {
			t.Errorf("VIEWPOINT %s: %v", test.view, err)
			continue
		}
		if (c.Pose == nil) != (test.want == nil) {
			t.Errorf("VIEWPOINT %s: pose %v, want %v", test.view, c.Pose, test.want)
			continue
		}
		for i := 0; c.Pose != nil && i < len(c.Pose); i++ {
			if math.Abs(c.Pose[i]-test.want[i]) > 1e-15 {
				t.Errorf("VIEWPOINT %s: pose %v, want %v", test.view, *c.Pose, *test.want)
				break
			}
		}
	}
	if err := Decode(&codec.Cloud{}, file("1 2 3"), limit); err == nil {
		t.Error("VIEWPOINT of three numbers: no error")
	}
}

func TestDecodeRefuses(t *testing.T) {
	const begin = "VERSION 0.7\nFIELDS x y\nSIZE 4 4\nTYPE F F\n"
	for _, test := range []struct{ name, file, reason, detail string }{
		{"nothing", "", codec.Empty, "no byte"},
		{"Draco", "DRACO\x02\x02", codec.WrongMagic, "this is a Draco file"},
		{"numbers without a header", "1 2 3\n", codec.WrongMagic, "no PCD file"},
		{"no DATA", begin + "WIDTH 1\n", codec.Truncated, "DATA"},
		{"no FIELDS", "VERSION 0.7\nSIZE 4\nTYPE F\nWIDTH 1\nDATA ascii\n", codec.Corrupt, "names no fields"},
		{"no SIZE", "VERSION 0.7\nFIELDS x y\nTYPE F F\nWIDTH 1\nDATA ascii\n1 2\n", codec.Corrupt, "no line SIZE"},
		{"too few types", "VERSION 0.7\nFIELDS x y\nSIZE 4 4\nTYPE F\nWIDTH 1\nDATA ascii\n1 2\n",
			codec.Corrupt, "TYPE has 1"},
		{"two WIDTH", begin + "WIDTH 1\nWIDTH 2\nDATA ascii\n1 2\n", codec.Corrupt, "two lines WIDTH"},
		{"unknown encoding", begin + "WIDTH 1\nDATA binary_zstd\n", codec.Unsupported, "binary_zstd"},
		{"two words of DATA", begin + "WIDTH 1\nDATA ascii binary\n", codec.Corrupt, "2 words"},
		{"F of 2 bytes", "VERSION 0.7\nFIELDS x y\nSIZE 2 2\nTYPE F F\nWIDTH 1\nDATA ascii\n1 2\n",
			codec.BadType, "SIZE 2"},
		{"TYPE D", "VERSION 0.7\nFIELDS x y\nSIZE 4 4\nTYPE F D\nWIDTH 1\nDATA ascii\n1 2\n", codec.BadType, "TYPE D"},
		{"SIZE 3", "VERSION 0.7\nFIELDS x y\nSIZE 4 3\nTYPE F U\nWIDTH 1\nDATA ascii\n1 2\n", codec.BadType, "SIZE 3"},
		{"SIZE 9", "VERSION 0.7\nFIELDS x y\nSIZE 4 9\nTYPE F F\nWIDTH 1\nDATA ascii\n1 2\n", codec.BadType, "SIZE 9"},
		{"COUNT -1", begin + "COUNT 1 -1\nWIDTH 1\nDATA ascii\n1 2\n", codec.BadLength, "COUNT -1"},
		{"huge COUNT", begin + "COUNT 1 99999999999\nWIDTH 1\nDATA ascii\n1 2\n", codec.BadLength, "COUNT"},
		{"x twice", "VERSION 0.7\nFIELDS x x y\nSIZE 4 4 4\nTYPE F F F\nWIDTH 1\nDATA ascii\n1 2 3\n", codec.Duplicate,
			"two fields x"},
		{"no y", "VERSION 0.7\nFIELDS x z\nSIZE 4 4\nTYPE F F\nWIDTH 1\nDATA ascii\n1 2\n", codec.Missing, "y"},
		{"COUNT 2 of x", begin + "COUNT 2 1\nWIDTH 1\nDATA ascii\n1 2 3\n", codec.Missing, "x"},
		{"POINTS too many", begin + "WIDTH 1\nHEIGHT 1\nPOINTS 2\nDATA ascii\n1 2\n3 4\n", codec.BadLength, "POINTS 2"},
		{"POINTS too few", begin + "WIDTH 2\nHEIGHT 1\nPOINTS 1\nDATA ascii\n1 2\n3 4\n", codec.BadLength, "POINTS 1"},
		{"negative WIDTH", begin + "WIDTH -1\nDATA ascii\n", codec.BadLength, "WIDTH"},
		{"WIDTH times HEIGHT is zero modulo 2^64",
			begin + "WIDTH 2147483647\nHEIGHT 2147483647\nPOINTS 0\nDATA ascii\n",
			codec.BadLength, "POINTS 0"},
		{"binary without data", begin + "WIDTH 2147483647\nDATA binary\n", codec.Truncated, "POINTS 2147483647"},
		{"ascii without data", begin + "WIDTH 2147483647\nDATA ascii\n", codec.Truncated, "POINTS 2147483647"},
		{"a line too few", begin + "WIDTH 3\nDATA ascii\n1.5 2.5\n1.5 2.5\n", codec.Truncated, "2 lines"},
		{"a line too many", begin + "WIDTH 1\nDATA ascii\n1 2\n3 4\n", codec.BadLength, "line 8"},
		{"a word", begin + "WIDTH 1\nDATA ascii\n1 two\n", codec.BadValue, "line 7"},
		{"three numbers", begin + "WIDTH 1\nDATA ascii\n1 2 3\n", codec.BadValue, "line 7"},
		{"a ring of -1", "VERSION 0.7\nFIELDS x y ring\nSIZE 4 4 1\nTYPE F F U\nWIDTH 1\nDATA ascii\n1 2 -1\n",
			codec.BadValue, "line 7"},
		{"compressed sizes cut", begin + "WIDTH 1\nDATA binary_compressed\n\x01\x00", codec.Truncated, "two sizes"},
		{"compressed data cut", begin + "WIDTH 1\nDATA binary_compressed\n\x09\x00\x00\x00\x08\x00\x00\x00\x07",
			codec.Truncated, "9 bytes"},
		{"unpacked size lies", begin + "WIDTH 1\nDATA binary_compressed\n\x01\x00\x00\x00\x09\x00\x00\x00\x07",
			codec.BadLength, "9 bytes"},
		{"bomb", begin + "WIDTH 1000000\nDATA binary_compressed\n\x01\x00\x00\x00\x00\x12\x7a\x00\x07", codec.Corrupt,
			"cannot hold"},
		{"reference to before the data", begin +
			"WIDTH 1\nDATA binary_compressed\n\x02\x00\x00\x00\x08\x00\x00\x00\xc0\x00",
			codec.Corrupt, "damaged"},
		{"too large", begin + "WIDTH 2097152\nDATA binary\n" + strings.Repeat("\x00", 1<<24), codec.TooLarge, "limit"},
		{"header without end", "VERSION 0.7\n" + strings.Repeat("# comment\n", 10000), codec.Corrupt, "65536"},
		{"integer beyond float64", "VERSION 0.7\nFIELDS x y\nSIZE 8 8\nTYPE I I\nWIDTH 1\nDATA ascii\n" +
			"9007199254740993 2\n", codec.BadValue, "float64"},
	} {
		err := Decode(&codec.Cloud{}, []byte(test.file), limit)
		var e *codec.Error
		if !errors.As(err, &e) || e.Reason != test.reason || !strings.Contains(e.Detail, test.detail) {
			t.Errorf("%s: %v, want %s with %q", test.name, err, test.reason, test.detail)
		}
	}
}

// A file that ends early is an error, or, in text, has all its points: digits may be cut
// off the last one.
func TestDecodeOfTruncated(t *testing.T) {
	for _, encoding := range []string{"ascii", "binary", "binary_compressed"} {
		file := wideFile(3, encoding)
		for n := range len(file) {
			var c codec.Cloud
			err := Decode(&c, file[:n:n], limit)
			if err == nil && (encoding != "ascii" || c.Len() != 3) {
				t.Errorf("%s: the first %d of %d bytes are %d points without an error", encoding, n, len(file), c.Len())
			}
		}
	}
}

// Runs of every length and distance, and runs that repeat themselves, are unpacked.
func TestUnpackLZF(t *testing.T) {
	var src []byte
	for i := range 3000 {
		src = append(src, bytes.Repeat([]byte{byte(i), byte(i >> 8), byte(i % 7)}[:i%3+1], i%300)...)
	}
	packed := compress(src)
	got := make([]byte, len(src))
	if at := unpackLZF(got, packed); at >= 0 || !bytes.Equal(got, src) {
		t.Fatalf("fault at %d of %d bytes, equal %v", at, len(packed), bytes.Equal(got, src))
	}
	if at := unpackLZF(make([]byte, len(src)+1), packed); at != len(packed) {
		t.Errorf("a byte too few: fault at %d, want %d", at, len(packed))
	}
	if at := unpackLZF(make([]byte, len(src)-1), packed); at < 0 {
		t.Error("a byte too many: no fault")
	}
}

func TestDecodeOfDamaged(t *testing.T) {
	for _, encoding := range []string{"ascii", "binary", "binary_compressed"} {
		codectest.Flips(t, Decode, wideFile(2, encoding), 1<<20)
	}
}

func FuzzPCD(f *testing.F) {
	for _, encoding := range []string{"ascii", "binary", "binary_compressed"} {
		f.Add(wideFile(3, encoding))
	}
	f.Add([]byte("VERSION .5\nFIELDS x y\nSIZE 4 4\nTYPE F F\nWIDTH 1\nDATA ascii\n1 2\n"))
	f.Fuzz(func(t *testing.T, value []byte) { codectest.Check(t, Decode, value, 1<<20) })
}

func BenchmarkDecode(b *testing.B) {
	const n = 120_000
	var records, columns []byte
	for i := range n {
		for k := range 4 {
			records = binary.LittleEndian.AppendUint32(records, math.Float32bits(float32((i*7919+k)%80000)/1000))
		}
	}
	for k := range 4 {
		for i := range n {
			columns = append(columns, records[16*i+4*k:][:4]...)
		}
	}
	packed := compress(columns[:len(columns)/8])
	for _, bench := range []struct {
		encoding string
		n        int
		data     []byte
	}{
		{"binary", n, records},
		{"binary_compressed", n / 8, append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil,
			uint32(len(packed))), n*2), packed...)},
	} {
		file := append([]byte(head("x y z intensity", "4 4 4 4", "F F F F", "1 1 1 1", bench.n, bench.encoding)),
			bench.data...)
		b.Run(bench.encoding, func(b *testing.B) {
			var c codec.Cloud
			b.SetBytes(int64(bench.n * 16))
			for b.Loop() {
				if err := Decode(&c, file, limit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
