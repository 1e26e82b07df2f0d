package las

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/codectest"
)

const limit = 1 << 24

// survey describes a file of LAS.
type survey struct {
	minor, format int
	n             int
	extra         int // bytes of extra bytes a point
	vlrs          []vlr
	adjusted      bool
	firstTime     float64
	change        func(file []byte)
}

type vlr struct {
	user string
	id   uint16
	data []byte
}

var le = binary.LittleEndian

// file returns the survey as bytes. Point i has x = i, y = -i, z = i² in hundredths, plus
// the offsets 1000, 2000 and 0.
func (s survey) file() []byte {
	size := []int{227, 227, 227, 235, 375}[s.minor]
	b := make([]byte, size)
	copy(b, "LASF")
	if s.adjusted {
		b[6] = 1
	}
	b[24], b[25] = 1, byte(s.minor)
	copy(b[26:], "test")
	le.PutUint16(b[94:], uint16(size))
	le.PutUint32(b[100:], uint32(len(s.vlrs)))
	for i, v := range []float64{0.01, 0.01, 0.01, 1000, 2000, 0} {
		le.PutUint64(b[131+8*i:], math.Float64bits(v))
	}
	for _, v := range s.vlrs {
		head := make([]byte, vlrHeader)
		copy(head[2:], v.user)
		le.PutUint16(head[18:], v.id)
		le.PutUint16(head[20:], uint16(len(v.data)))
		b = append(append(b, head...), v.data...)
	}
	le.PutUint32(b[96:], uint32(len(b)))
	record := layouts[s.format].size + s.extra
	b[104] = byte(s.format)
	le.PutUint16(b[105:], uint16(record))
	if s.minor == 4 {
		le.PutUint64(b[247:], uint64(s.n))
	}
	if s.minor < 4 || s.format < 6 {
		le.PutUint32(b[107:], uint32(s.n))
	}
	for i := range s.n {
		b = append(b, s.point(i, record)...)
	}
	if s.change != nil {
		s.change(b)
	}
	return b
}

func (s survey) point(i, record int) []byte {
	p := make([]byte, record)
	le.PutUint32(p, uint32(i))
	le.PutUint32(p[4:], uint32(-i))
	le.PutUint32(p[8:], uint32(i*i))
	le.PutUint16(p[12:], uint16(65000+i))
	l := &layouts[s.format]
	if l.old {
		p[14] = byte(i%5+1) | 5<<3 | 1<<6
		p[15] = byte(i%32) | 0xe0
	} else {
		p[14] = byte(i%15+1) | 15<<4
		p[15] = byte(i%4)<<4 | 0xcf
		p[16] = byte(i)
	}
	if l.gps > 0 {
		le.PutUint64(p[l.gps:], math.Float64bits(s.firstTime+float64(i)/4))
	}
	if l.colour > 0 {
		for k := range 3 {
			le.PutUint16(p[l.colour+2*k:], uint16(i*1000+k))
		}
	}
	return p
}

func TestDecodeReadsEveryFormat(t *testing.T) {
	for format, l := range layouts {
		for minor := range 5 {
			if minor < 4 && format >= 6 || minor < 3 && format >= 4 || minor < 2 && format >= 2 {
				continue
			}
			for _, n := range []int{0, 1, 50} {
				name := fmt.Sprintf("LAS 1.%d, format %d, %d points", minor, format, n)
				var c codec.Cloud
				if err := Decode(&c, survey{minor: minor, format: format, n: n, firstTime: 7}.file(),
					limit); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if c.Len() != n || !c.Double || !c.HasZ() || (c.Laser != nil) != (format >= 6) || c.HasTime ||
					(c.TOffsetNs != nil) != (l.gps > 0) || (c.Red != nil) != (l.colour > 0) {
					t.Errorf("%s: got %d points, columns %+v", name, c.Len(), c.Extra)
					continue
				}
				for i := range n {
					got, want := row(&c, i), wantRow(format, i)
					if got != want {
						t.Fatalf("%s: point %d is %s, want %s", name, i, got, want)
					}
				}
			}
		}
	}
}

