package waymo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/tfrecord"
	"entropipe/schemas/codec/waymo/waymotest"
)

// decode decodes a record and projects all lasers.
func decode(record []byte, lasers LaserSet, returns ReturnSet) (*codec.Cloud, *Frame, *codec.Error) {
	d := Decoder{Lasers: lasers, Returns: returns}
	var f Frame
	if err := d.Decode(&f, record, limit); err != nil {
		return nil, nil, err
	}
	var p Projector
	c := new(codec.Cloud)
	return c, &f, p.Cloud(c, &f, lasers, limit)
}

// A scene that was encoded to range images comes back, however the message is written.
func TestDecoderGivesTheSceneBack(t *testing.T) {
	s := waymotest.New(4)
	for name, e := range map[string]waymotest.Encoding{
		"as published": {}, "packed": {Packed: true}, "in the old field": {Plain: true},
		"in another order": {Order: []int{4, 1, 5, 2, 3}},
	} {
		c, f, err := decode(s.Record(3, e), AllLasers, BothReturns)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkPoints(t, name, c, scenePoints(s, 3, AllLasers, BothReturns))
		if f.Context != s.Context || c.TimeNs != s.Time(3)*1000 || c.Pose == nil ||
			*c.Pose != codec.Pose(slices.Clone(pose(s, 3))) {
			t.Errorf("%s: context %s, time %d, pose %v", name, f.Context, c.TimeNs, c.Pose)
		}
		if want := []string{"camera_projection", "images", "in_no_label_zone"}; !slices.Equal(c.Ignored, want) {
			t.Errorf("%s: ignored fields are %q, want %q", name, c.Ignored, want)
		}
	}
}

func pose(s *waymotest.Scene, frame int) []float64 {
	m := s.World(frame, 0)
	return m[:12]
}

// Lasers and returns that are not asked for, not listed or empty give no points, and the
// second return of TOP is compensated by the pose image of the first.
func TestDecoderSelects(t *testing.T) {
	s := waymotest.New(8)
	full := waymotest.Encoding{}
	for _, test := range []struct {
		name    string
		e       waymotest.Encoding
		lasers  LaserSet
		returns ReturnSet
		want    LaserSet
	}{
		{"top alone", full, 1 << Top, BothReturns, 1 << Top},
		{"second return of top", full, 1 << Top, 2, 1 << Top},
		{"first return of all", full, AllLasers, 1, AllLasers},
		{"front and rear", full, 1<<Front | 1<<Rear, BothReturns, 1<<Front | 1<<Rear},
		{"without front", waymotest.Encoding{Without: map[int]bool{2: true}}, AllLasers, BothReturns,
			AllLasers &^ (1 << Front)},
		{"empty rear", waymotest.Encoding{Empty: map[int]bool{5: true}}, AllLasers, BothReturns,
			AllLasers &^ (1 << Rear)},
		{"no second return", waymotest.Encoding{Single: true}, AllLasers, 2, 0},
	} {
		c, f, err := decode(s.Record(0, test.e), test.lasers, test.returns)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		checkPoints(t, test.name, c, scenePoints(s, 0, test.want, test.returns))
		if listed := AllLasers; test.e.Without == nil && f.Listed != listed {
			t.Errorf("%s: the frame lists %v", test.name, f.Listed.Each())
		}
	}
}

// One Decoder and one Projector give each frame as fresh ones do.
func TestDecoderIsUsedAgain(t *testing.T) {
	s := waymotest.New(8)
	d := Decoder{Lasers: AllLasers, Returns: BothReturns}
	var p Projector
	var c codec.Cloud
	var f Frame
	for i, e := range []waymotest.Encoding{{}, {Without: map[int]bool{1: true}}, {Single: true}, {Plain: true}} {
		if err := d.Decode(&f, s.Record(i, e), limit); err != nil {
			t.Fatal(err)
		}
		if err := p.Cloud(&c, &f, AllLasers, limit); err != nil {
			t.Fatal(err)
		}
		want, _, err := decode(s.Record(i, e), AllLasers, BothReturns)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Cloud32.X, want.Cloud32.X) || !slices.Equal(c.Return, want.Return) {
			t.Errorf("frame %d differs from that of a fresh decoder", i)
		}
	}
}

