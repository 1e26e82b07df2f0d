package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// maximaRow is a row with the kinds of columns that there are: keys, a text, a list, a null.
type maximaRow struct {
	Sequence   string   `parquet:"sequence,dict"`
	FrameID    int64    `parquet:"frame_id,delta"`
	Partition  int32    `parquet:"partition"`
	Offset     int64    `parquet:"offset,delta"`
	Index      int32    `parquet:"index"`
	Directions string   `parquet:"directions,dict"`
	Idx        []int32  `parquet:"idx,list"`
	ErrorBound *float64 `parquet:"error_bound,optional"`
}

// maximaRows returns two rows a frame.
func maximaRows(frames int) (rows []maximaRow) {
	for i := range frames {
		for _, directions := range []string{"x:max", "x:max,y:max"} {
			rows = append(rows, maximaRow{Sequence: "a", FrameID: int64(i), Offset: int64(i), Directions: directions,
				Idx: slices.Repeat([]int32{int32(i)}, i%4)})
		}
	}
	return rows
}

// write writes a table in files of at most each rows.
func write[R any](t *testing.T, table, folder string, rows []R, each int) string {
	t.Helper()
	out := t.TempDir()
	dir := filepath.Join(out, table, filepath.FromSlash(folder))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(rows); i += each {
		name := fmt.Sprintf("part-0-%020d.parquet", i)
		if err := parquet.WriteFile(filepath.Join(dir, name), rows[i:min(i+each, len(rows))]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Law: how rows are cut into files makes no difference, each change of a row does, and the
// first one is named with its table, its frame and its columns.
func TestCompareSeesRowsNotFiles(t *testing.T) {
	const frames = 700
	bound, zero := .5, 0.
	type rows = []maximaRow
	for _, c := range []struct {
		name                    string
		change                  func(rows) rows
		missing, doubled, stray int64
		says                    string
	}{
		{"nothing", func(r rows) rows { return r }, 0, 0, 0, ""},
		{"frames in another order", func(r rows) rows { return append(slices.Clone(r[4:]), r[:4]...) }, 0, 0, 0, ""},
		{"a list value", func(r rows) rows { r[703].Idx[1]++; return r }, 1, 0, 1,
			"frame_id 351 index 0: row 1: idx.list.element is 351 352 351, want 351 351 351"},
		{"a shorter list", func(r rows) rows { r[703].Idx = r[703].Idx[1:]; return r }, 1, 0, 1,
			"idx.list.element is 351 351, want 351 351 351"},
		{"a null", func(r rows) rows { r[3].ErrorBound = &bound; return r }, 1, 0, 1, "error_bound is 0.5, want "},
		{"0 instead of null", func(r rows) rows { r[3].ErrorBound = &zero; return r }, 1, 0, 1,
			"error_bound is 0, want "},
		{"a text", func(r rows) rows { r[9].Sequence = "b"; return r }, 1, 0, 1, `row 1: sequence is "b", want "a"`},
		{"rows of a frame swapped", func(r rows) rows { r[2], r[3] = r[3], r[2]; return r }, 1, 0, 1,
			"row 0: directions is"},
		{"an offset", func(r rows) rows { r[1398].Offset, r[1399].Offset = 9, 9; return r }, 0, 0, 0, ""},
		{"a frame missing", func(r rows) rows { return slices.Delete(r, 20, 22) }, 1, 0, 0,
			"frame_id 10 index 0 is not there, 2 rows, the first of them: "},
		{"a row missing", func(r rows) rows { return r[:1399] }, 1, 0, 1,
			"it has 1 rows, want 2; the first that is missing: "},
		{"a frame twice", func(r rows) rows { return append(r, r[20:22]...) }, 0, 1, 0,
			"frame_id 10 index 0 has a portion that is not wanted, or once more: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := write(t, "maxima", "dataset=d/topic=one", maximaRows(frames), 1000)
			got := write(t, "maxima", "dataset=d/topic=other", c.change(maximaRows(frames)), 170)
			found, err := CompareOutputs(got, want, Places...)
			if err != nil {
				t.Fatal(err)
			}
			if found.Missing != c.missing || found.Doubled != c.doubled || found.Stray != c.stray ||
				found.Rows["maxima"] != 2*frames {
				t.Errorf("got %+v; want %d missing, %d doubled, %d stray", found, c.missing, c.doubled, c.stray)
			}
			if !strings.Contains(found.First, c.says) || (found.First == "") != (c.says == "") ||
				c.says != "" && !strings.Contains(found.First, "table maxima: ") {
				t.Errorf("it says %q, want %q", found.First, c.says)
			}
			if (found.Err() == nil) != (c.says == "") {
				t.Errorf("error %v", found.Err())
			}
		})
	}
}

// Folder keys are part of a row; so are the places of records when they are not left out.
func TestCompareSeesFolders(t *testing.T) {
	want := write(t, "maxima", "dataset=d/topic=one", maximaRows(3), 100)
	for _, c := range []struct {
		folder   string
		leaveOut []string
		same     bool
	}{
		{"dataset=d/topic=one", nil, true},
		{"dataset=d/topic=two", nil, false},
		{"dataset=d/topic=two", Places, true},
		{"dataset=e/topic=one", Places, false},
	} {
		got := write(t, "maxima", c.folder, maximaRows(3), 100)
		if _, err := SameOutputs(got, want, c.leaveOut...); (err == nil) != c.same {
			t.Errorf("%s without %v: %v, want the same %v", c.folder, c.leaveOut, err, c.same)
		}
	}
}

// A table of float32 equals one of float64 with the same numbers, and times of the run are
// not compared.
func TestCompareSeesValuesNotWidths(t *testing.T) {
	type narrowRow struct {
		Partition int32   `parquet:"partition"`
		Offset    int64   `parquet:"offset"`
		Index     int32   `parquet:"index"`
		X         float32 `parquet:"x"`
		LatencyNs int64   `parquet:"latency_ns"`
		HullNs    int64   `parquet:"hull2d_ns"`
	}
	type wideRow struct {
		Partition int32   `parquet:"partition"`
		Offset    int64   `parquet:"offset"`
		Index     int32   `parquet:"index"`
		X         float64 `parquet:"x"`
		LatencyNs int64   `parquet:"latency_ns"`
		HullNs    int64   `parquet:"hull2d_ns"`
	}
	a := write(t, "frames", "topic=a", []narrowRow{{X: .1}, {Offset: 1, X: 2}}, 9)
	b := write(t, "frames", "topic=a", []wideRow{{X: float64(float32(.1)), LatencyNs: 7, HullNs: 8}, {Offset: 1, X: 2}},
		9)
	if _, err := SameOutputs(b, a); err != nil {
		t.Error(err)
	}
	c := write(t, "frames", "topic=a", []wideRow{{X: .1}, {Offset: 1, X: 2}}, 9)
	if _, err := SameOutputs(c, a); err == nil {
		t.Error("another number is no difference")
	}
}

// Two outputs without rows are no proof, and a table that one of them lacks is a difference.
func TestCompareOfNothing(t *testing.T) {
	if _, err := SameOutputs(t.TempDir(), t.TempDir()); err == nil {
		t.Error("two empty outputs compare as equal")
	}
	out := write(t, "maxima", "topic=a", maximaRows(2), 10)
	if found, err := CompareOutputs(t.TempDir(), out); err != nil || found.Missing != 2 {
		t.Errorf("against nothing: %+v, %v", found, err)
	}
	if found, err := CompareOutputs(out, t.TempDir()); err != nil || found.Stray != 2 {
		t.Errorf("nothing wanted: %+v, %v", found, err)
	}
}
