package replay

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"entropipe/algos/geomtest"
	"entropipe/schemas/codec"
)

// arrowColumn is a column of a test's table; its values are JSON.
type arrowColumn struct {
	name string
	is   arrow.DataType
	json string
}

// arrowBatch makes a batch of columns.
func arrowBatch(t testing.TB, columns ...arrowColumn) arrow.Record {
	t.Helper()
	var fields []arrow.Field
	var arrays []arrow.Array
	for _, c := range columns {
		a, _, err := array.FromJSON(memory.DefaultAllocator, c.is, strings.NewReader(c.json), array.WithUseNumber())
		if err != nil {
			t.Fatalf("column %s: %v", c.name, err)
		}
		fields, arrays = append(fields, arrow.Field{Name: c.name, Type: c.is, Nullable: true}), append(arrays, a)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
}

// feather is an Arrow file of batches, compressed with LZ4.
func feather(t testing.TB, batches ...arrow.Record) []byte {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(batches[0].Schema()), ipc.WithLZ4())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return readFileOf(t, f.Name())
}

// avSweepFile is a sweep of two batches.
func avSweepFile(t testing.TB, x float64) []byte {
	f16, u8 := arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Uint8
	batch := func(x, y string, laser int) arrow.Record {
		return arrowBatch(t, arrowColumn{"x", f16, x}, arrowColumn{"y", f16, y}, arrowColumn{"z", f16, y},
			arrowColumn{"intensity", u8, "[10, 255]"}, arrowColumn{"laser_number", u8, fmt.Sprintf("[%d, 63]", laser)},
			arrowColumn{"offset_ns", arrow.PrimitiveTypes.Int32, "[2654000, -1]"})
	}
	return feather(t, batch(fmt.Sprintf("[%g, 0.00006103515625]", x), "[0.5, -2]", 31),
		batch("[3, 4]", "[65504, 0.25]", 0))
}

func avPoses(t testing.TB, times string) []byte {
	f64 := arrow.PrimitiveTypes.Float64
	return feather(t, arrowBatch(t, arrowColumn{"timestamp_ns", arrow.PrimitiveTypes.Int64, times},
		arrowColumn{"qw", f64, "[1, 1]"}, arrowColumn{"qx", f64, "[0, 0]"}, arrowColumn{"qy", f64, "[0, 0]"},
		arrowColumn{"qz", f64, "[0, 1]"}, arrowColumn{"tx_m", f64, "[1, 10]"}, arrowColumn{"ty_m", f64, "[2, 20]"},
		arrowColumn{"tz_m", f64, "[3, 30]"}))
}

func TestArgoverse2(t *testing.T) {
	const log = "7fab2350-7eaf-3b7e-a39d-6937a4c1bede"
	for _, layout := range []string{"sensors/lidar", "lidar"} {
		split := t.TempDir()
		root := filepath.Join(split, log)
		write(t, avSweepFile(t, 1.5), root, layout, "315966265259836000.feather")
		write(t, avSweepFile(t, -7), root, layout, "315966265160030000.feather")
		write(t, avSweepFile(t, 9), root, layout, "315966265360000000.feather")
		write(t, avPoses(t, "[315966265160030000, 315966265259836000]"), root, "city_SE3_egovehicle.feather")
		for _, path := range []string{split, root, filepath.Join(root, layout)} {
			src := open(t, Argoverse2{Paths: []string{path}})
			var it Item
			for i, want := range []struct {
				x    float32
				time int64
				pose *codec.Pose
			}{{-7, 315966265160030000, &codec.Pose{1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 3}},
				{1.5, 315966265259836000, &codec.Pose{0, -1, 0, 10, 1, 0, 0, 20, 0, 0, 1, 30}},
				{9, 315966265360000000, nil}} {
				if err := src.Next(&it); err != nil {
					t.Fatalf("%s, sweep %d: %v", path, i, err)
				}
				if it.Dataset != "argoverse2" || it.Sequence != log || it.Sensor != "lidar" || it.Number != int64(i) ||
					it.TimeNs != want.time || it.Clock != UTC || len(it.Ignored) != 0 {
					t.Errorf("%s: %s/%s/%s number %d at %d, without %q", path, it.Dataset, it.Sequence, it.Sensor,
						it.Number, it.TimeNs, it.Ignored)
				}
				if want.pose == nil && it.Pose != nil {
					t.Errorf("%s: a sweep without a pose has %v", path, it.Pose)
				} else if want.pose != nil {
					checkPose(t, it.Pose, *want.pose)
				}
				checkSweep(t, it.Cloud, want.x)
			}
			if err := src.Next(&it); err != io.EOF {
				t.Errorf("%s: %v behind the last sweep", path, err)
			}
		}
	}
}

