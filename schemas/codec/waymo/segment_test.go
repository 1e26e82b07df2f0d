package waymo

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/brotli"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
	"entropipe/schemas/codec/waymo/waymotest"
)

// memory is a component in memory.
type memory struct{ bytes.Buffer }

func (*memory) Close() error { return nil }

// write writes the components of a scene into memory.
func write(t testing.TB, s *waymotest.Scene, o waymotest.Files) map[string][]byte {
	t.Helper()
	files := map[string]*memory{}
	if err := s.WriteFiles(o, func(component string) (io.WriteCloser, error) {
		files[component] = new(memory)
		return files[component], nil
	}); err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for name, m := range files {
		all[name] = m.Bytes()
	}
	return all
}

// components opens files; one that is not there stays nil.
func components(files map[string][]byte) (in Components, err error) {
	in = Components{Lasers: AllLasers, Returns: BothReturns}
	for name, f := range map[string]**parquetfile.File{"lidar": &in.LiDAR, "lidar_calibration": &in.Calibration,
		"lidar_pose": &in.LiDARPose, "vehicle_pose": &in.VehiclePose} {
		if data := files[name]; data != nil {
			if *f, err = parquetfile.Open(bytes.NewReader(data), int64(len(data))); err != nil {
				return in, err
			}
		}
	}
	return in, nil
}

func openSegment(t testing.TB, files map[string][]byte) *Segment {
	t.Helper()
	in, err := components(files)
	if err != nil {
		t.Fatal(err)
	}
	s, fault := OpenSegment(in)
	if fault != nil {
		t.Fatal(fault)
	}
	t.Cleanup(s.Close)
	return s
}

// filePoints returns the points of a frame that component lidar has.
func filePoints(s *waymotest.Scene, o waymotest.Files, frame int) (points []waymotest.Point) {
	for _, p := range scenePoints(s, frame, AllLasers, BothReturns) {
		if o.HasReturn(frame, p.Laser, p.Return) && (o.Without == nil || !o.Without(frame, p.Laser)) {
			points = append(points, p)
		}
	}
	return points
}

// A scene that was encoded to components comes back, in the order of its frames, whatever
// the order of rows, the types and the encodings are.
func TestSegmentGivesTheSceneBack(t *testing.T) {
	s := waymotest.New(16)
	for name, o := range map[string]waymotest.Files{
		"as published":    {Frames: 9, GroupRows: 8, Codec: &brotli.Codec{}, Item: "item"},
		"shuffled":        {Frames: 9, GroupRows: 8, Shuffle: true},
		"one row group":   {Frames: 9, Shuffle: true, Codec: &parquet.Zstd},
		"small pages":     {Frames: 3, GroupRows: 4, PageBytes: 512},
		"other types":     {Frames: 3, GroupRows: 4, Double: true, Names: true},
		"dictionaries":    {Frames: 3, GroupRows: 4, Dictated: true},
		"dictionaries 64": {Frames: 3, GroupRows: 4, Dictated: true, Double: true},
		"pages 2":         {Frames: 3, GroupRows: 4, Version: 2, Codec: &parquet.Snappy},
		"without rows": {Frames: 4, GroupRows: 4, Without: func(frame, laser int) bool {
			return laser == frame || frame == 2 && laser != 5
		}},
	} {
		segment := openSegment(t, write(t, s, o))
		if segment.Len() != o.Frames || segment.Context() != s.Context {
			t.Errorf("%s: %d frames of %s", name, segment.Len(), segment.Context())
		}
		var p Projector
		var c codec.Cloud
		for pass := range 2 {
			for frame := range o.Frames {
				var f Frame
				if err := segment.Next(&f); err != nil {
					t.Fatalf("%s: frame %d: %v", name, frame, err)
				}
				if err := p.Cloud(&c, &f, AllLasers, limit); err != nil {
					t.Fatalf("%s: frame %d: %v", name, frame, err)
				}
				if c.TimeNs != s.Time(frame)*1000 || c.Pose == nil || *c.Pose != codec.Pose(pose(s, frame)) {
					t.Errorf("%s: frame %d: time %d, pose %v", name, frame, c.TimeNs, c.Pose)
				}
				if pass == 0 || frame == 0 {
					checkPoints(t, name, &c, filePoints(s, o, frame))
				}
			}
			if err := segment.Next(new(Frame)); err != io.EOF {
				t.Errorf("%s: behind the last frame: %v", name, err)
			}
			segment.Rewind()
		}
	}
}

