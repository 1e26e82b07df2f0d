package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file returns a file's bytes: the header's length, the header, the data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i+1))
	}
	return b
}

func open(b []byte) (*File, error) {
	return New("m.safetensors", bytes.NewReader(b), int64(len(b)))
}

const oneTensor = `{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`

// Each kind of damage is one error that names the file and what is wrong.
func TestDamagedFilesAreRefused(t *testing.T) {
	length := func(n uint64, rest string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, n), rest...)
	}
	two := func(a, b string) string {
		return fmt.Sprintf(
			`{"a":{"dtype":"U8","shape":[4],"data_offsets":%s},"b":{"dtype":"U8","shape":[4],"data_offsets":%s}}`, a, b)
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "0 bytes are no safetensors file"},
		{"seven bytes", make([]byte, 7), "7 bytes are no"},
		{"pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"), "git lfs pull"},
		{"header of 2^63", length(1<<63, "{}"), "claims 9223372036854775808 bytes, more than"},
		{"header of 2^64-1", length(math.MaxUint64, "{}"), "more than the 100000000"},
		{"header beyond the file", length(100, "{}"), "the file has 2 after the length: truncated"},
		{"header of nothing", length(0, ""), "must begin with {"},
		{"white space first", file(` {}`, 0), "must begin with {"},
		{"not JSON", file(`{a}`, 0), `byte 1 of the header: 'a' where '"' is due`},
		{"truncated JSON", file(`{"a":{"dtype":"U8"`, 0), "ends where '}' is due"},
		{"truncated string", file(`{"a`, 0), "ends within a string"},
		{"two values", file(`{}{}`, 0), `'{' after the end`},
		{"not UTF-8", file("{\"\xff\":{}}", 0), "not UTF-8"},
		{"half a character", file(`{"\ud800":{}}`, 0), "half a character"},
		{"half a character and a letter", file(`{"\ud800\u0041":{}}`, 0), "half a character"},
		{"bad escape", file(`{"\x":{}}`, 0), `a backslash before 'x'`},
		{"bad digits", file(`{"\u00g0":{}}`, 0), "hexadecimal"},
		{"control character", file("{\"a\nb\":{}}", 0), "control character"},
		{"deep", file(`{"a":`+strings.Repeat("[", 1<<20), 0), `tensor "a": byte 5 of the header: '[' where '{' is due`},
		{"deep shape", file(`{"a":{"shape":`+strings.Repeat("[", 1<<20), 0), "a whole number is due"},
		{"duplicate name",
			file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), `"a" twice`},
		{"duplicate field", file(`{"a":{"dtype":"U8","dtype":"U8"}}`, 0), `"dtype" twice`},
		{"duplicate metadata", file(`{"__metadata__":{"a":"1","a":"2"}}`, 0), `"a" twice`},
		{"two metadata", file(`{"__metadata__":{},"__metadata__":{}}`, 0), `"__metadata__" twice`},
		{"metadata a number", file(`{"__metadata__":{"a":1}}`, 0), `__metadata__: "a" is not a string`},
		{"metadata an object", file(`{"__metadata__":{"a":{}}}`, 0), `"a" is not a string`},
		{"metadata an array", file(`{"__metadata__":[]}`, 0), `'[' where '{' is due`},
		{"null", file(`{"a":null}`, 0), `'n' where '{' is due`},
		{"no type", file(`{"a":{"shape":[4],"data_offsets":[0,4]}}`, 4), "is missing"},
		{"no shape", file(`{"a":{"dtype":"U8","data_offsets":[0,4]}}`, 4), "is missing"},
		{"no offsets", file(`{"a":{"dtype":"U8","shape":[4]}}`, 4), "is missing"},
		{"another field", file(`{"a":{"dtype":"U8","shape":[4],"strides":[1],"data_offsets":[0,4]}}`, 4),
			`not "strides"`},
		{"unknown type", file(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}`, 4), `no type is called "F31"`},
		{"half bytes", file(`{"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}}`, 4), `no type is called "F4"`},
		{"type a number", file(`{"a":{"dtype":4,"shape":[4],"data_offsets":[0,4]}}`, 4), `'4' where '"' is due`},
		{"one offset", file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[4]}}`, 4), "a begin and an end"},
		{"three offsets", file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}}`, 4), "more than 2 numbers"},
		{"end before begin", file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}}`, 4), "a begin and an end"},
		{"beyond the data", file(oneTensor, 3), "ends at byte 4 of the data, which has 3: truncated"},
		{"negative", file(`{"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}}`, 4), "whole number"},
		{"fraction", file(`{"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}}`, 4), `'.' where ']' is due`},
		{"exponent", file(`{"a":{"dtype":"U8","shape":[4e0],"data_offsets":[0,4]}}`, 4), `'e' where ']' is due`},
		{"leading zero", file(`{"a":{"dtype":"U8","shape":[04],"data_offsets":[0,4]}}`, 4), "whole number"},
		{"huge", file(`{"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]}}`, 4), "a number beyond"},
		{"product overflows", file(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, 4),
			"are not the 4 bytes"},
		{"bytes overflow", file(`{"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,4]}}`, 4),
			"are not the 4 bytes"},
		{"too few bytes", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), "are not the 4 bytes"},
		{"too many bytes", file(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}}`, 4), "are not the 4 bytes"},
		{"dimensions", file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("1,", 64)+`1],"data_offsets":[0,1]}}`, 1),
			"more than 64 numbers"},
		{"overlap", file(two("[0,4]", "[3,7]"), 7), `"b" begins at byte 3 of the data, within another`},
		{"the same bytes", file(two("[0,4]", "[0,4]"), 4), "within another"},
		{"gap", file(two("[0,4]", "[5,9]"), 9), "1 bytes before it belong to none"},
		{"gap at the front", file(two("[1,5]", "[5,9]"), 9), `"a" begins at byte 1`},
		{"trailing bytes", file(oneTensor, 7), "3 bytes after the last tensor belong to none"},
		{"data without tensors", file(`{}`, 1), "1 bytes after"},
	} {
		f, err := open(c.file)
		if err == nil || !strings.HasPrefix(err.Error(), "m.safetensors: ") || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, %v, want one line with %q", c.name, f, err, c.want)
		}
	}
}

// What the format leaves open is accepted.
func TestUnusualFilesAreRead(t *testing.T) {
	for _, c := range []struct {
		name, header string
		data         int
		want         []string // names by place
	}{
		{"nothing", `{}`, 0, nil},
		{"padding", oneTensor + "   ", 4, []string{"a"}},
		{"white space", "{ \"a\" :\n{\"shape\":[ 2 , 2 ],\t\"data_offsets\":[0,4], \"dtype\":\"U8\"}}\r\n", 4,
			[]string{"a"}},
		{"no metadata", `{"__metadata__":{}}`, 0, nil},
		{"header in another order than the data",
			`{"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]}}`,
			8, []string{"a", "b"}},
		{"empty tensors",
			`{"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"F64","shape":[0,9223372036854775807],"data_offsets":[0,0]},"c":{"dtype":"F64","shape":[3,0],"data_offsets":[4,4]}}`, 4, []string{"a", "b", "c"}},
		{"names", `{"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\ud83d\ude00 \"\\\/\b\f\n\r\té":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0, []string{"", "😀 \"\\/\b\f\n\r\té"}},
	} {
		f, err := open(file(c.header, c.data))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var names []string
		for _, x := range f.Tensors() {
			names = append(names, x.Name)
			if again, ok := f.Lookup(x.Name); !ok || again.start != x.start {
				t.Errorf("%s: Lookup(%q) finds %v, %v", c.name, x.Name, again, ok)
			}
		}
		if diff := cmp.Diff(c.want, names); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if _, ok := f.Lookup("stranger"); ok {
			t.Errorf("%s: found a tensor that is not there", c.name)
		}
	}
}

// every is one array of each type, with values at its borders.
func every() []Array {
	return []Array{
		{"f64", "", []int{4}, []float64{math.Inf(-1), 5e-324, math.Pi, math.MaxFloat64}},
		{"f32", "", []int{2, 2}, []float32{float32(math.Inf(1)), 1e-45, -0.5, math.MaxFloat32}},
		{"f16", F16, []int{3}, []byte{0x00, 0x3c, 0x01, 0x80, 0xff, 0x7b}}, // 1, -2^-24, 65504
		{"bf16", BF16, []int{2}, []byte{0x80, 0x3f, 0x49, 0xc0}},           // 1, -3.140625
		{"i64", "", []int{2}, []int64{math.MinInt64, math.MaxInt64}},
		{"i32", "", []int{2, 1}, []int32{math.MinInt32, math.MaxInt32}},
		{"i16", "", []int{2}, []int16{math.MinInt16, math.MaxInt16}},
		{"i8", "", []int{2}, []int8{-128, 127}},
		{"u64", "", nil, []uint64{math.MaxInt64}},
		{"u32", "", []int{1}, []uint32{math.MaxUint32}},
		{"u16", "", []int{1}, []uint16{math.MaxUint16}},
		{"u8", "", []int{3}, []uint8{0, 1, 255}},
		{"bool", "", []int{2}, []bool{false, true}},
		{"f8", F8E4M3, []int{1}, []byte{0x38}},
		{"c64", C64, []int{1}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
		{"none", "", []int{3, 0}, []float32{}},
	}
}

// What is written is read back: values, shapes, metadata; and each tensor
// stands at a multiple of its type's size.
func TestValuesOfEveryType(t *testing.T) {
	metadata := map[string]string{"format": "test/1", "text": "<&> \" \\ \u2028 é 😀\x00"}
	path := filepath.Join(t.TempDir(), "every.safetensors")
	if err := WriteFile(path, metadata, every()); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if diff := cmp.Diff(metadata, f.Metadata()); diff != "" {
		t.Error("metadata:", diff)
	}
	floats := map[string][]float64{"f64": {math.Inf(-1), 5e-324, math.Pi, math.MaxFloat64},
		"f32": {math.Inf(1), 0x1p-149, -0.5, math.MaxFloat32},
		"f16": {1, -0x1p-24, 65504}, "bf16": {1, -3.140625}, "none": nil}
	integers := map[string][]int64{"i64": {math.MinInt64, math.MaxInt64}, "i32": {math.MinInt32, math.MaxInt32},
		"i16": {math.MinInt16, math.MaxInt16}, "i8": {-128, 127},
		"u64": {math.MaxInt64}, "u32": {math.MaxUint32}, "u16": {math.MaxUint16}, "u8": {0, 1, 255}, "bool": {0, 1}}
	for _, x := range f.Tensors() {
		if x.start%int64(x.DType.Size()) != 0 {
			t.Errorf("%s begins at byte %d", x.Name, x.start)
		}
		f64, err64 := x.Float64s(nil)
		i64, errInt := x.Int64s(nil)
		want, isFloat := floats[x.Name]
		wantInt, isInt := integers[x.Name]
		if isFloat != (err64 == nil) || !slices.Equal(f64, want) {
			t.Errorf("%s: Float64s: %v, %v, want %v", x.Name, f64, err64, want)
		}
		if isInt != (errInt == nil) || !slices.Equal(i64, wantInt) {
			t.Errorf("%s: Int64s: %v, %v, want %v", x.Name, i64, errInt, wantInt)
		}
		f32, err32 := x.Float32s([]float32{7})
		if (isFloat && x.DType != F64) != (err32 == nil) || f32[0] != 7 || err32 == nil && len(f32) != 1+len(want) {
			t.Errorf("%s: Float32s: %v, %v", x.Name, f32, err32)
		}
		for i, v := range f32[1:] {
			if float64(v) != want[i] {
				t.Errorf("%s: value %d is %v, want %v", x.Name, i, v, want[i])
			}
		}
		if raw, err := io.ReadAll(x.Bytes()); err != nil || len(raw) != x.Len()*x.DType.Size() {
			t.Errorf("%s: %d bytes, %v", x.Name, len(raw), err)
		}
	}
}

func TestLargeTensorsAreReadInPieces(t *testing.T) {
	values := make([]float32, 3*pieceSize/4+5)
	half := make([]byte, 2*(pieceSize+3))
	for i := range values {
		values[i] = float32(i)
	}
	for i := range pieceSize + 3 {
		binary.LittleEndian.PutUint16(half[2*i:], uint16(i))
	}
	var b bytes.Buffer
	if err := Write(&b, nil, []Array{{"a", "", []int{len(values)}, values},
		{"h", BF16, []int{pieceSize + 3}, half}}); err != nil {
		t.Fatal(err)
	}
	f, err := open(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x, _ := f.Lookup("a")
	if got, err := x.Float32s(nil); err != nil || !slices.Equal(got, values) {
		t.Errorf("%d values, %v", len(got), err)
	}
	h, _ := f.Lookup("h")
	got, err := h.Float32s(nil)
	if err != nil || len(got) != pieceSize+3 {
		t.Fatalf("%d values, %v", len(got), err)
	}
	for i, v := range got {
		if math.Float32bits(v) != uint32(uint16(i))<<16 {
			t.Fatalf("value %d is %v", i, v)
		}
	}
}

// A file that has shrunk since it was opened is an error, and dst is as it was.
func TestReadingATruncatedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := WriteFile(path, nil, []Array{{"a", "", []int{4}, []float32{1, 2, 3, 4}}}); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	x, _ := f.Lookup("a")
	if got, err := x.Float32s([]float32{9}); err == nil ||
		!strings.Contains(err.Error(), `m.safetensors: tensor "a": unexpected EOF`) || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := Open(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}

func TestNumbersBeyondInt64(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, nil, []Array{{"a", "", []int{2}, []uint64{1, 1 << 63}}}); err != nil {
		t.Fatal(err)
	}
	f, err := open(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Tensors()[0].Int64s([]int64{7}); err == nil || !slices.Equal(got, []int64{7}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// Every half is the number that its bits mean.
func TestHalfsAreWidenedExactly(t *testing.T) {
	for h := range 1 << 16 {
		exponent, fraction := h>>10&31, float64(h&1023)
		want := math.Ldexp(1024+fraction, exponent-25)
		switch exponent {
		case 0:
			want = math.Ldexp(fraction, -24)
		case 31:
			want = math.Inf(1)
			if fraction > 0 {
				want = math.NaN()
			}
		}
		if h>>15 == 1 {
			want = -want
		}
		got := float64(fromHalf(uint16(h)))
		if got != want && !(got != got && want != want) || math.Signbit(got) != (h>>15 == 1) {
			t.Errorf("%#04x is %v, want %v", h, got, want)
		}
	}
}

// Whatever is accepted is consistent, and written again it is the same.
func FuzzOpen(f *testing.F) {
	var all bytes.Buffer
	if err := Write(&all, map[string]string{"format": "x/1"}, every()); err != nil {
		f.Fatal(err)
	}
	n := 8 + binary.LittleEndian.Uint64(all.Bytes())
	f.Add(all.Bytes()[8:n], all.Bytes()[n:])
	f.Add([]byte(oneTensor), make([]byte, 4))
	f.Add([]byte(
		`{"b":{"dtype":"I16","shape":[2],"data_offsets":[1,5]},"a":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}}`),
		make([]byte, 5))
	f.Add([]byte(`{"\ud83d\ude00":{"dtype":"U8","shape":[0,7],"data_offsets":[0,0]}}`), []byte{})
	f.Fuzz(func(t *testing.T, header, data []byte) {
		b := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header, data)
		first, err := open(b)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, first.Metadata(), arraysOf(t, first, len(b))); err != nil {
			t.Fatalf("%q is read and cannot be written: %v", b, err)
		}
		second, err := open(again.Bytes())
		if err != nil {
			t.Fatalf("%q was written as %q: %v", b, again.Bytes(), err)
		}
		byName := cmp.Transformer("byName", func(all []Array) map[string]Array {
			m := map[string]Array{}
			for _, a := range all {
				m[a.Name] = a
			}
			return m
		})
		if diff := cmp.Diff(arraysOf(t, first, len(b)), arraysOf(t, second, len(b)), byName); diff != "" {
			t.Fatalf("%q: %s", b, diff)
		}
		if diff := cmp.Diff(first.Metadata(), second.Metadata()); diff != "" {
			t.Fatalf("%q: %s", b, diff)
		}
	})
}

// arraysOf reads every tensor in every way; their bytes are at most those of
// the file.
func arraysOf(t *testing.T, f *File, size int) []Array {
	var arrays []Array
	for _, x := range f.Tensors() {
		raw, err := io.ReadAll(x.Bytes())
		if size -= len(raw); err != nil || size < 0 || len(raw) != x.Len()*x.DType.Size() {
			t.Fatalf("%q: %d bytes of %v: %v", x.Name, len(raw), x, err)
		}
		f32, err32 := x.Float32s(nil)
		f64, err64 := x.Float64s(nil)
		i64, _ := x.Int64s(nil)
		if err32 == nil && len(f32) != x.Len() || err64 == nil && len(f64) != x.Len() ||
			len(i64) != 0 && len(i64) != x.Len() {
			t.Fatalf("%q: %d, %d and %d values of %v", x.Name, len(f32), len(f64), len(i64), x)
		}
		arrays = append(arrays, Array{x.Name, x.DType, slices.Clone(x.Shape), raw})
	}
	return arrays
}

// A header of any number of tensors is read in time and memory that grow as it
// does, and one of a senseless number is refused.
func TestManyTensors(t *testing.T) {
	header := func(n int) []byte {
		var b bytes.Buffer
		b.WriteString("{")
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"t%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i*7919%n)
		}
		b.WriteString("}")
		return append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.Bytes()...)
	}
	reserved := func(n int) uint64 {
		data := header(n)
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(sample)
		before := sample[0].Value.Uint64()
		f, err := New("many", bytes.NewReader(data), int64(len(data)))
		if err != nil || len(f.Tensors()) != n {
			t.Fatalf("%d tensors: %v", n, err)
		}
		metrics.Read(sample)
		return sample[0].Value.Uint64() - before
	}
	if one, eight := reserved(10_000), reserved(80_000); eight > 12*one {
		t.Errorf("10,000 tensors take %d bytes, 80,000 take %d", one, eight)
	}
	if testing.Short() {
		t.Skip("not short: a million tensors")
	}
	data := header(maxTensors + 1)
	if _, err := New("many", bytes.NewReader(data), int64(len(data))); err == nil ||
		!strings.Contains(err.Error(), "more than 1048576 tensors") {
		t.Errorf("%d tensors: %v", maxTensors+1, err)
	}
}
