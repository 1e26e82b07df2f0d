package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"entropipe/algos/geomtest"
	"entropipe/schemas/codec"
)

// nuScan is a scan of nuScenes of n points; its first x is x.
func nuScan(x float32, n int) []byte {
	var b []byte
	for i := range n {
		for _, v := range []float32{x + float32(i), 2, 3, float32(i % 256), float32(i % 32)} {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// nuSet writes a data set: two scenes of samples and sweeps, a camera, and a scan that is not there.
func nuSet(t testing.TB, root string) {
	table := func(name string, records ...string) {
		text := "[\n" + strings.Join(records, ",\n") + "\n]"
		writeTo(t, []byte(text), root, "v1.0-mini", name)
	}
	table("sensor.json", `{"token": "s1", "channel": "CAM_FRONT", "modality": "camera"}`,
		`{"token": "s2", "channel": "LIDAR_TOP", "modality": "lidar"}`)
	table("calibrated_sensor.json",
		`{"token": "c1", "sensor_token": "s1", "translation": [1, 2, 3], "rotation": [1, 0, 0, 0], "camera_intrinsic": []}`,
		// A quarter turn to the left, and a step up.
		`{"token": "c2", "sensor_token": "s2", "translation": [0, 0, 2], "rotation": [1, 0, 0, 1], "camera_intrinsic": [[1]]}`)
	table("scene.json", `{"token": "a", "name": "scene-0061", "description": "Parked \"truck\" {turns}"}`,
		`{"token": "b", "name": "scene-0103", "description": ""}`)
	table("sample.json", `{"token": "a1", "timestamp": 1, "scene_token": "a"}`,
		`{"token": "b1", "timestamp": 1, "scene_token": "b"}`)
	data := func(token, sample, calibrated, file string, micros int64) string {
		return fmt.Sprintf(`{"token": %q, "sample_token": %q, "ego_pose_token": "e-%s", "calibrated_sensor_token": %q,
"timestamp": %d, "fileformat": "pcd", "is_key_frame": true, "height": 0, "filename": %q, "prev": "", "next": ""}`,
			token, sample, token, calibrated, micros, file)
	}
	table("sample_data.json",
		data("d4", "b1", "c2", "sweeps/LIDAR_TOP/log__LIDAR_TOP__1532402900000000.pcd.bin", 1532402900000000),
		data("d3", "a1", "c2", "samples/LIDAR_TOP/log__LIDAR_TOP__1532402927747951.pcd.bin", 1532402927747951),
		data("d1", "a1", "c1", "samples/CAM_FRONT/log__CAM_FRONT__1.jpg", 1),
		data("d0", "a1", "c2", "sweeps/LIDAR_TOP/gone.pcd.bin", 1532402927600000),
		data("d2", "a1", "c2", "sweeps/LIDAR_TOP/log__LIDAR_TOP__1532402927647951.pcd.bin", 1532402927647951))
	table("ego_pose.json", `{"token": "e-d2", "timestamp": 1, "rotation": [0, 0, 0, 1], "translation": [100, 200, 0]}`,
		`{"token": "e-d1", "timestamp": 1, "rotation": [1, 0, 0, 0], "translation": [0, 0, 0]}`,
		`{"token": "e-d3", "timestamp": 1, "rotation": [2, 0, 0, 0], "translation": [1, 2, 3]}`)
	writeTo(t, nuScan(1, 4), root, "sweeps", "LIDAR_TOP", "log__LIDAR_TOP__1532402927647951.pcd.bin")
	writeTo(t, nuScan(2, 3), root, "samples", "LIDAR_TOP", "log__LIDAR_TOP__1532402927747951.pcd.bin")
	writeTo(t, nuScan(3, 2), root, "sweeps", "LIDAR_TOP", "log__LIDAR_TOP__1532402900000000.pcd.bin")
}

// nuFrame is what a frame of the data set is compared by.
type nuFrame struct {
	sequence, sensor string
	number, timeNs   int64
	clock            Clock
	points           int
	x                float32
}

func nuFrames(items []Item) (all []nuFrame) {
	for _, it := range items {
		f := nuFrame{it.Sequence, it.Sensor, it.Number, it.TimeNs, it.Clock, it.Cloud.Len(), -1}
		if f.points > 0 {
			f.x = it.Cloud.Cloud32.X[0]
		}
		all = append(all, f)
	}
	return all
}

func TestNuScenesWithTables(t *testing.T) {
	root := t.TempDir()
	nuSet(t, root)
	for _, path := range []string{root, filepath.Join(root, "v1.0-mini")} {
		log, book := logBook()
		items := all(t, open(t, NuScenes{Paths: []string{path}, Log: log}))
		want := []nuFrame{{"scene-0061", "LIDAR_TOP", 1, 1532402927647951000, UTC, 4, 1},
			{"scene-0061", "LIDAR_TOP", 2, 1532402927747951000, UTC, 3, 2},
			{"scene-0103", "LIDAR_TOP", 0, 1532402900000000000, UTC, 2, 3}}
		if got := nuFrames(items); !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", path, got, want)
		}
		// The sensor is a quarter turn to the left, the vehicle half a turn: x of the sensor is -y
		// of the world.
		checkPose(t, items[0].Pose, codec.Pose{0, 1, 0, 100, -1, 0, 0, 200, 0, 0, 1, 2})
		checkPose(t, items[1].Pose, codec.Pose{0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 5})
		if items[2].Pose != nil {
			t.Errorf("a scan without a pose of its vehicle has the pose %v", items[2].Pose)
		}
		for _, words := range []string{"1 of 4 scans that the tables name are not there", "1 scan has no pose"} {
			if !strings.Contains(book.String(), words) {
				t.Errorf("the log does not say %q: %s", words, book)
			}
		}
	}
	items := all(t, open(t, NuScenes{Paths: []string{root}, Scenes: []string{"scene-0103"}}))
	if len(items) != 1 || items[0].Sequence != "scene-0103" {
		t.Errorf("one scene: %v", nuFrames(items))
	}
}

func checkPose(t *testing.T, got *codec.Pose, want codec.Pose) {
	t.Helper()
	if got == nil {
		t.Errorf("there is no pose, want %v", want)
		return
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) < 1e-12*max(1, math.Abs(want[i]))) {
			t.Errorf("the pose is %v, want %v", *got, want)
			return
		}
	}
}

