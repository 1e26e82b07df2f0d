//go:build readers

package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"entropipe/algos/geomtest"
	"entropipe/schemas"
)

// pythonColumns returns the columns of a file as pyarrow or numpy read them, each as its bytes.
// ENTROPIPE_PYTHON names an interpreter that has what .ci/readers/requirements.txt lists.
func pythonColumns(t *testing.T, form, path string) map[string][]byte {
	t.Helper()
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	out := filepath.Join(t.TempDir(), "columns")
	said, err := exec.Command(interpreter, "../../.ci/readers/sets.py", form, path, out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	columns := map[string][]byte{}
	for rest := readFileOf(t, out); len(rest) > 0; {
		line, values, ok := bytes.Cut(rest, []byte{'\n'})
		var name, kind string
		var n, width int
		if _, err := fmt.Sscan(string(line), &name, &kind, &n); err != nil || !ok {
			t.Fatalf("the line %q: %v", line, err)
		}
		if _, err := fmt.Sscan(kind[1:], &width); err != nil {
			t.Fatal(err)
		}
		columns[name], rest = values[:n*width], values[n*width:]
	}
	return columns
}

// sameColumns compares columns bit by bit and returns the number of values.
func sameColumns(t *testing.T, python map[string][]byte, ours map[string]any) (values int) {
	t.Helper()
	if len(python) != len(ours) {
		t.Errorf("Python reads %d columns, we compare %d", len(python), len(ours))
	}
	for name, v := range ours {
		got, err := binary.Append(nil, binary.LittleEndian, v)
		if err != nil {
			t.Fatalf("column %s: %v", name, err)
		}
		if len(got) == 0 || !bytes.Equal(got, python[name]) {
			t.Errorf("column %s: our %d bytes differ from the %d of Python", name, len(got), len(python[name]))
		}
		values += lenOf(v)
	}
	return values
}

func lenOf(v any) int {
	switch v := v.(type) {
	case []float32:
		return len(v)
	case []float64:
		return len(v)
	case []int32:
		return len(v)
	case []int64:
		return len(v)
	}
	return 0
}

func TestNuScenesInPython(t *testing.T) {
	dir := geomtest.TestData(t, "nuscenes")
	src := open(t, NuScenes{Paths: []string{dir}})
	files, err := filepath.Glob(filepath.Join(dir, "*.pcd.bin"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scan in %s (%v)", dir, err)
	}
	n := 0
	for _, file := range files {
		var it Item
		if err := src.Next(&it); err != nil {
			t.Fatal(err)
		}
		p := it.Cloud
		n += sameColumns(t, pythonColumns(t, "nuscenes", file), map[string]any{"x": p.Cloud32.X, "y": p.Cloud32.Y,
			"z": p.Cloud32.Z, "intensity": p.Intensity, "ring": p.Ring})
	}
	t.Logf("nuScenes: %d values of %d scans are those of numpy", n, len(files))
}

func TestArgoverse2InPython(t *testing.T) {
	dir := geomtest.TestData(t, "argoverse2")
	files, err := filepath.Glob(filepath.Join(dir, "*", "lidar", "*.feather"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sweep in %s (%v)", dir, err)
	}
	src := open(t, Argoverse2{Paths: []string{dir}})
	n := 0
	for _, file := range files {
		var it Item
		if err := src.Next(&it); err != nil {
			t.Fatal(err)
		}
		p := it.Cloud
		n += sameColumns(t, pythonColumns(t, "argoverse2", file), map[string]any{"x": p.Cloud32.X, "y": p.Cloud32.Y,
			"z": p.Cloud32.Z, "intensity": p.Intensity, "laser_number": p.Laser, "offset_ns": p.TOffsetNs})
	}
	cities, _ := filepath.Glob(filepath.Join(dir, "*", "city_SE3_egovehicle.feather"))
	for _, file := range cities {
		var table schemas.Table
		if err := table.Read(readFileOf(t, file)); err != nil {
			t.Fatal(err)
		}
		ours := map[string]any{}
		for i, c := range table.Columns() {
			if c.Integer {
				ours[c.Name], err = table.Int64s(i, nil)
			} else {
				ours[c.Name], err = table.Float64s(i, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		n += sameColumns(t, pythonColumns(t, "city", file), ours)
	}
	t.Logf("Argoverse 2: %d values of %d sweeps and %d tables of poses are those of pyarrow", n, len(files),
		len(cities))
}

func TestSemanticKITTIInPython(t *testing.T) {
	made := t.TempDir()
	var labels []uint32
	for i := range uint32(3) {
		labels = append(labels, i*0x9e3779b1)
	}
	write(t, golden(t), made, "000000.bin")
	write(t, labelsOf(labels...), made, "000000.label")
	compare := func(t *testing.T, dir string) {
		n := 0
		for _, it := range clouds(t, open(t, KITTI{Dir: dir})) {
			file := filepath.Join(dir, fmt.Sprintf("%06d.label", it.Number))
			if it.Cloud.Label != nil {
				n += sameColumns(t, pythonColumns(t, "semantickitti", file), map[string]any{"label": it.Cloud.Label})
			}
		}
		if n == 0 {
			t.Error("no label was compared")
		}
		t.Logf("SemanticKITTI: %d labels are those of numpy", n)
	}
	compare(t, made)
	t.Run("real", func(t *testing.T) { compare(t, geomtest.TestData(t, "kitti", "odometry_00")) })
}

// A table is the same in Parquet and in Arrow, for pyarrow and for us.
func TestTablesInPython(t *testing.T) {
	type row struct{ X, Y, Z float64 }
	var rows []row
	for i := range 1001 {
		rows = append(rows, row{4.5e6 + float64(i)/3, -float64(i) / 7, 1 / float64(i+1)})
	}
	dir := t.TempDir()
	file := write(t, parquetOf(t, rows...), dir, "0.parquet")
	p := clouds(t, open(t, Table{Paths: []string{file}, Format: FormatParquet}))[0].Cloud
	ours := map[string]any{"X": p.Cloud64.X, "Y": p.Cloud64.Y, "Z": p.Cloud64.Z}
	n := sameColumns(t, pythonColumns(t, "parquet", file), ours)

	f64 := arrow.PrimitiveTypes.Float64
	b := arrowBatch(t, arrowColumn{"X", f64, "[0.1, 4500000.123456789]"}, arrowColumn{"Y", f64, "[-0.3, 5e-324]"})
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(b.Schema()), ipc.WithLZ4())
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file = write(t, stream.Bytes(), dir, "0.arrows")
	p = clouds(t, open(t, Table{Paths: []string{file}, Format: FormatArrow}))[0].Cloud
	n += sameColumns(t, pythonColumns(t, "arrow", file), map[string]any{"X": p.Cloud64.X, "Y": p.Cloud64.Y})
	t.Logf("tables: %d values are those of pyarrow", n)
}