func message(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// What cannot be used is refused with the reason, and with the part that is wrong.
func TestDecoderRefuses(t *testing.T) {
	s := waymotest.New(32)
	good := s.Record(0, waymotest.Encoding{})
	laser := func(parts ...[]byte) []byte { return message(5, slices.Concat(parts...)) }
	top := []byte{8, 1}
	for _, test := range []struct {
		name, reason, says string
		record             []byte
	}{
		{"no byte", codec.Missing, "no laser", nil},
		{"motion data", codec.Unsupported, "motion data set",
			protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 1)},
		{"cameras alone", codec.Missing, "camera images", message(4, []byte("\x08\x01"))},
		{"text", codec.Corrupt, "protobuf", []byte("# .PCD v0.7")},
		{"a laser twice", codec.Duplicate, "top twice", slices.Concat(good, laser(top))},
		{"image is no zlib", codec.Corrupt, "does not unpack", laser(top, message(2, message(2, []byte("none"))))},
		{"no calibration", codec.Missing, "no calibration", withoutContext(good)},
		{"pose of 19 values", codec.BadLength, "19 values", append(bytes.Clone(good), message(3, message(1,
			make([]byte, 24)))...)},
		{"laser as a number", codec.BadType, "wire type 0", append(bytes.Clone(good), 5<<3, 1)},
		{"time beyond nanoseconds", codec.BadValue, "time", protowire.AppendVarint(append(bytes.Clone(good), 2<<3),
			1<<60)},
	} {
		_, _, err := decode(test.record, AllLasers, BothReturns)
		if err == nil || err.Reason != test.reason || !strings.Contains(err.Detail, test.says) {
			t.Errorf("%s: %v, want %s with %q", test.name, err, test.reason, test.says)
		}
	}
}

// withoutContext drops field 1.
func withoutContext(record []byte) (out []byte) {
	for len(record) > 0 {
		number, _, n := protowire.ConsumeField(record)
		if number != 1 {
			out = append(out, record[:n]...)
		}
		record = record[n:]
	}
	return out
}

// Shapes and calibrations that contradict the image are errors.
func TestImagesThatLie(t *testing.T) {
	for _, dims := range [][]int{nil, {2, 2}, {2, 2, 2}, {2, -2, -4}, {1 << 30, 1 << 30, 4}, {2, 2, 5}, {4, 1, 4, 1},
		{0, 0, 4}, {-1, 4, 4}} {
		if err := new(Image).set(dims, make([]float32, 16)); err == nil || err.Reason != codec.BadLength {
			t.Errorf("a range image of shape %v with 16 values: %v", dims, err)
		}
	}
	if err := new(PoseImage).set([]int{1, 2, 7}, make([]float32, 14)); err == nil {
		t.Error("a pose image of 7 channels is read")
	}
	identity := Transform{0: 1, 5: 1, 10: 1, 15: 1}
	for name, change := range map[string]func(f *Frame){
		"3 inclinations": func(f *Frame) { f.Calibrations[Front].Inclinations = make([]float64, 3) },
		"a scale":        func(f *Frame) { f.Calibrations[Front].Extrinsic[0] = 2 },
		"no matrix":      func(f *Frame) { f.World = new(Transform) },
		"small poses": func(f *Frame) {
			f.World = &identity
			f.Sweeps[Front].Pose = &PoseImage{H: 1, W: 8, Values: make([]float32, 48)}
		},
	} {
		f := golden(identity)
		change(f)
		if err := new(Projector).Cloud(new(codec.Cloud), f, AllLasers, limit); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	err := new(Projector).Cloud(new(codec.Cloud), golden(identity), AllLasers, 100)
	if err == nil || err.Reason != codec.TooLarge {
		t.Errorf("32 points in 100 bytes: %v", err)
	}
}

// A record that ends anywhere, or has a flipped bit, is a frame or an error, never a panic.
func TestDecoderOfDamagedRecords(t *testing.T) {
	record := waymotest.New(64).Record(0, waymotest.Encoding{})
	whole := 0
	for n := range len(record) {
		if _, _, err := decode(record[:n], AllLasers, BothReturns); err == nil {
			whole++ // the fields end here; what follows is a further laser
		}
	}
	if whole > 5 {
		t.Errorf("%d cut records are read; only those that end behind a laser can be", whole)
	}
	for i := 0; i < 8*len(record); i += 3 {
		flipped := bytes.Clone(record)
		flipped[i/8] ^= 1 << (i % 8)
		decode(flipped, AllLasers, BothReturns)
	}
}

// A stream of zlib that unpacks to more than the limit is refused before it is unpacked.
func TestUnpackedBytesAreBounded(t *testing.T) {
	record := waymotest.New(4).Record(0, waymotest.Encoding{})
	d := Decoder{Lasers: AllLasers, Returns: BothReturns}
	err := d.Decode(new(Frame), record, 4096)
	if err == nil || err.Reason != codec.TooLarge || cap(d.plain) > 128<<10 {
		t.Errorf("error %v, %d bytes reserved", err, cap(d.plain))
	}
}

func FuzzDecoder(f *testing.F) {
	s := waymotest.New(64)
	for _, e := range []waymotest.Encoding{{}, {Packed: true}, {Plain: true}} {
		f.Add(s.Record(0, e))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		const limit = 1 << 20
		d := Decoder{Lasers: AllLasers, Returns: BothReturns}
		var frame Frame
		if d.Decode(&frame, record, limit) != nil {
			return
		}
		var p Projector
		var c codec.Cloud
		if p.Cloud(&c, &frame, AllLasers, limit) == nil && c.Len()*pointBytes > limit {
			t.Errorf("%d points within %d bytes", c.Len(), limit)
		}
	})
}

