//go:build readers

package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/foxglove"
	"entropipe/schemas/codec/mcap"
)

// python runs the script of Python's libraries. ENTROPIPE_PYTHON names an interpreter that has
// what .ci/readers/requirements.txt lists.
func python(t *testing.T, arguments ...string) string {
	t.Helper()
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	said, err := exec.Command(interpreter, append([]string{"../../.ci/readers/recordings.py"},
		arguments...)...).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			said = exit.Stderr
		}
		t.Fatalf("%v\n%s", err, said)
	}
	return strings.TrimSpace(string(said))
}

// digestOf returns the hash of the columns that are there, and the number of their values.
func digestOf(p *codec.Points) (string, int) {
	h, n := sha256.New(), 0
	add := func(values any, count int) {
		if count > 0 {
			if err := binary.Write(h, binary.LittleEndian, values); err != nil {
				panic(err)
			}
			n += count
		}
	}
	for _, v := range [][]float32{p.Cloud32.X, p.Cloud32.Y, p.Cloud32.Z} {
		add(v, len(v))
	}
	for _, v := range [][]float64{p.Cloud64.X, p.Cloud64.Y, p.Cloud64.Z} {
		add(v, len(v))
	}
	add(p.Intensity, len(p.Intensity))
	add(p.Ring, len(p.Ring))
	add(p.TOffsetNs, len(p.TOffsetNs))
	return hex.EncodeToString(h.Sum(nil)), n
}

// linesOf describes the clouds of a file as the script does.
func linesOf(t *testing.T, path string) (lines []string, values int) {
	s := open(t, MCAP{Paths: []string{path}})
	var it Item
	for {
		err := s.Next(&it)
		if err == io.EOF {
			return lines, values
		}
		if err != nil {
			t.Fatal(err)
		}
		hash, n := digestOf(&it.Cloud)
		lines = append(lines, fmt.Sprintln(it.Sensor, it.TimeNs, hash, n))
		values += n
	}
}

// Python's libraries write files that we read, and read files that we write, to the last bit.
func TestPythonHasTheSameClouds(t *testing.T) {
	dir := t.TempDir()
	arguments := []string{"write", dir}
	scan := golden(t)
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	if scans, _ := filepath.Glob(filepath.Join(root, "kitti", "*", "*.bin")); len(scans) > 0 {
		arguments = append(arguments, scans[0])
		var err error
		if scan, err = os.ReadFile(scans[0]); err != nil {
			t.Fatal(err)
		}
	}
	python(t, arguments...)
	for name, o := range map[string]mcap.Options{"none": {}, "lz4": {Compression: mcap.LZ4},
		"zstd": {Compression: mcap.Zstd, ChunkSize: 100}, "flat": {ChunkSize: -1}} {
		write(t, drive3(t, 3, scan, o), dir, "ours_"+name+".mcap")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.mcap"))
	if err != nil || len(files) != 8 {
		t.Fatal(files, err)
	}
	total := 0
	for _, path := range files {
		got, values := linesOf(t, path)
		want := python(t, "read", path)
		if d := cmp.Diff(strings.Split(want, "\n"),
			strings.Split(strings.TrimSpace(strings.Join(got, "")), "\n")); d != "" {
			t.Errorf("%s (-Python +ours):\n%s", filepath.Base(path), d)
		}
		total += values
	}
	if total == 0 {
		t.Error("no value was compared")
	}
	t.Logf("%d values of %d files are equal", total, len(files))
}

// Our schemas are those of Python's package, and its decoder reads our scenes by them.
func TestPythonReadsScenes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scene.mcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cloud := foxglove.PointCloud{FrameID: "os", Stride: 12,
		Fields: []foxglove.Field{{Name: "x", Type: foxglove.Float32}}}
	scene := foxglove.SceneUpdate{Entities: []foxglove.Entity{{TimeNs: 1_500_000_000, FrameID: "map", ID: "hull",
		Lines: []foxglove.Line{{Type: foxglove.LineLoop, Thickness: 2, ScaleInvariant: true,
			Points: []foxglove.Vector{{X: 1}, {Y: 2.5}}, Color: foxglove.Color{R: 1, A: 1}}},
		Triangles: []foxglove.Triangles{{Points: []foxglove.Vector{{X: 1}, {Y: 1}, {Z: 1}},
			Indices: []uint32{2, 1, 0}}}}}}
	transform := foxglove.FrameTransform{TimeNs: 7, Parent: "map", Child: "os"}
	w := mcap.NewWriter(f, mcap.Options{Compression: mcap.Zstd})
	for _, m := range []struct {
		schema string
		data   []byte
	}{{foxglove.PointCloudSchema, cloud.Append(nil)}, {foxglove.SceneUpdateSchema, scene.Append(nil)},
		{foxglove.FrameTransformSchema, transform.Append(nil)}} {
		id := w.AddSchema(m.schema, "protobuf", foxglove.Schema(m.schema))
		w.Write(w.AddChannel("/"+m.schema, "protobuf", id, nil), 0, 0, 0, m.data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := `foxglove.PointCloud timestamp { } frame_id: "os" pose { position { } orientation { w: 1 } } ` +
		`point_stride: 12 fields { name: "x" type: FLOAT32 }
foxglove.SceneUpdate entities { timestamp { seconds: 1 nanos: 500000000 } frame_id: "map" id: "hull" lifetime { } ` +
		`lines { type: LINE_LOOP pose { position { } orientation { w: 1 } } thickness: 2 scale_invariant: true ` +
		`points { x: 1 } points { y: 2.5 } color { r: 1 a: 1 } } triangles { pose { position { } orientation { w: 1 } } ` +
		`points { x: 1 } points { y: 1 } points { z: 1 } color { } indices: 2 indices: 1 indices: 0 } }
foxglove.FrameTransform timestamp { nanos: 7 } parent_frame_id: "map" child_frame_id: "os" translation { } ` +
		`rotation { w: 1 }`
	if d := cmp.Diff(want, python(t, "scene", path)); d != "" {
		t.Error(d)
	}
}
