package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/compress/brotli"

	"entropipe/schemas/codec/tfrecord"
	"entropipe/schemas/codec/waymo/waymotest"
)

// writeRecords writes frames of version 1.
func writeRecords(t testing.TB, path string, s *waymotest.Scene, e waymotest.Encoding, frames ...int) {
	t.Helper()
	var file []byte
	for _, frame := range frames {
		file = tfrecord.Append(file, s.Record(frame, e))
	}
	putFile(t, path, file)
}

func putFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// writeSegment writes the components of version 2 below dir, and returns the file of
// component lidar.
func writeSegment(t testing.TB, dir string, s *waymotest.Scene, o waymotest.Files) string {
	t.Helper()
	name := func(component string) string { return filepath.Join(dir, component, s.Context+".parquet") }
	if err := s.WriteFiles(o, func(component string) (io.WriteCloser, error) {
		if err := os.MkdirAll(filepath.Join(dir, component), 0o755); err != nil {
			return nil, err
		}
		return os.Create(name(component))
	}); err != nil {
		t.Fatal(err)
	}
	return name("lidar")
}

// waymoItems reads all items; their columns are copies.
func waymoItems(t testing.TB, w Waymo) (items []Item, skipped int64, err error) {
	t.Helper()
	src, err := w.Open()
	if err != nil {
		return nil, 0, err
	}
	defer src.Close()
	for {
		var it Item
		if err := src.Next(&it); err == io.EOF {
			return items, src.(*waymoSource).Skipped(), nil
		} else if err != nil {
			return items, src.(*waymoSource).Skipped(), err
		}
		for _, column := range []*[]float32{&it.Cloud.Cloud32.X, &it.Cloud.Cloud32.Y, &it.Cloud.Cloud32.Z} {
			*column = slices.Clone(*column)
		}
		it.Cloud.Laser, it.Cloud.Return = slices.Clone(it.Cloud.Laser), slices.Clone(it.Cloud.Return)
		if it.Pose != nil {
			pose := *it.Pose
			it.Pose = &pose
		}
		items = append(items, it)
	}
}

// summary tells where an item comes from.
func summary(items []Item) (all []string) {
	for _, it := range items {
		all = append(all, fmt.Sprintf("%s/%s %d", it.Sequence, it.Sensor, it.Number))
	}
	return all
}

