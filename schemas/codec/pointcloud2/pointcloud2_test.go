package pointcloud2

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec"
)

// point is a PointField.
type point struct {
	name     string
	offset   uint32
	datatype uint8
	count    uint32
}

// cloud is a PointCloud2 that the tests write.
type cloud struct {
	big           bool // order of CDR
	sec           int32
	nanosec       uint32
	frame         string
	height, width uint32
	fields        []point
	bigData       bool
	step, row     uint32
	data          []byte
	countOfFields uint32 // instead of len(fields), unless 0
	sparse        bool
}

// cdr writes a message as a ROS 2 node does.
func (c *cloud) cdr() []byte {
	var order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	} = binary.LittleEndian
	b := []byte{0, 1, 0, 0}
	if c.big {
		order, b = binary.BigEndian, []byte{0, 0, 0, 0}
	}
	u32 := func(v uint32) {
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		b = order.AppendUint32(b, v)
	}
	text := func(s string) { u32(uint32(len(s) + 1)); b = append(append(b, s...), 0) }
	flag := func(v bool) { b = append(b, map[bool]byte{true: 1}[v]) }
	u32(uint32(c.sec))
	u32(c.nanosec)
	text(c.frame)
	u32(c.height)
	u32(c.width)
	count := uint32(len(c.fields))
	if c.countOfFields > 0 {
		count = c.countOfFields
	}
	u32(count)
	for _, f := range c.fields {
		text(f.name)
		u32(f.offset)
		b = append(b, f.datatype)
		u32(f.count)
	}
	flag(c.bigData)
	u32(c.step)
	u32(c.row)
	u32(uint32(len(c.data)))
	b = append(b, c.data...)
	flag(!c.sparse)
	return b
}

// xyzi are the fields of a KITTI frame.
var xyzi = []point{{"x", 0, 7, 1}, {"y", 4, 7, 1}, {"z", 8, 7, 1}, {"intensity", 12, 7, 1}}

// golden is the KITTI frame of three points that data-formats has.
var golden = []byte("\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x00\x3f" +
	"\x00\x00\xc0\xbf\x00\x00\x00\x00\xa4\x70\xdd\xbf\x00\x00\x00\x00" +
	"\x7b\x14\x46\x42\x10\x58\xb5\x41\x96\x43\x03\x40\xa4\x70\x7d\x3f")

func kitti() cloud {
	return cloud{sec: 1317042145, nanosec: 964389445, frame: "velodyne", height: 1, width: 3, fields: xyzi, step: 16,
		row: 48, data: golden}
}

func TestKITTIFrame(t *testing.T) {
	for _, big := range []bool{false, true} {
		in := kitti()
		in.big = big
		var c codec.Cloud
		if err := Decode(&c, in.cdr(), 1<<20); err != nil {
			t.Fatal(err)
		}
		if c.Sensor != "velodyne" || c.TimeNs != 1317042145964389445 || !c.HasTime || c.Double {
			t.Errorf("%q at %d", c.Sensor, c.TimeNs)
		}
		if diff := cmp.Diff([][]float32{{1, -1.5, 49.52}, {2, 0, 22.668}, {3, -1.73, 2.051}, {0.5, 0, 0.99}},
			[][]float32{c.Cloud32.X, c.Cloud32.Y, c.Cloud32.Z, c.Points.Intensity}); diff != "" {
			t.Error(diff)
		}
	}
}

// ouster writes the fields of an Ouster driver in any order, with padding, in rows that are
// longer than their points, in both orders of bytes.
func ouster(bigCDR, bigData bool) cloud {
	const step, width, height = 48, 3, 2
	row := step*width + 20
	c := cloud{big: bigCDR, bigData: bigData, sec: 7, frame: "os_lidar", height: height, width: width, step: step,
		row: uint32(row), sparse: true, data: make([]byte, row*height), fields: []point{{"ring", 24, 4, 1},
			{"z", 8, 7, 1}, {"y", 4, 7, 1}, {"x", 0, 7, 1}, {"intensity", 16, 7, 1}, {"t", 20, 6, 1},
			{"reflectivity", 26, 4, 1}, {"ambient", 28, 4, 1}, {"range", 32, 6, 1}, {"normal", 36, 7, 3}}}
	var order binary.ByteOrder = binary.LittleEndian
	if bigData {
		order = binary.BigEndian
	}
	for i := range width * height {
		at := c.data[i/width*row+i%width*step:]
		order.PutUint32(at, math.Float32bits(float32(i)))
		order.PutUint32(at[4:], math.Float32bits(float32(i)/3))
		order.PutUint32(at[8:], math.Float32bits(float32(math.NaN())))
		order.PutUint32(at[16:], math.Float32bits(float32(i)*100))
		order.PutUint32(at[20:], uint32(i)*1000)
		order.PutUint16(at[24:], uint16(i%2*127))
	}
	return c
}