func row(c *codec.Cloud, i int) string {
	text := fmt.Sprint(c.Cloud64.X[i], c.Cloud64.Y[i], c.Cloud64.Z[i], c.Intensity[i], c.Return[i], c.Label[i])
	if c.Laser != nil {
		text += fmt.Sprint(" laser ", c.Laser[i])
	}
	if c.TOffsetNs != nil {
		text += fmt.Sprint(" after ", c.TOffsetNs[i])
	}
	if c.Red != nil {
		text += fmt.Sprint(" colour ", c.Red[i], c.Green[i], c.Blue[i])
	}
	return text
}

func wantRow(format, i int) string {
	hundredth := 0.01
	v := float64(i)
	text := fmt.Sprint(float64(v*hundredth)+1000, float64(-v*hundredth)+2000, float64(v*v*hundredth), float32(65000+i))
	l := &layouts[format]
	if l.old {
		text += fmt.Sprint(" ", i%5+1, i%32)
	} else {
		text += fmt.Sprint(" ", i%15+1, i, " laser ", i%4)
	}
	if l.gps > 0 {
		text += fmt.Sprint(" after ", int64(i)*250_000_000)
	}
	if l.colour > 0 {
		text += fmt.Sprint(" colour ", i*1000, i*1000+1, i*1000+2)
	}
	return text
}

// description describes extra bytes.
func description(kind, options byte, name string) []byte {
	b := make([]byte, extraBytes)
	b[2], b[3] = kind, options
	copy(b[4:36], name)
	return b
}

func TestDecodeNamesWhatItIgnores(t *testing.T) {
	more := slices.Concat(description(9, 0, "Amplitude"), description(0, 3, "Blob"), description(13, 0, "Normal"))
	for _, test := range []struct {
		name string
		s    survey
		want []string
	}{
		{"none", survey{minor: 2, format: 0, n: 1}, oldNames},
		{"extra bytes of all names", survey{minor: 4, format: 6, n: 1, extra: 4 + 3 + 4,
			vlrs: []vlr{{"other", 4, make([]byte, 192)}, {"LASF_Spec", 4, more}}},
			with(newNames, "Amplitude", "Blob", "Normal")},
		{"extra bytes without names", survey{minor: 2, format: 1, n: 1, extra: 7}, with(oldNames, "extra bytes")},
		{"more extra bytes than names", survey{minor: 4, format: 7, n: 1, extra: 5,
			vlrs: []vlr{{"LASF_Spec", 4, more[:192]}}}, with(newNames, "Amplitude", "extra bytes")},
		{"count of records that lies", survey{minor: 2, format: 0, n: 2, extra: 4,
			vlrs:   []vlr{{"LASF_Spec", 4, more[:192]}},
			change: func(b []byte) { le.PutUint32(b[100:], math.MaxUint32) }}, with(oldNames, "Amplitude")},
		{"record that lies about its length", survey{minor: 2, format: 0, n: 2, extra: 4,
			vlrs:   []vlr{{"LASF_Spec", 4, more[:192]}},
			change: func(b []byte) { le.PutUint16(b[227+20:], math.MaxUint16) }}, with(oldNames, "extra bytes")},
		{"count of records that is zero", survey{minor: 2, format: 0, n: 2, extra: 4,
			vlrs:   []vlr{{"LASF_Spec", 4, more[:192]}},
			change: func(b []byte) { le.PutUint32(b[100:], 0) }}, with(oldNames, "extra bytes")},
	} {
		var c codec.Cloud
		if err := Decode(&c, test.s.file(), limit); err != nil || !slices.Equal(c.Ignored, test.want) ||
			c.Len() != test.s.n {
			t.Errorf("%s: %d points, ignored %q (%v), want %d, %q", test.name, c.Len(), c.Ignored, err,
				test.s.n, test.want)
		}
	}
}