// Frames of either version have the names, times, poses and points of the scene.
func TestWaymoVersionsGiveTheSameItems(t *testing.T) {
	s := waymotest.New(16)
	dir := t.TempDir()
	writeRecords(t, filepath.Join(dir, "v1", "segment-"+s.Context+"_with_camera_labels.tfrecord"), s,
		waymotest.Encoding{},
		0, 1, 2)
	o := waymotest.Files{Frames: 3, GroupRows: 4, Shuffle: true, Codec: &brotli.Codec{}}
	lidar := writeSegment(t, filepath.Join(dir, "v2", "training"), s, o)
	first, _, err := waymoItems(t, Waymo{Paths: []string{filepath.Join(dir, "v1")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{s.Context + "/all 0", s.Context + "/all 1", s.Context + "/all 2"}
	if !slices.Equal(summary(first), want) {
		t.Fatalf("version 1: %q, want %q", summary(first), want)
	}
	for _, path := range []string{filepath.Join(dir, "v2"), filepath.Join(dir, "v2", "training"), lidar,
		filepath.Dir(lidar)} {
		second, _, err := waymoItems(t, Waymo{Paths: []string{path}})
		if err != nil || !slices.Equal(summary(second), want) {
			t.Fatalf("%s: %q, %v; want %q", path, summary(second), err, want)
		}
		for frame := range first {
			compareItems(t, &first[frame], &second[frame], func(laser, echo int32) bool {
				return o.HasReturn(frame, int(laser), int(echo))
			})
		}
	}
}

// compareItems compares frames of the versions, to 1e-3 m. in tells which points version 2
// has.
func compareItems(t *testing.T, first, second *Item, in func(laser, echo int32) bool) {
	t.Helper()
	if first.Dataset != "waymo" || first.TimeNs != second.TimeNs || first.Clock != UTC || second.Clock != UTC ||
		first.Pose == nil || *first.Pose != *second.Pose {
		t.Errorf("frame %d: dataset %s, times %d and %d, poses %v and %v", first.Number, first.Dataset, first.TimeNs,
			second.TimeNs, first.Pose, second.Pose)
	}
	k := 0
	for i := range first.Cloud.Len() {
		if !in(first.Cloud.Laser[i], first.Cloud.Return[i]) {
			continue
		}
		a, b := first.Cloud.Cloud32, second.Cloud.Cloud32
		if k >= second.Cloud.Len() || math.Abs(float64(a.X[i]-b.X[k])) > 1e-3 ||
			math.Abs(float64(a.Y[i]-b.Y[k])) > 1e-3 ||
			math.Abs(float64(a.Z[i]-b.Z[k])) > 1e-3 {
			t.Errorf("frame %d: point %d differs", first.Number, i)
			return
		}
		k++
	}
	if k != second.Cloud.Len() || k == 0 {
		t.Errorf("frame %d: %d points in version 1, %d in version 2", first.Number, k, second.Cloud.Len())
	}
}

// Lasers and returns are selected, by name, and become items of their own on request. What
// a frame lacks is logged once.
func TestWaymoSelectsLasersAndReturns(t *testing.T) {
	s := waymotest.New(32)
	path := filepath.Join(t.TempDir(), "a.tfrecord")
	writeRecords(t, path, s, waymotest.Encoding{Without: map[int]bool{2: true}, Empty: map[int]bool{5: true}}, 0, 1)
	for _, test := range []struct {
		w    Waymo
		want string // each frame's
	}{
		{Waymo{}, "all 1 3 4"},
		{Waymo{PerLaser: true}, "top 1|side_left 3|side_right 4"},
		{Waymo{Lasers: []string{"TOP", "side_left"}}, "all 1 3"},
		{Waymo{Lasers: []string{"top"}, Returns: []int{2}}, "top 1"},
		{Waymo{Lasers: []string{"front"}}, "front"},
		{Waymo{Lasers: []string{"front", "top"}, PerLaser: true}, "top 1"},
	} {
		var log bytes.Buffer
		test.w.Paths, test.w.Log = []string{path}, slog.New(slog.NewTextHandler(&log, nil))
		items, _, err := waymoItems(t, test.w)
		if err != nil {
			t.Fatal(err)
		}
		frames := make([][]string, 2)
		for _, it := range items {
			text := it.Sensor
			for _, laser := range slices.Compact(slices.Clone(it.Cloud.Laser)) {
				text += fmt.Sprintf(" %d", laser)
			}
			for _, echo := range it.Cloud.Return {
				if test.w.Returns != nil && int(echo) != test.w.Returns[0] {
					t.Errorf("%+v: there is a return %d", test.w, echo)
				}
			}
			text = strings.ReplaceAll(text, " 1 1", " 1") // first and second returns
			frames[it.Number] = append(frames[it.Number], text)
		}
		for frame, texts := range frames {
			if got := strings.Join(texts, "|"); got != test.want {
				t.Errorf("lasers %v, returns %v, per laser %v, frame %d: %q, want %q", test.w.Lasers, test.w.Returns,
					test.w.PerLaser, frame, got, test.want)
			}
		}
		lines := strings.Count(log.String(), "without laser front") + strings.Count(log.String(),
			"range image of laser rear")
		want := 0
		if test.w.Lasers == nil {
			want = 2
		} else if slices.Contains(test.w.Lasers, "front") {
			want = 1
		}
		if lines != want {
			t.Errorf("lasers %v: %d lines, want %d: %s", test.w.Lasers, lines, want, log.String())
		}
	}
}

// A damaged record stops, or costs its frame; a file that ends within a record costs the
// rest of the file. The error names file, record and offset.
func TestWaymoSkipsBadRecords(t *testing.T) {
	s := waymotest.New(64)
	dir := t.TempDir()
	good := filepath.Join(dir, "b.tfrecord")
	writeRecords(t, good, s, waymotest.Encoding{}, 0, 1, 2)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	record := len(tfrecord.Append(nil, s.Record(0, waymotest.Encoding{})))
	flipped, length := bytes.Clone(data), bytes.Clone(data)
	flipped[record+100] ^= 4
	length[record] ^= 4
	scenario := append(bytes.Clone(data[:record]), tfrecord.Append(nil, []byte{9, 0, 0, 0, 0, 0, 0, 0, 0})...)
	for _, test := range []struct {
		name, says string
		file       []byte
		numbers    []int64
	}{
		{"flipped bit", fmt.Sprintf("record 1: the checksum of its %d bytes does not match (at byte %d)",
			len(s.Record(1, waymotest.Encoding{})), record), flipped, []int64{0, 2, 3, 4, 5}},
		{"length", "record 1: the checksum of its length", length, []int64{0, 1, 2, 3}},
		{"cut", "record 2: the file ends", data[:len(data)-1], []int64{0, 1, 2, 3, 4}},
		{"motion record", fmt.Sprintf("record 1, at byte %d: the record is a scenario", record), scenario,
			[]int64{0, 1, 2, 3}},
	} {
		bad := filepath.Join(dir, "a.tfrecord")
		putFile(t, bad, test.file)
		_, _, err := waymoItems(t, Waymo{Paths: []string{dir}})
		if err == nil || !strings.Contains(err.Error(), bad+": "+test.says) || !strings.Contains(err.Error(),
			"--skip-bad") {
			t.Errorf("%s: %v, want %q", test.name, err, test.says)
		}
		items, skipped, err := waymoItems(t, Waymo{Paths: []string{dir}, SkipBad: true})
		var numbers []int64
		for _, it := range items {
			numbers = append(numbers, it.Number)
		}
		if err != nil || skipped != 1 || !slices.Equal(numbers, test.numbers) {
			t.Errorf("%s: frames %d, %d skipped, %v; want frames %d", test.name, numbers, skipped, err, test.numbers)
		}
	}
}

// Paths that hold no segment are refused with what is expected there.
func TestWaymoRefusesPaths(t *testing.T) {
	dir := t.TempDir()
	s := waymotest.New(64)
	lidar := writeSegment(t, dir, s, waymotest.Files{Frames: 1})
	putFile(t, filepath.Join(dir, "scan.pcd"), []byte("# .PCD v0.7 - Point Cloud Data file format\n"))
	putFile(t, filepath.Join(dir, "text"), []byte("some text that is long enough"))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		w    Waymo
		says string
	}{
		{Waymo{}, "no file"},
		{Waymo{Paths: []string{filepath.Join(dir, "nothing")}}, "no such file"},
		{Waymo{Paths: []string{filepath.Join(dir, "empty")}}, "neither a .tfrecord file nor a folder lidar"},
		{Waymo{Paths: []string{filepath.Join(dir, "scan.pcd")}}, "is a PCD file"},
		{Waymo{Paths: []string{filepath.Join(dir, "text")}}, "checksum of its first length"},
		{Waymo{Paths: []string{filepath.Join(dir, "vehicle_pose", s.Context+".parquet")}}, "in folder lidar"},
		{Waymo{Paths: []string{lidar}, Lasers: []string{"left"}}, `laser "left"`},
		{Waymo{Paths: []string{lidar}, Returns: []int{3}}, "return 3"},
	} {
		if _, err := test.w.Open(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v, want %q", test.w, err, test.says)
		}
	}
	if err := os.Remove(filepath.Join(dir, "lidar_calibration", s.Context+".parquet")); err != nil {
		t.Fatal(err)
	}
	_, _, err := waymoItems(t, Waymo{Paths: []string{dir}})
	var bad *BadInputError
	if !errors.As(err, &bad) || bad.File != lidar || !strings.Contains(bad.Detail, "component lidar_calibration") {
		t.Errorf("without calibration: %v", err)
	}
}

// A second pass gives the same items, and skips what the first one named.
func TestWaymoRewinds(t *testing.T) {
	s := waymotest.New(64)
	dir := t.TempDir()
	writeRecords(t, filepath.Join(dir, "a.tfrecord"), s, waymotest.Encoding{}, 0, 1)
	putFile(t, filepath.Join(dir, "b.tfrecord"), []byte("short"))
	writeSegment(t, filepath.Join(dir, "v2"), s, waymotest.Files{Frames: 2})
	src, err := Waymo{Paths: []string{dir, filepath.Join(dir, "v2")}, SkipBad: true}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var passes [2][]string
	for pass := range passes {
		var it Item
		for err = src.Next(&it); err == nil; err = src.Next(&it) {
			passes[pass] = append(passes[pass], fmt.Sprint(summary([]Item{it}), it.TimeNs, it.Cloud.Len()))
			if pass == 0 && len(passes[0]) == 5 {
				t.Fatal("more items than frames")
			}
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(passes[0], passes[1]) || len(passes[0]) != 4 || src.(*waymoSource).Skipped() != 1 {
		t.Errorf("passes %q, %d skipped", passes, src.(*waymoSource).Skipped())
	}
}

// The published record of the motion data set is refused by name, and the folder of vehicle
// poses alone is no segment.
func TestWaymoOfPublishedFiles(t *testing.T) {
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	root = filepath.Join(root, "waymo")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	_, _, err := waymoItems(t, Waymo{Paths: []string{filepath.Join(root, "testdata")}})
	if err == nil || !strings.Contains(err.Error(), "motion data set") {
		t.Errorf("the motion record: %v", err)
	}
	_, _, err = waymoItems(t, Waymo{Paths: []string{filepath.Join(root, "v2_parquet")}})
	if err == nil || !strings.Contains(err.Error(), "folder lidar") {
		t.Errorf("vehicle poses alone: %v", err)
	}
}