func TestNuScenesByNames(t *testing.T) {
	root := t.TempDir()
	const log = "n015-2018-07-24-11-22-45+0800"
	write(t, nuScan(2, 1), root, "samples", "LIDAR_TOP", log+"__LIDAR_TOP__1532402927747951.pcd.bin")
	write(t, zipped(t, nuScan(1, 2)), root, "sweeps", "LIDAR_TOP", log+"__LIDAR_TOP__1532402927647951.pcd.bin.gz")
	write(t, nil, root, "sweeps", "LIDAR_TOP", log+"__LIDAR_TOP__1532402927847951.pcd.bin")
	write(t, []byte("x"), root, "sweeps", "LIDAR_TOP", "README.md")
	items := all(t, open(t, NuScenes{Paths: []string{root}}))
	want := []nuFrame{{log, "LIDAR_TOP", 0, 1532402927647951000, UTC, 2, 1},
		{log, "LIDAR_TOP", 1, 1532402927747951000, UTC, 1, 2}, {log, "LIDAR_TOP", 2, 1532402927847951000, UTC, 0, -1}}
	if got := nuFrames(items); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	plain := t.TempDir()
	a := write(t, nuScan(1, 1), plain, "walk", "a.pcd.bin")
	b := write(t, nuScan(2, 1), plain, "walk", "b.pcd.bin")
	want = []nuFrame{{"walk", "LIDAR_TOP", 0, 0, NoClock, 1, 1}, {"walk", "LIDAR_TOP", 1, 0, NoClock, 1, 2}}
	for _, paths := range [][]string{{filepath.Join(plain, "walk")}, {a, b}} {
		if got := nuFrames(all(t, open(t, NuScenes{Paths: paths}))); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", paths, got, want)
		}
	}
}