func TestDecodeReadsTimes(t *testing.T) {
	put := func(at int, v float64) func([]byte) {
		return func(b []byte) { le.PutUint64(b[227+28*at+20:], math.Float64bits(v)) }
	}
	for _, test := range []struct {
		name  string
		s     survey
		first int64 // nanoseconds since 1970; 0: no time
		want  []int64
	}{
		{"seconds of a week", survey{firstTime: 400000}, 0, []int64{0, 250e6, 500e6}},
		{"a date", survey{firstTime: 300000000.5, adjusted: true},
			time.Date(2021, 3, 17, 7, 6, 22, 5e8, time.UTC).UnixNano(), []int64{0, 250e6, 500e6}},
		{"first time is NaN", survey{firstTime: 5, change: put(0, math.NaN())}, 0, []int64{codec.NoInt64, 0, 250e6}},
		{"a time is NaN", survey{firstTime: 5, change: put(1, math.NaN())}, 0, []int64{0, codec.NoInt64, 500e6}},
		{"a time is infinite", survey{firstTime: 5, adjusted: true, change: put(1, math.Inf(-1))},
			unixNs(5), []int64{0, codec.NoInt64, 500e6}},
		{"times run backwards", survey{firstTime: 5, change: put(1, 3)}, 0, []int64{0, -2e9, 500e6}},
		{"first time is 0", survey{adjusted: true}, 0, []int64{0, 250e6, 500e6}},
	} {
		s := test.s
		s.minor, s.format, s.n = 2, 1, 3
		var c codec.Cloud
		if err := Decode(&c, s.file(), limit); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if !slices.Equal(c.TOffsetNs, test.want) || c.HasTime != (test.first != 0) || c.TimeNs != test.first {
			t.Errorf("%s: time %d (%v), offsets %d; want %d, %d", test.name, c.TimeNs, c.HasTime,
				c.TOffsetNs, test.first,
				test.want)
		}
	}
}

// GPS time began with 1980-01-06 and knows no leap seconds.
func TestUnixNs(t *testing.T) {
	date := func(y int, m time.Month, d int) int64 { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() }
	for _, test := range []struct {
		gps  float64 // seconds since 1980-01-06
		want int64   // seconds since 1970
	}{
		{0, date(1980, 1, 6)},
		{1, date(1980, 1, 6) + 1},
		{46828799, date(1981, 7, 1) - 1},
		{46828800, date(1981, 7, 1)}, // the leap second
		{46828801, date(1981, 7, 1)},
		{46828802, date(1981, 7, 1) + 1},
		{1167264016, date(2017, 1, 1) - 1},
		{1167264017, date(2017, 1, 1)}, // the leap second
		{1167264018, date(2017, 1, 1)},
		{1300000000, 1300000000 + 315964800 - 18},
	} {
		if got := unixNs(test.gps - 1e9); got != test.want*1e9 {
			t.Errorf("GPS second %.0f is %d ns since 1970, want %d s", test.gps, got, test.want)
		}
	}
	if got, want := unixNs(300000000.25), int64(1300000000+315964800-18)*1e9+25e7; got != want {
		t.Errorf("a quarter of a second: %d, want %d", got, want)
	}
}