// Version 2 gives the points of version 1, to the last bit.
func TestVersionsAgree(t *testing.T) {
	s := waymotest.New(8)
	segment := openSegment(t, write(t, s, waymotest.Files{Frames: 1}))
	var f Frame
	if err := segment.Next(&f); err != nil {
		t.Fatal(err)
	}
	var second codec.Cloud
	if err := new(Projector).Cloud(&second, &f, AllLasers, limit); err != nil {
		t.Fatal(err)
	}
	first, _, err := decode(s.Record(0, waymotest.Encoding{}), AllLasers, BothReturns)
	if err != nil {
		t.Fatal(err)
	}
	if first.Len() != second.Len() || first.Len() == 0 {
		t.Fatalf("%d and %d points", first.Len(), second.Len())
	}
	for _, columns := range [][2][]float32{{first.Cloud32.X, second.Cloud32.X}, {first.Cloud32.Y, second.Cloud32.Y},
		{first.Cloud32.Z, second.Cloud32.Z}, {first.Intensity, second.Intensity}} {
		if !slices.Equal(columns[0], columns[1]) {
			t.Error("the versions give different columns")
		}
	}
}

// Matrices of float32, which a published file has, move points by less than a millimetre.
func TestSegmentReadsNarrowMatrices(t *testing.T) {
	s := waymotest.New(16)
	s.Moving = false
	o := waymotest.Files{Frames: 1, Single: true}
	var f Frame
	if err := openSegment(t, write(t, s, o)).Next(&f); err != nil {
		t.Fatal(err)
	}
	f.Sweeps[Top].Pose = nil // its rounding cancels only against the same matrix
	var c codec.Cloud
	if err := new(Projector).Cloud(&c, &f, AllLasers, limit); err != nil {
		t.Fatal(err)
	}
	for i, p := range filePoints(s, o, 0) {
		if math.Abs(float64(c.Cloud32.X[i])-p.At[0]) > 1e-3 && p.Laser != 1 {
			t.Fatalf("point %d: x is %g, want %g", i, c.Cloud32.X[i], p.At[0])
		}
	}
}

// Without poses the frames come all the same, and TOP is not compensated.
func TestSegmentWithoutPoses(t *testing.T) {
	s := waymotest.New(16)
	files := write(t, s, waymotest.Files{Frames: 2})
	delete(files, "vehicle_pose")
	delete(files, "lidar_pose")
	segment := openSegment(t, files)
	if vehicle, pixels := segment.HasPoses(); vehicle || pixels {
		t.Errorf("poses %v and %v are there", vehicle, pixels)
	}
	var f Frame
	if err := segment.Next(&f); err != nil || f.World != nil || f.Sweeps[Top].Pose != nil ||
		len(f.Sweeps[Top].Returns[0].At) == 0 {
		t.Errorf("frame %+v, %v", f, err)
	}
}