func TestNuScenesFoldersThatAreNone(t *testing.T) {
	empty, both, mixed, twice := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	nuSet(t, both)
	write(t, []byte("[]"), both, "v1.0-test", "sample_data.json")
	const name = "log__LIDAR_TOP__1532402927747951.pcd.bin"
	write(t, nuScan(1, 1), mixed, name)
	write(t, nuScan(1, 1), mixed, "b.pcd.bin")
	write(t, nuScan(1, 1), twice, "samples", name)
	write(t, nuScan(1, 1), twice, "sweeps", name)
	bare := t.TempDir()
	nuSet(t, bare)
	for _, folder := range []string{"samples", "sweeps"} {
		removeAll(t, filepath.Join(bare, folder))
	}
	for _, c := range []struct {
		source NuScenes
		words  []string
	}{
		{NuScenes{}, []string{"no folder"}},
		{NuScenes{Paths: []string{filepath.Join(empty, "gone")}}, []string{"gone"}},
		{NuScenes{Paths: []string{empty}}, []string{"no .pcd.bin file", "v1.0-mini"}},
		{NuScenes{Paths: []string{both}}, []string{"v1.0-mini, v1.0-test", "--tables"}},
		{NuScenes{Paths: []string{both}, Tables: "v1.0-trainval"}, []string{"v1.0-trainval"}},
		{NuScenes{Paths: []string{both}, Tables: "v1.0-mini", Scenes: []string{"scene-1"}}, []string{`"scene-1"`}},
		{NuScenes{Paths: []string{twice}, Scenes: []string{"scene-1"}}, []string{"no tables"}},
		{NuScenes{Paths: []string{mixed}}, []string{"b.pcd.bin has no time in its name"}},
		{NuScenes{Paths: []string{twice}}, []string{"are of the same time"}},
		{NuScenes{Paths: []string{bare}}, []string{"none of the 4 scans"}},
	} {
		_, err := c.source.Open()
		failsWith(t, err, c.words...)
	}
}

func TestNuScenesBrokenScans(t *testing.T) {
	root := t.TempDir()
	kitti := bytes.Repeat(golden(t), 5) // 240 bytes: points of 16 and of 20 bytes fit
	for i, content := range [][]byte{nuScan(1, 1), nuScan(1, 2)[:33], kitti, nuScan(2, 1), nuScan(3, 5)} {
		write(t, content, root, fmt.Sprintf("log__LIDAR_TOP__%d.pcd.bin", i))
	}
	s := open(t, NuScenes{Paths: []string{root}, MaxFrameBytes: 60 * 5})
	var it Item
	for i, want := range []string{"", "13 are left over", "scan of KITTI", "", ""} {
		err := s.Next(&it)
		if (err == nil) != (want == "") {
			t.Fatalf("scan %d: %v", i, err)
		}
		if err != nil {
			failsWith(t, err, want, fmt.Sprintf("log__LIDAR_TOP__%d.pcd.bin", i), "--skip-bad")
		}
	}
	s = open(t, NuScenes{Paths: []string{root}, SkipBad: true, MaxFrameBytes: 99})
	items := all(t, s)
	if len(items) != 2 || items[1].Number != 3 || s.(interface{ Skipped() int64 }).Skipped() != 3 {
		t.Errorf("with faults skipped: %v", nuFrames(items))
	}
	if err := s.Rewind(); err != nil {
		t.Fatal(err)
	}
	if again := all(t, s); len(again) != 2 || s.(interface{ Skipped() int64 }).Skipped() != 3 {
		t.Errorf("a second pass: %d scans", len(again))
	}
}