func TestDecodeReadsCounts(t *testing.T) {
	count := func(old uint32, wide uint64) func([]byte) {
		return func(b []byte) {
			le.PutUint32(b[107:], old)
			le.PutUint64(b[247:], wide)
		}
	}
	for _, test := range []struct {
		name      string
		old       uint32
		wide      uint64
		n         int
		reason    string
		atLeast14 bool
	}{
		{"both", 3, 3, 3, "", true},
		{"only of 64 bits", 0, 3, 3, "", true},
		{"only of 32 bits", 3, 0, 3, "", true},
		{"fewer than there are", 2, 2, 2, "", true},
		{"none", 0, 0, 0, "", true},
		{"more than there are", 4, 4, 0, codec.Truncated, true},
		{"2^64-1", 0, math.MaxUint64, 0, codec.Truncated, true},
		{"two numbers", 3, 2, 0, codec.BadLength, true},
	} {
		var c codec.Cloud
		err := Decode(&c, survey{minor: 4, format: 6, n: 3, change: count(test.old, test.wide)}.file(), limit)
		var e *codec.Error
		if test.reason == "" && (err != nil || c.Len() != test.n) ||
			test.reason != "" && (!errors.As(err, &e) || e.Reason != test.reason) {
			t.Errorf("%s: %d points, %v; want %d points, reason %q", test.name, c.Len(), err, test.n, test.reason)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	put16 := func(at int, v uint16) func([]byte) { return func(b []byte) { le.PutUint16(b[at:], v) } }
	put32 := func(at int, v uint32) func([]byte) { return func(b []byte) { le.PutUint32(b[at:], v) } }
	put64 := func(at int, v float64) func([]byte) {
		return func(b []byte) { le.PutUint64(b[at:], math.Float64bits(v)) }
	}
	for _, test := range []struct {
		name           string
		change         func([]byte)
		reason, detail string
	}{
		{"LAZ", func(b []byte) { b[104] |= 0x80 }, codec.Unsupported, "laszip -i in.laz -o out.las"},
		{"LAZ of another kind", func(b []byte) { b[104] |= 0x40 }, codec.Unsupported, "pdal translate in.laz out.las"},
		{"LAS 2.0", func(b []byte) { b[24] = 2 }, codec.Unsupported, "LAS 2.2"},
		{"LAS 1.5", func(b []byte) { b[25] = 5 }, codec.Unsupported, "LAS 1.5"},
		{"format 11", func(b []byte) { b[104] = 11 }, codec.Unsupported, "format 11"},
		{"short record", put16(105, 27), codec.BadLength, "28 bytes"},
		{"record of no bytes", put16(105, 0), codec.BadLength, "28 bytes"},
		{"short header", put16(94, 100), codec.BadLength, "100 bytes"},
		{"points within the header", put32(96, 100), codec.BadLength, "byte 100"},
		{"points after the file", put32(96, 1e9), codec.Truncated, "1000000000"},
		{"too many points", put32(107, math.MaxUint32), codec.Truncated, "4294967295 points"},
		{"a point too many", put32(107, 4), codec.Truncated, "4 points"},
		{"scale of 0", put64(131, 0), codec.BadValue, "scale of x"},
		{"scale is NaN", put64(139, math.NaN()), codec.BadValue, "scale of y"},
		{"offset is infinite", put64(171, math.Inf(1)), codec.BadValue, "offset of z"},
		{"Draco", func(b []byte) { copy(b, "DRACO") }, codec.WrongMagic, "this is a Draco file"},
	} {
		file := survey{minor: 2, format: 1, n: 3, change: test.change}.file()
		err := Decode(&codec.Cloud{}, file, limit)
		var e *codec.Error
		if !errors.As(err, &e) || e.Reason != test.reason || !strings.Contains(e.Detail, test.detail) {
			t.Errorf("%s: %v, want %s with %q", test.name, err, test.reason, test.detail)
		}
	}
	copc := survey{minor: 4, format: 6, n: 1, vlrs: []vlr{{"copc", 1, make([]byte, 160)}},
		change: func(b []byte) { b[104] |= 0x80 }}.file()
	if err := Decode(&codec.Cloud{}, copc, limit); err == nil || !strings.Contains(err.Error(), "COPC") {
		t.Errorf("COPC: %v, want its name", err)
	}
	var e *codec.Error
	if err := Decode(&codec.Cloud{}, survey{minor: 2, n: 1000}.file(), 1000*35); !errors.As(err, &e) ||
		e.Reason != codec.TooLarge {
		t.Errorf("1000 points of 36 bytes, limit of 35000: %v, want %s", err, codec.TooLarge)
	}
	if err := Decode(&codec.Cloud{}, nil, limit); !errors.As(err, &e) || e.Reason != codec.Empty {
		t.Errorf("no byte: %v, want %s", err, codec.Empty)
	}
}

func TestDecodeOfDamaged(t *testing.T) {
	for _, s := range []survey{
		{minor: 2, format: 3, n: 3, extra: 4, vlrs: []vlr{{"LASF_Spec", 4, description(9, 0, "Amplitude")}}},
		{minor: 4, format: 8, n: 3, adjusted: true, firstTime: 1e8},
	} {
		file := s.file()
		for n := range len(file) {
			if err := codectest.Check(t, Decode, file[:n:n], 1<<16); err == nil {
				t.Errorf("LAS 1.%d: no error for the first %d of %d bytes", s.minor, n, len(file))
			}
		}
		codectest.Flips(t, Decode, file, 1<<16)
	}
}

func FuzzLAS(f *testing.F) {
	for format := range layouts {
		f.Add(survey{minor: 4, format: format, n: 2, extra: 4,
			vlrs: []vlr{{"LASF_Spec", 4, description(9, 0, "Amplitude")}}}.file())
	}
	f.Add(survey{minor: 0, format: 1, n: 2}.file())
	f.Fuzz(func(t *testing.T, value []byte) { codectest.Check(t, Decode, value, 1<<20) })
}

func BenchmarkDecode(b *testing.B) {
	for _, format := range []int{0, 3, 6, 7} {
		file := survey{minor: 4, format: format, n: 120_000}.file()
		b.Run(fmt.Sprint("format ", format), func(b *testing.B) {
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