// What cannot be joined is refused with the component and the row.
func TestSegmentRefuses(t *testing.T) {
	s, other := waymotest.New(64), waymotest.New(64)
	other.Context = "another"
	good, foreign := write(t, s, waymotest.Files{Frames: 2}), write(t, other, waymotest.Files{Frames: 2})
	for _, test := range []struct {
		name, says        string
		component, source string
		from              map[string][]byte
	}{
		{"vehicle poses as lidar", "no column [LiDARComponent]", "lidar", "vehicle_pose", good},
		{"lidar as calibration", "no column [LiDARCalibrationComponent]", "lidar_calibration", "lidar", good},
		{"calibration as poses", "component vehicle_pose: there is no column key.frame_timestamp_micros",
			"vehicle_pose",
			"lidar_calibration", good},
		{"poses of another segment", `its segment is "another"`, "vehicle_pose", "vehicle_pose", foreign},
		{"calibration of another segment", `its segment is "another"`, "lidar_calibration", "lidar_calibration",
			foreign},
	} {
		files := map[string][]byte{}
		for name, data := range good {
			files[name] = data
		}
		files[test.component] = test.from[test.source]
		in, err := components(files)
		if err != nil {
			t.Fatal(err)
		}
		if _, fault := OpenSegment(in); fault == nil || !strings.Contains(fault.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.name, fault, test.says)
		}
	}
}

// A file of few bytes that claims many rows reserves no memory for them.
func TestRowsAreBounded(t *testing.T) {
	type row struct {
		Time int64 `parquet:"key.frame_timestamp_micros,dict"`
	}
	for _, rows := range []int{10_000, maxRows + 1} {
		var file bytes.Buffer
		if err := parquet.Write(&file, make([]row, rows)); err != nil {
			t.Fatal(err)
		}
		f, err := parquetfile.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, fault := readKeys(f); fault == nil || fault.Reason != codec.TooLarge {
			t.Errorf("%d rows in %d bytes: %v, want %s", rows, file.Len(), fault, codec.TooLarge)
		}
	}
}

// readAll reads all frames of a segment, whatever happens, and returns the number of points.
func readAll(files map[string][]byte) (points int, err error) {
	in, err := components(files)
	if err != nil {
		return 0, err
	}
	segment, fault := OpenSegment(in)
	if fault != nil {
		return 0, fault
	}
	defer segment.Close()
	var p Projector
	var c codec.Cloud
	for {
		var f Frame
		next := segment.Next(&f)
		if next == io.EOF {
			return points, err
		}
		if next == nil {
			if fault := p.Cloud(&c, &f, AllLasers, limit); fault != nil {
				next = fault
			}
		}
		if next != nil {
			err = next
			continue
		}
		points += c.Len()
	}
}

// Files that end anywhere are errors; files with a flipped bit are frames or errors, and
// never a panic.
func TestSegmentOfDamagedFiles(t *testing.T) {
	s := waymotest.New(64)
	good := write(t, s, waymotest.Files{Frames: 2, GroupRows: 6, Codec: &brotli.Codec{}})
	if points, err := readAll(good); err != nil || points == 0 {
		t.Fatalf("%d points, %v", points, err)
	}
	for _, name := range waymotest.Components {
		files := map[string][]byte{}
		for other, data := range good {
			files[other] = data
		}
		step := max(1, len(good[name])/100)
		for n := 0; n < len(good[name]); n += step {
			files[name] = good[name][:n]
			if _, err := readAll(files); err == nil {
				t.Errorf("%s of %d bytes is read", name, n)
			}
		}
		for i := range 200 {
			flipped := bytes.Clone(good[name])
			bit := i * (8*len(flipped) - 1) / 200
			flipped[bit/8] ^= 1 << (bit % 8)
			files[name] = flipped
			readAll(files)
		}
	}
}

// Damaged pages cost the frames of their row group, and no others.
func TestSegmentGoesOnBehindDamagedPages(t *testing.T) {
	s := waymotest.New(16)
	files := write(t, s, waymotest.Files{Frames: 4, GroupRows: 5})
	in, err := components(files)
	if err != nil {
		t.Fatal(err)
	}
	column, fault := needColumn(in.LiDAR, "[LiDARComponent].range_image_return1.values", true, parquet.Float)
	if fault != nil {
		t.Fatal(fault)
	}
	at := in.LiDAR.Metadata().RowGroups[1].Columns[column.index].MetaData.DataPageOffset
	files["lidar"][at] ^= 0x55
	segment := openSegment(t, files)
	for frame := range 4 {
		err := segment.Next(new(Frame))
		if (err != nil) != (frame == 1) {
			t.Errorf("frame %d: %v", frame, err)
		}
		if frame == 1 && (err == nil || !strings.Contains(err.Error(), "component lidar: row 5, column")) {
			t.Errorf("frame 1: %v", err)
		}
	}
}

