package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"entropipe/algos/geomtest"
	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/sinks/tables"
)

// smallOutput writes an output of some frames and returns the paths of its only files of points and
// frames.
func smallOutput(t testing.TB, dir string) (points, frames string) {
	t.Helper()
	items := randomClouds(6, false)
	for i := range items {
		items[i].Cloud = codec.Points{Cloud32: geomtest.Lidar[float32](20+i, uint64(i))}
	}
	output(t, dir, tables.Config{RowGroupRows: 60}, process(t, messagesOf(t, &listedItems{items: items}),
		[]schemas.Op{schemas.Hull2D}), 1000)
	part := filepath.Join("dataset=set", "topic=points", fmt.Sprintf("part-3-%020d-%020d.parquet", 0, 6))
	return filepath.Join(dir, "points", part), filepath.Join(dir, "frames", part)
}

// readBroken reads all of a table, whatever is bad. An error that is not of one item must say that
// rows are not together.
func readBroken(t *testing.T, table Table) (items int) {
	t.Helper()
	table.SkipBad = true
	src, err := table.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for {
		var it Item
		err := src.Next(&it)
		switch {
		case err == io.EOF:
			return items
		case err != nil && strings.Contains(err.Error(), "together"):
			return items
		case err != nil:
			t.Fatal(err)
		}
		c := &it.Cloud
		n := c.Len()
		for _, v := range c.Int32s() {
			if *v != nil && len(*v) != n {
				t.Fatalf("a column of %d values of %d points", len(*v), n)
			}
		}
		if items++; items > 1000 {
			t.Fatal("the items do not end")
		}
	}
}

// Cut files and changed bytes are bad items, in every way of grouping.
func TestBrokenPoints(t *testing.T) {
	dir := t.TempDir()
	points, frames := smallOutput(t, dir)
	export := t.TempDir()
	writeExport(t, export, exportRows(120), 1000)
	for _, c := range []struct {
		name, file string
		table      Table
	}{
		{"points of an output", points, Table{Paths: []string{dir}}},
		{"frames of an output", frames, Table{Paths: []string{dir}}},
		{"keys of an output", points, Table{Paths: []string{dir}, GroupBy: []string{"frame_id"}}},
		{"groups", filepath.Join(export, "part-0.parquet"),
			Table{Paths: []string{export}, GroupBy: []string{"vehicle", "scan"}}},
		{"row groups", filepath.Join(export, "part-0.parquet"),
			Table{Paths: []string{export}, GroupBy: []string{ByRowGroup}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			good, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			c.table.Format, c.table.MaxFrameBytes = FormatParquet, 1<<16
			whole := readBroken(t, c.table)
			for n := 0; n < len(good); n += 1 + len(good)/150 {
				for _, content := range [][]byte{good[:n],
					slices.Concat(good[:n], []byte{good[n] ^ 0x49}, good[n+1:])} {
					if err := os.WriteFile(c.file, content, 0o666); err != nil {
						t.Fatal(err)
					}
					readBroken(t, c.table)
				}
			}
			if err := os.WriteFile(c.file, good, 0o666); err != nil {
				t.Fatal(err)
			}
			if n := readBroken(t, c.table); n != whole || n == 0 {
				t.Errorf("%d items, %d before", n, whole)
			}
		})
	}
}

// The error for a damaged column names the file and the column.
func TestBrokenPointsAreNamed(t *testing.T) {
	dir := t.TempDir()
	path, _ := smallOutput(t, dir)
	table := Table{Paths: []string{dir}, Format: FormatParquet}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := openParquetFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for i, name := range []string{"offset", "point_idx", "x", "z"} {
		chunk := f.file.Metadata().RowGroups[0].Columns[f.leaves[findColumn(f.columns, name)].index].MetaData
		bad := slices.Clone(good)
		for at := chunk.DataPageOffset; at < chunk.DataPageOffset+chunk.TotalCompressedSize; at++ {
			bad[at] = 0xff
		}
		if err := os.WriteFile(path, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := readPoints(table)
		failsWith(t, err, path, "column "+name)
		var is *BadInputError
		if !errors.As(err, &is) {
			t.Errorf("%d: %v is no bad input", i, err)
		}
	}
}

// FuzzPoints asserts that any bytes in tables points and frames make clouds or *BadInputErrors, within
// bounded memory.
func FuzzPoints(f *testing.F) {
	dir := f.TempDir()
	points, frames := smallOutput(f, dir)
	good := [2][]byte{}
	for i, path := range []string{points, frames} {
		var err error
		if good[i], err = os.ReadFile(path); err != nil {
			f.Fatal(err)
		}
		f.Add(good[i], byte(i))
	}
	f.Add(good[0], byte(2))
	f.Add(good[0], byte(3))
	f.Fuzz(func(t *testing.T, content []byte, kind byte) {
		now := good
		now[map[bool]int{true: 1}[kind%4 == 1]] = content
		for i, path := range []string{points, frames} {
			if err := os.WriteFile(path, now[i], 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		readBroken(t, Table{Paths: []string{dir}, Format: FormatParquet, MaxFrameBytes: 1 << 16,
			GroupBy: map[byte][]string{2: {"frame_id"}, 3: {ByRowGroup}}[kind%4]})
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 256<<20 {
			t.Fatalf("%d bytes allocated for a file of %d", spent, len(content))
		}
	})
}