func checkSweep(t *testing.T, p codec.Points, x float32) {
	t.Helper()
	if p.Double || !slices.Equal(p.Cloud32.X, []float32{x, 0x1p-14, 3, 4}) ||
		!slices.Equal(p.Cloud32.Y, []float32{0.5, -2, 65504, 0.25}) || !slices.Equal(p.Cloud32.Y, p.Cloud32.Z) ||
		!slices.Equal(p.Intensity, []float32{10, 255, 10, 255}) || !slices.Equal(p.Laser, []int32{31, 63, 0, 63}) ||
		!slices.Equal(p.TOffsetNs, []int64{2654000, -1, 2654000, -1}) {
		t.Errorf("the columns are %+v", p)
	}
}

func TestArgoverse2Faults(t *testing.T) {
	root := t.TempDir()
	good := avSweepFile(t, 1)
	write(t, good, root, "lidar", "100.feather")
	write(t, good[:len(good)-7], root, "lidar", "200.feather")
	write(t, arrowFileOf(t, "a", "b"), root, "lidar", "300.feather")
	write(t, nil, root, "lidar", "400.feather")
	write(t, avPoses(t, "[100, 100]"), root, "city_SE3_egovehicle.feather")
	src := open(t, Argoverse2{Paths: []string{root}})
	var it Item
	for _, words := range [][]string{{"city_SE3_egovehicle", "another pose for the time 100"}, {"200", "never closed"},
		{"300", "no column x or no column y", "a, b"}, {"400", "no bytes"}} {
		failsWith(t, src.Next(&it), append(words, "--skip-bad")...)
	}
	src = open(t, Argoverse2{Paths: []string{root}, SkipBad: true})
	if err := src.Next(&it); err != nil || it.TimeNs != 100 || it.Pose != nil {
		t.Errorf("with faults skipped: %v, %+v", err, it)
	}
	if err := src.Next(&it); err != io.EOF || src.(interface{ Skipped() int64 }).Skipped() != 4 {
		t.Errorf("with faults skipped: %v", err)
	}
	twice := t.TempDir()
	write(t, good, twice, "lidar", "100.feather")
	write(t, zipped(t, good), twice, "lidar", "100.feather.gz")
	for _, c := range []struct {
		paths []string
		words []string
	}{
		{nil, []string{"no folder"}},
		{[]string{filepath.Join(root, "gone")}, []string{"gone"}},
		{[]string{t.TempDir()}, []string{"no sweep", "sensors/lidar"}},
		{[]string{filepath.Join(root, "city_SE3_egovehicle.feather")}, []string{"no time in nanoseconds"}},
		{[]string{twice}, []string{"are of the same time"}},
	} {
		_, err := Argoverse2{Paths: c.paths}.Open()
		failsWith(t, err, c.words...)
	}
	_, err := Argoverse2{Paths: []string{filepath.Join(twice, "lidar", "100.feather.gz")}}.Open()
	if err != nil {
		t.Error(err)
	}
}

// arrowFileOf is a file of columns of two floats each.
func arrowFileOf(t testing.TB, names ...string) []byte {
	var columns []arrowColumn
	for _, name := range names {
		columns = append(columns, arrowColumn{name, arrow.PrimitiveTypes.Float64, "[0.1, 2]"})
	}
	return feather(t, arrowBatch(t, columns...))
}

// A sweep cut at every byte, or with any byte changed, is read or passed over.
func TestArgoverse2BrokenSweeps(t *testing.T) {
	root := t.TempDir()
	good := avSweepFile(t, 1)
	path := write(t, good, root, "lidar", "100.feather")
	src := open(t, Argoverse2{Paths: []string{root}})
	var it Item
	for n := 0; n < len(good); n += 7 {
		write(t, good[:n], path)
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
		mustBeBad(t, src.Next(&it))
		changed := bytes.Clone(good)
		changed[n] ^= 0x41
		write(t, changed, path)
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
		if err := src.Next(&it); err != nil {
			mustBeBad(t, err)
		}
	}
}

func TestRealArgoverse2(t *testing.T) {
	dir := geomtest.TestData(t, "argoverse2")
	items := all(t, open(t, Argoverse2{Paths: []string{dir}}))
	if len(items) != 1 {
		t.Fatalf("%d sweeps", len(items))
	}
	it := &items[0]
	if it.Cloud.Len() != 99229 || it.Cloud.Cloud32.X[0] != -1.537109375 || it.Cloud.Cloud32.Z[2] != -0.31591796875 ||
		it.Cloud.Intensity[1] != 47 || it.TimeNs != 315966265259836000 {
		t.Errorf("%d points at %d", it.Cloud.Len(), it.TimeNs)
	}
	// The vehicle stands in a city whose origin is kilometres away.
	if it.Pose == nil || it.Pose[3] < 5000 || it.Pose[3] > 6000 || it.Pose[7] < 2000 || it.Pose[7] > 3000 {
		t.Errorf("the pose is %v", it.Pose)
	}
}
