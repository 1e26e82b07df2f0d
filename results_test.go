package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// foundRow is the row of a results/1 message, by column.
type foundRow struct {
	t   *testing.T
	rec arrow.Record
}

func newFoundRow(t *testing.T, value []byte) foundRow {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() || r.Record().NumRows() != 1 {
		t.Fatalf("a message of results has no row: %v", r.Err())
	}
	r.Record().Retain()
	return foundRow{t, r.Record()}
}

func (r foundRow) column(name string) arrow.Array {
	at := r.rec.Schema().FieldIndices(name)
	if len(at) != 1 {
		r.t.Fatalf("%d columns %s", len(at), name)
	}
	return r.rec.Column(at[0])
}

// list returns the elements of a column of lists; nil: it is null.
func list[T int32 | float64](r foundRow, name string) []T {
	c := r.column(name).(*array.List)
	if c.IsNull(0) {
		return nil
	}
	switch v := c.ListValues().(type) {
	case *array.Int32:
		return any(append([]int32{}, v.Int32Values()...)).([]T)
	case *array.Float64:
		return any(append([]float64{}, v.Float64Values()...)).([]T)
	}
	r.t.Fatalf("column %s is a list of something else", name)
	return nil
}

// equals compares a frame of the tables with its message.
func (r foundRow) equals(want *schemas.Result) {
	t, name := r.t, fmt.Sprintf("%s/%d/%d/%d", want.Topic, want.Partition, want.Offset, want.Index)
	at := map[int32]int{}
	for k, i := range want.Points.Idx {
		at[i] = k
	}
	checkIdx := func(column string, idx []int32) {
		if got := list[int32](r, column); !slices.Equal(got, idx) {
			t.Errorf("%s: %s is %v, the tables have %v", name, column, got, idx)
		}
	}
	coordinates := func(prefix string, axes string, idx []int32) {
		for axis, letter := range axes {
			v := list[float64](r, prefix+string(letter))
			if len(v) != len(idx) {
				t.Fatalf("%s: %s%c has %d values of %d points", name, prefix, letter, len(v), len(idx))
			}
			for k, i := range idx {
				p := want.Points
				x := 0.
				if p.X64 != nil {
					x = [][]float64{p.X64, p.Y64, p.Z64}[axis][at[i]]
				} else {
					x = float64([][]float32{p.X32, p.Y32, p.Z32}[axis][at[i]])
				}
				if v[k] != x {
					t.Fatalf("%s: %s%c of point %d is %v, table points has %v", name, prefix, letter, i, v[k], x)
				}
			}
		}
	}
	checkIdx("hull_idx", want.Hull.Idx)
	coordinates("hull_", "xy", want.Hull.Idx)
	if area := r.column("hull_area").(*array.Float64).Value(0); area != want.Hull.Area {
		t.Errorf("%s: the hull's area is %v, the table has %v", name, area, want.Hull.Area)
	}
	axes := "xy"
	if want.Hull3 != nil {
		axes = "xyz"
		checkIdx("hull3d_idx", want.Hull3.Idx)
		checkIdx("hull3d_faces", want.Hull3.Faces)
		coordinates("hull3d_", axes, want.Hull3.Idx)
	}
	for i := range want.Maxima {
		op := "maxima" + strconv.Itoa(strings.Count(want.Maxima[i].Directions, ":")) + "d_"
		checkIdx(op+"idx", want.Maxima[i].Idx)
		coordinates(op, axes[:strings.Count(want.Maxima[i].Directions, ":")], want.Maxima[i].Idx)
	}
	if got := list[int32](r, "triangles"); !slices.Equal(got, want.Triangles) {
		t.Errorf("%s: %d indices of triangles, the table has others (%d)", name, len(got), len(want.Triangles))
	}
	coordinates("mesh_", axes, list[int32](r, "mesh_idx"))
}

// Each frame has a message, and each message has the rows of its frame.
func TestPublishedResultsEqualTheTables(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	for _, name := range []string{"a", "b"} {
		must(t, dir, "produce", "synthetic", "--frames", "4", "--points", "3000", "--rate", "max", "--brokers", brokers,
			"--sequence", name)
	}
	must(t, dir, "produce", "synthetic", "--kind", "sketch", "--frames", "20", "--rate", "max", "--brokers", brokers)
	run := launch(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end", "--tables",
		"hulls,hulls3d,maxima,triangles,points", "--ops", "hull2d,hull3d,maxima2d,maxima3d,delaunay2d",
		"--publish", "survivors", "--for", "hull2d", "--publish-results", "found")
	run.exits(0, patience)
	run.says(`results=28 results_bytes=[1-9]`)
	if n := len(records(t, brokers, "survivors")); n != int(sent(t, brokers, "points")) {
		t.Errorf("%d records of survivors", n)
	}
	store, err := sinks.OpenExisting(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	seen := map[string]bool{}
	for _, m := range records(t, brokers, "found") {
		row := newFoundRow(t, m.Value)
		offset, index := row.column("offset").(*array.Int64).Value(0), row.column("index").(*array.Int32).Value(0)
		partition := row.column("partition").(*array.Int32).Value(0)
		want, _, err := read.ReadFrame(t.Context(), store, read.FrameQuery{Partition: &partition, Offset: &offset,
			Index: &index}, "hulls", "hulls3d", "maxima", "triangles", "points")
		if err != nil {
			t.Fatal(err)
		}
		if (want.Hull3 == nil) != (want.Drawing != nil) {
			t.Errorf("offset %d: a hull in space is there for frames with z: %v", offset, want.Hull3)
		}
		row.equals(want)
		from := fmt.Sprintf("points/%d/%d", partition, offset)
		if want.Drawing != nil {
			from += fmt.Sprintf("/%d", index)
		}
		headers := map[string]string{}
		for _, h := range m.Headers {
			headers[h.Key] = string(h.Value)
		}
		if headers[schemas.HeaderPublishedFrom] != from || headers[schemas.HeaderSequence] != want.Sequence ||
			headers[schemas.HeaderFrameID] != strconv.FormatInt(want.FrameID, 10) ||
			headers[schemas.HeaderTimeNs] != strconv.FormatInt(want.TimeNs, 10) {
			t.Errorf("%s has headers %v", from, headers)
		}
		seen[from] = true
	}
	if len(seen) != 28 {
		t.Errorf("messages of %d frames, want 28", len(seen))
	}
	must(t, dir, "run", "--brokers", brokers, "--topic", "found", "--out", "again", "--until-end", "--max-rejects",
		"none")
	reasons, err := countValues(filepath.Join(dir, "again", "rejects"), "reason")
	if err != nil || len(reasons) != 1 || reasons[schemas.ReasonUnknownSchema] != 28 {
		t.Errorf("results that are read: rejects %v, %v", reasons, err)
	}
}

// Whatever dies, the results of each record are in the topic, and a record that is there
// twice has the same bytes.
func TestResultsArePublishedWhateverDies(t *testing.T) {
	t.Parallel()
	publishesWhateverDies(t, 3, "found", "--publish-results", "found")
}
