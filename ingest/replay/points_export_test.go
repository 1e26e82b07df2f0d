package replay

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

// exportRow is a row of a table that a lake has written.
type exportRow struct {
	Scan      *int64    `parquet:"scan,optional"`
	Vehicle   string    `parquet:"vehicle,dict"`
	Timestamp time.Time `parquet:"timestamp,timestamp(microsecond)"`
	X         float32   `parquet:"x,split"`
	Y         float64   `parquet:"y"`
	Note      string    `parquet:"note"`
}

// exportRows makes n rows: scans of 7 to 37 rows, one of them without a number.
func exportRows(n int) (rows []exportRow) {
	scan, left := int64(7), 7
	for i := range n {
		if left == 0 {
			scan, left = scan+3, 7+int(scan*5%31)
		}
		left--
		r := exportRow{Vehicle: fmt.Sprint("car ", scan/40), Timestamp: time.Unix(1600000000+scan, 0).UTC(),
			X: float32(i) / 3, Y: float64(i) / 7, Note: strings.Repeat("long ", i%9)}
		if scan != 22 {
			own := scan
			r.Scan = &own
		}
		rows = append(rows, r)
	}
	return rows
}

// writeExport writes files of some rows each, in row groups of 50 rows.
func writeExport[T any](t testing.TB, dir string, rows []T, each int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := 0; len(rows) > 0; i++ {
		n := min(each, len(rows))
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("part-%d.parquet", i)))
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewGenericWriter[T](file, parquet.MaxRowsPerRowGroup(50), parquet.PageBufferSize(64))
		if _, err := w.Write(rows[:n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		rows = rows[n:]
	}
}

// Groups of a foreign table: over files and row groups, with null among the keys, with times.
func TestGroupsOfATable(t *testing.T) {
	rows := exportRows(700)
	var want [][]exportRow
	for i, r := range rows {
		same := i > 0 && (r.Scan == nil) == (rows[i-1].Scan == nil) && (r.Scan == nil || *r.Scan == *rows[i-1].Scan)
		if !same {
			want = append(want, nil)
		}
		want[len(want)-1] = append(want[len(want)-1], r)
	}
	for _, c := range []struct {
		each int
		by   []string
	}{{9, []string{"scan"}}, {60, []string{"scan"}}, {1000, []string{"scan"}}, {130, []string{"vehicle", "scan"}},
		{1, []string{"scan"}}, {100, []string{"Scan"}}} {
		t.Run(fmt.Sprint(c.each, c.by), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "date=2026-01-02", "sensor=front%20left")
			writeExport(t, dir, rows, c.each)
			items, err := readPoints(Table{Paths: []string{filepath.Dir(dir)}, Format: FormatParquet, GroupBy: c.by})
			if err != nil || len(items) != len(want) {
				t.Fatalf("%d groups, want %d: %v", len(items), len(want), err)
			}
			for i := range items {
				it, w := &items[i], want[i]
				number := int64(i)
				if len(c.by) == 1 && w[0].Scan != nil {
					number = *w[0].Scan
				}
				if it.Cloud.Len() != len(w) || !it.Cloud.Double || it.Number != number || it.Sensor != "front left" ||
					it.Sequence != "sensor=front%20left" || it.TimeNs != w[0].Timestamp.UnixNano() || it.Clock != UTC {
					t.Fatalf("group %d: %d points of %d, %+v", i, it.Cloud.Len(), len(w), it)
				}
			}
		})
	}
	t.Run("values", func(t *testing.T) {
		dir := t.TempDir()
		writeExport(t, dir, rows, 33)
		src := open(t, Table{Paths: []string{dir}, Format: FormatParquet, GroupBy: []string{"scan"}})
		for _, w := range want {
			var it Item
			if err := src.Next(&it); err != nil {
				t.Fatal(err)
			}
			for k, r := range w {
				if it.Cloud.Cloud64.X[k] != float64(r.X) || it.Cloud.Cloud64.Y[k] != r.Y {
					t.Fatalf("point %d: %v, %v; want %+v", k, it.Cloud.Cloud64.X[k], it.Cloud.Cloud64.Y[k], r)
				}
			}
		}
	})
}

// Rows of a group in any order of point_idx come in its order; gaps are points without coordinates.
func TestPointIdxOrdersTheRows(t *testing.T) {
	type row struct {
		Frame int32   `parquet:"frame_id"`
		At    int64   `parquet:"point_idx"`
		X     float32 `parquet:"x"`
		Y     float32 `parquet:"y"`
	}
	for _, c := range []struct {
		idx  []int64
		want []float32 // -1: no point
		bad  string
	}{
		{[]int64{0, 1, 2}, []float32{0, 1, 2}, ""},
		{[]int64{2, 0, 1}, []float32{1, 2, 0}, ""},
		{[]int64{1, 4}, []float32{-1, 0, -1, -1, 1}, ""},
		{[]int64{1, 1}, nil, "point_idx 1 comes twice"},
		{[]int64{0, -3}, nil, "point_idx -3"},
		{[]int64{0, math.MaxInt32 - 1}, nil, "more than the limit"},
	} {
		var rows []row
		for i, at := range c.idx {
			rows = append(rows, row{5, at, float32(i), 2})
		}
		dir := t.TempDir()
		writeExport(t, dir, rows, 10)
		items, err := readPoints(Table{Paths: []string{dir}, Format: FormatParquet, GroupBy: []string{"frame_id"}})
		if c.bad != "" {
			failsWith(t, err, c.bad, "part-0.parquet", "frame_id 5")
			continue
		}
		if err != nil || items[0].Number != 5 {
			t.Fatalf("%v: %v, %+v", c.idx, err, items)
		}
		got := slices.Clone(items[0].Cloud.Cloud32.X)
		for i, v := range got {
			if v != v {
				got[i] = -1
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.idx, got, c.want)
		}
	}
}

// A group that is too large is a bad item.
func TestLargeGroups(t *testing.T) {
	rows := exportRows(400)
	size := map[string]int{}
	for _, r := range rows {
		size[r.Vehicle]++
	}
	least := min(size["car 0"], size["car 1"])
	dir := t.TempDir()
	writeExport(t, dir, rows, 90)
	table := Table{Paths: []string{dir}, Format: FormatParquet, GroupBy: []string{"vehicle"},
		MaxFrameBytes: 16 * int64(least), SkipBad: true}
	items, err := readPoints(table)
	if err != nil || len(items) == 0 || len(items) == len(size) {
		t.Fatalf("%d of %d items: %v", len(items), len(size), err)
	}
	for _, it := range items {
		if it.Cloud.Len() > least {
			t.Errorf("an item has %d points, more than the limit of %d", it.Cloud.Len(), least)
		}
	}
	table.SkipBad = false
	_, err = readPoints(table)
	failsWith(t, err, "vehicle car ", fmt.Sprintf("more than the limit of %d", 16*least))
}

func TestGroupByFaults(t *testing.T) {
	dir := t.TempDir()
	writeExport(t, dir, exportRows(10), 100)
	for _, c := range []struct {
		by   []string
		want []string
	}{
		{[]string{"frame"}, []string{"no column frame to group by", "scan, vehicle"}},
		{[]string{"scan", "scan"}, []string{"each once"}},
		{[]string{""}, []string{"name columns"}},
	} {
		_, err := readPoints(Table{Paths: []string{dir}, Format: FormatParquet, GroupBy: c.by})
		failsWith(t, err, c.want...)
	}
	_, err := Table{Paths: []string{dir}, Format: FormatCSV, GroupBy: []string{"x"}}.Open()
	failsWith(t, err, "Parquet files alone")
}