func FuzzRangeImage(f *testing.F) {
	f.Add(2, 3, 4, []byte{0, 0, 128, 63, 0, 0, 0, 65})
	f.Add(1<<20, 1<<20, 1<<24, []byte("12345678"))
	f.Fuzz(func(t *testing.T, h, w, channels int, raw []byte) {
		values := make([]float32, len(raw)/4)
		for i := range values {
			values[i] = float32(int8(raw[4*i]))
		}
		frame := golden(Transform{0: 1, 5: 1, 10: 1, 15: 1})
		image := frame.Sweeps[Front].Returns[0]
		if image.set([]int{h, w, channels}, values) != nil {
			return
		}
		var p Projector
		var c codec.Cloud
		if err := p.Cloud(&c, frame, AllLasers, limit); err != nil || c.Len() > len(values)/3 {
			t.Errorf("%d x %d x %d: %d points of %d values, %v", h, w, channels, c.Len(), len(values), err)
		}
	})
}

// The published record of the motion data set is named, not called damaged.
func TestDecoderNamesPublishedMotionRecord(t *testing.T) {
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	file, err := os.Open(filepath.Join(root, "waymo", "testdata", "motion_data_one_scenario.tfrecord"))
	if err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	defer file.Close()
	record, err := tfrecord.NewReader(file, limit).Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := decode(record, AllLasers, BothReturns); err == nil || err.Reason != codec.Unsupported {
		t.Errorf("%v, want %s", err, codec.Unsupported)
	}
}

// BenchmarkFrame measures a whole frame of version 1 on one core, and its projection alone.
func BenchmarkFrame(b *testing.B) {
	s := waymotest.New(1)
	record := s.Record(0, waymotest.Encoding{})
	d := Decoder{Lasers: AllLasers, Returns: BothReturns}
	var p Projector
	var c codec.Cloud
	var f Frame
	for _, stage := range []string{"decode", "project"} {
		b.Run(fmt.Sprint(stage), func(b *testing.B) {
			for b.Loop() {
				if stage == "decode" || f.Listed == 0 {
					if err := d.Decode(&f, record, limit); err != nil {
						b.Fatal(err)
					}
				}
				if stage == "project" {
					if err := p.Cloud(&c, &f, AllLasers, limit); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
			b.ReportMetric(float64(c.Len()), "points")
		})
	}
}