// Images beyond the budget are read again, and give the same frames.
func TestStockReadsRowsAgain(t *testing.T) {
	s := waymotest.New(32)
	o := waymotest.Files{Frames: 12, Shuffle: true, PageBytes: 4096}
	segment := openSegment(t, write(t, s, o))
	for _, images := range segment.images {
		images.budget = 40 << 10
	}
	segment.poses.budget = 1
	most := int64(0)
	var p Projector
	var c codec.Cloud
	for frame := range o.Frames {
		var f Frame
		if err := segment.Next(&f); err != nil {
			t.Fatal(err)
		}
		if err := p.Cloud(&c, &f, AllLasers, limit); err != nil {
			t.Fatal(err)
		}
		checkPoints(t, "small budget", &c, filePoints(s, o, frame))
		most = max(most, segment.images[0].bytes)
	}
	if most == 0 || most > 200<<10 {
		t.Errorf("at most %d bytes were held", most)
	}
	if held := len(segment.images[0].held); held > 5 {
		t.Errorf("%d images are held at the end", held)
	}
}

func FuzzSegment(f *testing.F) {
	s := waymotest.New(64)
	files := write(f, s, waymotest.Files{Frames: 1, Codec: &brotli.Codec{}})
	for i, name := range waymotest.Components {
		f.Add(i, files[name])
	}
	f.Fuzz(func(t *testing.T, component int, data []byte) {
		changed := map[string][]byte{}
		for name, data := range files {
			changed[name] = data
		}
		changed[waymotest.Components[uint(component)%4]] = data
		readAll(changed)
	})
}

// The published file of vehicle poses has 199 frames, 100 ms apart.
func TestSegmentReadsPublishedPoses(t *testing.T) {
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	const name = "10023947602400723454_1120_000_1140_000"
	data, err := os.ReadFile(filepath.Join(root, "waymo", "v2_parquet", "vehicle_pose", name+".parquet"))
	if err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	file, err := parquetfile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	keys, context, fault := readKeys(file)
	if fault != nil {
		t.Fatal(fault)
	}
	var s Segment
	if fault := s.openVehiclePose(file); fault != nil {
		t.Fatal(fault)
	}
	if len(s.worlds) != 199 || context != name {
		t.Errorf("%d poses of %s", len(s.worlds), context)
	}
	for i, k := range keys {
		world := s.worlds[k.micros]
		if fault := world.rigid("pose"); fault != nil {
			t.Errorf("row %d: %v", i, fault)
		}
		if i > 0 && (k.micros-keys[i-1].micros < 99_905 || k.micros-keys[i-1].micros > 100_099) {
			t.Errorf("row %d is %d us behind the row before", i, k.micros-keys[i-1].micros)
		}
	}
}

// BenchmarkSegment measures whole frames of version 2 on one core: brotli, all lasers, both
// returns, poses.
func BenchmarkSegment(b *testing.B) {
	s := waymotest.New(1)
	files := write(b, s, waymotest.Files{Frames: 4, GroupRows: 256, Codec: &brotli.Codec{Quality: 4}})
	segment := openSegment(b, files)
	var p Projector
	var c codec.Cloud
	points := 0
	for b.Loop() {
		var f Frame
		err := segment.Next(&f)
		if err == io.EOF {
			segment.Rewind()
			err = segment.Next(&f)
		}
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Cloud(&c, &f, AllLasers, limit); err != nil {
			b.Fatal(err)
		}
		points = c.Len()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
	b.ReportMetric(float64(points), "points")
	b.ReportMetric(float64(len(files["lidar"])+len(files["lidar_pose"]))/4e6, "MB/frame")
}