func TestOusterFrame(t *testing.T) {
	for _, bigCDR := range []bool{false, true} {
		for _, bigData := range []bool{false, true} {
			in := ouster(bigCDR, bigData)
			var c codec.Cloud
			if err := Decode(&c, in.cdr(), 1<<20); err != nil {
				t.Fatal(err)
			}
			third := make([]float32, 6)
			for i := range third {
				third[i] = float32(i) / 3
			}
			if diff := cmp.Diff([][]float32{{0, 1, 2, 3, 4, 5}, third, {0, 100, 200, 300, 400, 500}},
				[][]float32{c.Cloud32.X, c.Cloud32.Y, c.Points.Intensity}); diff != "" {
				t.Error(diff)
			}
			if !cmp.Equal(c.TOffsetNs, []int64{0, 1000, 2000, 3000, 4000, 5000}) ||
				!cmp.Equal(c.Ring, []int32{0, 127, 0, 127, 0, 127}) || c.Cloud32.Z[3] == c.Cloud32.Z[3] {
				t.Errorf("times %v, rings %v, z %v", c.TOffsetNs, c.Ring, c.Cloud32.Z)
			}
			if !cmp.Equal(c.Ignored, []string{"reflectivity", "ambient", "range", "normal"}) {
				t.Errorf("ignored %v", c.Ignored)
			}
		}
	}
}