// Tables cut at every byte, and with every byte changed, end in an error that names the file, or
// give the scans that are left.
func TestNuScenesBrokenTables(t *testing.T) {
	root := t.TempDir()
	nuSet(t, root)
	names := []string{"sensor.json", "calibrated_sensor.json", "scene.json", "sample.json", "sample_data.json",
		"ego_pose.json"}
	for _, name := range names {
		path := filepath.Join(root, "v1.0-mini", name)
		good := readFileOf(t, path)
		step := 1 + len(good)/60
		for n := 0; n < len(good); n += step {
			write(t, good[:n], path)
			if _, err := (NuScenes{Paths: []string{root}}).Open(); err == nil {
				t.Errorf("%s cut at byte %d of %d is read", name, n, len(good))
			} else {
				failsWith(t, err, name)
			}
			changed := bytes.Clone(good)
			changed[n] ^= 0x15
			write(t, changed, path)
			if s, err := (NuScenes{Paths: []string{root}, SkipBad: true}).Open(); err == nil {
				all(t, s)
			}
		}
		write(t, good, path)
	}
	for name, c := range map[string]struct {
		file, old, new string
		words          []string
	}{
		"no motion": {"ego_pose.json", "[2, 0, 0, 0]", "[0, 0, 0, 0]",
			[]string{"record 2 at byte", "are no motion"}},
		"short": {"ego_pose.json", "[2, 0, 0, 0]", "[0, 0, 0]", []string{"record 2 at byte", "want a comma"}},
		"text": {"sample_data.json", "1532402927747951,", `"noon",`,
			[]string{"record 1 at byte", "want a number"}},
		"too late":   {"sample_data.json", "1532402927747951,", "1e300,", []string{"record 1", "1e+300"}},
		"missing":    {"scene.json", `"name": "scene-0103"`, `"nam": ""`, []string{"record 1", "there is no name"}},
		"same scene": {"scene.json", "scene-0103", "scene-0061", []string{"record 1", "two scenes"}},
		"same token": {"sample_data.json", `"token": "d3"`, `"token": "d4"`, []string{"record 1", "there twice"}},
		"out of the set": {"sample_data.json", "sweeps/LIDAR_TOP/gone", "../../gone",
			[]string{"record 3", "leaves the folder"}},
		"no comma": {"sample.json", "},", "}", []string{"sample.json", "want a comma"}},
		"no array": {"sample.json", "[", "{", []string{"sample.json", "want an array of objects"}},
		"numbers": {"sample.json", `{"token": "a1"`, `7, {"token": "a1"`,
			[]string{"record 0", "want an object, got '7'"}},
		"a huge object": {"sample.json", `{"token": "a1"`, `{"more": "` + strings.Repeat("x",
			maxObject) + `", "token": "a1"`,
			[]string{"record 0", "longer than"}},
	} {
		path := filepath.Join(root, "v1.0-mini", c.file)
		good := readFileOf(t, path)
		write(t, bytes.Replace(good, []byte(c.old), []byte(c.new), 1), path)
		_, err := NuScenes{Paths: []string{root}}.Open()
		if err == nil {
			t.Errorf("%s: no error", name)
		} else {
			failsWith(t, err, append(c.words, c.file)...)
		}
		write(t, good, path)
	}
}

// A table of any size takes the memory of its scans: here 2 of 400,000 records are of a LiDAR.
func TestNuScenesTablesAreStreamed(t *testing.T) {
	root := t.TempDir()
	nuSet(t, root)
	path := filepath.Join(root, "v1.0-mini", "ego_pose.json")
	good := readFileOf(t, path)
	other := `{"token": "0123456789abcdef0123456789abcdef", "rotation": [1, 0, 0, 0], "translation": [1, 2, 3]},`
	write(t, append([]byte("["+strings.Repeat(other, 400000)), good[1:]...), path)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := open(t, NuScenes{Paths: []string{root}})
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 64<<20 {
		t.Errorf("a table of %d bytes takes %d", 400000*len(other), spent)
	}
	if items := all(t, s); len(items) != 3 || items[0].Pose == nil {
		t.Errorf("%d scans", len(items))
	}
}

// FuzzNuScenesTables asserts that any text is objects or a *BadInputError.
func FuzzNuScenesTables(f *testing.F) {
	f.Add([]byte(`[{"token": "a", "translation": [1, 2, 3], "rotation": [1, 0, 0, 0]}, {"timestamp": 1e3}]`))
	f.Add([]byte(`[{"token": "\u00e4{}", "x": [{"y": []}]}`))
	f.Add([]byte(`[]`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := writeTo(t, text, dir, "table.json")
		table, err := openJSONTable(path)
		if err == nil {
			defer table.close()
			r := tableRecord{table: table, keys: []string{"token", "translation"}, texts: make([][]byte, 2)}
			for err == nil {
				if err = table.next(); err == nil {
					if bad := r.read(); bad != nil {
						mustBeBad(t, bad)
					}
				}
			}
		}
		if err != io.EOF {
			mustBeBad(t, err)
		}
	})
}

func mustBeBad(t *testing.T, err error) {
	t.Helper()
	var bad *BadInputError
	if !errors.As(err, &bad) || bad.File == "" || bad.Detail == "" {
		t.Fatalf("%T: %v", err, err)
	}
}

func TestRealNuScenes(t *testing.T) {
	items := all(t, open(t, NuScenes{Paths: []string{geomtest.TestData(t, "nuscenes")}}))
	want := nuFrame{"n015-2018-07-24-11-22-45+0800", "LIDAR_TOP", 0, 1532402927647951000, UTC, 34688, -3.1243734}
	if got := nuFrames(items); len(got) != 1 || got[0] != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkNuScenes(b *testing.B) {
	dir := b.TempDir()
	scan := nuScan(0, 34688)
	writeTo(b, scan, dir, "log__LIDAR_TOP__1.pcd.bin")
	readFirst(b, NuScenes{Paths: []string{dir}}, len(scan))
}