func TestEveryTruncation(t *testing.T) {
	for _, in := range []cloud{kitti(), ouster(true, false)} {
		value := in.cdr()
		for n := range len(value) {
			var c codec.Cloud
			var fault *codec.Error
			if err := Decode(&c, value[:n], 1<<20); !errors.As(err, &fault) {
				t.Errorf("%d of %d bytes: %v", n, len(value), err)
			} else if fault.Reason != codec.Truncated && fault.Reason != codec.Empty {
				t.Errorf("%d of %d bytes: %s: %v", n, len(value), fault.Reason, fault)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	change := func(f func(*cloud)) []byte { c := kitti(); f(&c); return c.cdr() }
	fields := func(f ...point) func(*cloud) { return func(c *cloud) { c.fields = f } }
	for _, c := range []struct {
		name, reason, detail string
		value                []byte
		limit                int64
	}{
		{"empty", codec.Empty, "empty", nil, 1 << 20},
		{"XCDR2", codec.Unsupported, "CDR2_LE", append([]byte{0, 7}, make([]byte, 60)...), 1 << 20},
		{"PL_CDR", codec.Unsupported, "PL_CDR_LE", append([]byte{0, 3}, make([]byte, 60)...), 1 << 20},
		{"no CDR", codec.Unsupported, "no encapsulation", []byte("hello, world"), 1 << 20},
		{"many points", codec.BadLength, "rows", change(func(c *cloud) { c.height, c.width = 1<<31, 1<<31 }), 1 << 20},
		{"more points than data", codec.Truncated, "need", change(func(c *cloud) { c.width = 4 }), 1 << 20},
		{"limit", codec.TooLarge, "limit", kittiBytes(), 90},
		{"many fields", codec.Corrupt, "fields", change(func(c *cloud) { c.countOfFields = 1 << 30 }), 1 << 20},
		{"some more fields", codec.Truncated, "ends within", change(func(c *cloud) { c.countOfFields = 4000 }),
			1 << 20},
		{"step 0", codec.BadLength, "0 bytes", change(func(c *cloud) { c.step = 0 }), 1 << 20},
		{"step 2^31", codec.BadLength, "bytes", change(func(c *cloud) { c.step = 1 << 31 }), 1 << 20},
		{"short step", codec.BadLength, "stands at", change(func(c *cloud) { c.step = 15 }), 1 << 20},
		{"short rows", codec.BadLength, "does not fit", change(func(c *cloud) { c.height, c.row = 2, 20 }), 1 << 20},
		{"datatype 9", codec.BadType, "datatype 9", change(fields(point{"x", 0, 9, 1}, point{"y", 4, 7, 1})), 1 << 20},
		{"datatype 0", codec.BadType, "datatype 0", change(fields(point{"x", 0, 0, 1}, point{"y", 4, 7, 1})), 1 << 20},
		{"offset 2^31", codec.BadLength, "stands at", change(fields(point{"x", 1 << 31, 7, 1})), 1 << 20},
		{"two x", codec.Duplicate, "two fields x", change(fields(point{"x", 0, 7, 1}, point{"x", 4, 7, 1},
			point{"y", 8, 7, 1})), 1 << 20},
		{"x of three", codec.Unsupported, "3 values", change(fields(point{"x", 0, 7, 3})), 1 << 20},
		{"no y", codec.Missing, "no field y", change(fields(point{"x", 0, 7, 1})), 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got codec.Cloud
			var fault *codec.Error
			err := Decode(&got, c.value, c.limit)
			if !errors.As(err, &fault) || fault.Reason != c.reason || !strings.Contains(err.Error(), c.detail) {
				t.Errorf("%v", err)
			}
		})
	}
}

func kittiBytes() []byte { c := kitti(); return c.cdr() }

func TestLegalOddities(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*cloud)
		points int
		timed  bool
	}{
		{"no points", func(c *cloud) { c.width, c.data = 0, nil }, 0, true},
		{"no points of no bytes", func(c *cloud) { c.width, c.step, c.data = 0, 0, nil }, 0, true},
		{"no points and no fields", func(c *cloud) { c.width, c.fields, c.data = 0, nil, nil }, 0, true},
		{"no stamp", func(c *cloud) { c.sec, c.nanosec = 0, 0 }, 3, false},
		{"row step 0", func(c *cloud) { c.row = 0 }, 3, true},
		{"wrong row step of one row", func(c *cloud) { c.row = 5 }, 3, true},
		{"count 0", func(c *cloud) { c.fields = []point{{"x", 0, 7, 0}, {"y", 4, 7, 0}} }, 3, true},
		{"a column of points", func(c *cloud) { c.height, c.width, c.row = 3, 1, 16 }, 3, true},
		{"more data", func(c *cloud) { c.data = append(c.data, 1, 2, 3) }, 3, true},
		{"no frame", func(c *cloud) { c.frame = "" }, 3, true},
		{"unknown type of an unknown field", func(c *cloud) { c.fields = append(xyzi[:3:3], point{"q", 99, 77, 9}) },
			3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := kitti()
			c.change(&in)
			got := codec.Cloud{Sensor: "old", TimeNs: 5, HasTime: true}
			if err := Decode(&got, in.cdr(), 1<<20); err != nil {
				t.Fatal(err)
			}
			if got.Len() != c.points || got.HasTime != c.timed || got.Sensor != in.frame || got.Cloud32.X == nil {
				t.Errorf("%d points, time %v, sensor %q", got.Len(), got.HasTime, got.Sensor)
			}
		})
	}
}

func FuzzPointCloud2(f *testing.F) {
	for _, c := range []cloud{kitti(), ouster(false, true), ouster(true, false)} {
		f.Add(c.cdr())
	}
	var c codec.Cloud
	f.Fuzz(func(t *testing.T, value []byte) {
		const limit = 1 << 16
		if err := Decode(&c, value, limit); err != nil {
			var fault *codec.Error
			if !errors.As(err, &fault) {
				t.Fatalf("%T", err)
			}
			return
		}
		if n := c.Len(); int64(n)*8 > limit || len(c.TOffsetNs) != 0 && len(c.TOffsetNs) != n {
			t.Fatalf("%d points, %d times", n, len(c.TOffsetNs))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	in := kitti()
	in.width = 120_000
	in.data = make([]byte, 16*120_000)
	for i := range 120_000 * 4 {
		binary.LittleEndian.PutUint32(in.data[4*i:], math.Float32bits(float32(i)/7))
	}
	value := in.cdr()
	var c codec.Cloud
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if err := Decode(&c, value, 64<<20); err != nil {
			b.Fatal(err)
		}
	}
}
