package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"entropipe/algos/geom"
)

// resultsOf reads a results/1 stream by Arrow's own reader, as the JSON of its row.
func resultsOf(t *testing.T, value []byte) (row map[string]any, columns []string) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if schema, ok := r.Schema().Metadata().GetValue("schema"); !ok || schema != SchemaResults {
		t.Errorf("the stream says schema %q", schema)
	}
	if !r.Next() || r.Record().NumRows() != 1 {
		t.Fatalf("the stream has no batch of one row: %v", r.Err())
	}
	text, err := r.Record().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Schema().Fields() {
		columns = append(columns, f.Name+" "+f.Type.String())
	}
	if r.Next() {
		t.Error("the stream has a second batch")
	}
	return rows[0], columns
}

func listOf[T float64 | int32](v ...T) any {
	all := []any{}
	for _, x := range v {
		all = append(all, float64(x))
	}
	return all
}

// A row has what the operators found, with the coordinates of the points as received, and
// nulls where an operator did not run. All rows have the same columns.
func TestResultsHaveIndicesAndCoordinates(t *testing.T) {
	wrong := 0.5
	whole := Frame{}
	whole.Cloud32 = geom.Cloud[float32]{X: []float32{0, 1, .25, 0}, Y: []float32{0, 0, .25, 1},
		Z: []float32{1, 2, 3, 4}}
	pruned := Frame{Pruned: &Pruned{Index: []int32{5, 70, 900}}}
	pruned.Double = true
	pruned.Cloud64 = geom.Cloud[float64]{X: []float64{.1, .2, .3}, Y: []float64{9, 8, 7}, Z: []float64{1, 2, 3}}
	flat := Frame{}
	flat.Cloud32 = geom.Cloud[float32]{X: []float32{3}, Y: []float32{4}}
	var first []string
	for name, c := range map[string]struct {
		frame  *Frame
		result Result
		want   map[string]any // the rest is null
	}{
		"mesh": {&whole, Result{NPoints: 4, Triangles: []int32{0, 1, 2, 0, 2, 3, 1, 3, 2},
			Ops:  [NumOps]OpResult{Delaunay2D: {Status: StatusOK}, Hull2D: {Status: StatusOK}},
			Hull: &Hull{Idx: []int32{0, 1, 3}, X: []float64{0, 1, 0}, Y: []float64{0, 0, 1}, Area: .5, Perimeter: 3.5}},
			map[string]any{"n_points": 4., "status_delaunay2d": "ok", "status_hull2d": "ok",
				"triangles": listOf[int32](0, 1, 2, 0, 2, 3, 1, 3, 2), "mesh_idx": listOf[int32](0, 1, 2, 3),
				"mesh_x": listOf(0, 1, .25, 0), "mesh_y": listOf(0, 0, .25, 1), "mesh_z": listOf[float64](1, 2, 3, 4),
				"hull_idx": listOf[int32](0, 1, 3), "hull_x": listOf[float64](0, 1, 0),
				"hull_y":    listOf[float64](0, 0, 1),
				"hull_area": .5, "hull_perimeter": 3.5}},
		"pruned": {&pruned, Result{NPoints: 1000, NDropped: 2,
			Ops: [NumOps]OpResult{Maxima3D: {Status: StatusOK}, Hull3D: {Status: StatusOK},
				Hull2D: {Status: StatusPrunedInput}},
			Maxima: []Maxima{{Directions: "x:max,y:max,z:max", Idx: []int32{5, 900}, ErrorBound: &wrong}},
			Hull3:  &Hull3{Idx: []int32{70}, Faces: []int32{}, Area: 1, Volume: 2}},
			map[string]any{"n_points": 1000., "n_dropped": 2., "status_maxima3d": "ok", "status_hull3d": "ok",
				"status_hull2d": "pruned_input",
				"maxima3d_idx":  listOf[int32](5, 900), "maxima3d_x": listOf(.1, .3),
				"maxima3d_y": listOf[float64](9, 7),
				"maxima3d_z": listOf[float64](1, 3), "maxima3d_error_bound": .5,
				"hull3d_idx": listOf[int32](70), "hull3d_x": listOf(.2), "hull3d_y": listOf(8.), "hull3d_z": listOf(2.),
				"hull3d_faces": listOf[int32](), "hull3d_area": 1., "hull3d_volume": 2.}},
		"drawing": {&flat, Result{FrameKey: FrameKey{Index: 3, Drawing: &Drawing{ID: 1 << 50, Label: "cat"}},
			NPoints: 1,
			Ops: [NumOps]OpResult{Delaunay2D: {Status: StatusDegeneratePoint}, Maxima2D: {Status: StatusOK},
				Maxima3D: {Status: StatusNotRun}},
			Maxima: []Maxima{{Directions: "x:max,y:max", Idx: []int32{0}}}},
			map[string]any{"n_points": 1., "index": 3., "drawing_id": float64(1 << 50), "label": "cat",
				"status_delaunay2d": "degenerate_point", "status_maxima2d": "ok", "status_maxima3d": "not_run",
				"maxima2d_idx": listOf[int32](0), "maxima2d_x": listOf(3.), "maxima2d_y": listOf(4.),
				"mesh_idx": listOf[int32](), "mesh_x": listOf[int32](), "mesh_y": listOf[int32](),
				"triangles": listOf[int32]()}},
	} {
		c.result.Topic, c.result.Dataset, c.result.Sequence, c.result.Offset = "t", "d", "s", 7
		var e Encoder
		value, err := e.AppendResults(nil, &c.result, c.frame)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		row, columns := resultsOf(t, value)
		want := map[string]any{"topic": "t", "dataset": "d", "sequence": "s", "sensor": "", "offset": 7., "index": 0.,
			"partition": 0., "frame_id": 0., "ts_ns": 0., "n_dropped": 0.}
		for column := range row {
			if _, ok := want[column]; !ok {
				want[column] = nil
			}
		}
		for column, v := range c.want {
			want[column] = v
		}
		if diff := cmp.Diff(want, row); diff != "" {
			t.Errorf("%s (-want +row):\n%s", name, diff)
		}
		if first == nil {
			first = columns
		} else if !slices.Equal(first, columns) {
			t.Errorf("%s has other columns:\n%s", name, cmp.Diff(first, columns))
		}
		again, err := e.AppendResults(nil, &c.result, c.frame)
		if err != nil || !bytes.Equal(value, again) {
			t.Errorf("%s: the same result gives other bytes, %v", name, err)
		}
	}
}

// A result that names a point which its frame does not have is an error, and no panic.
func TestResultsOfStrangePoints(t *testing.T) {
	f := Frame{Pruned: &Pruned{Index: []int32{5}}}
	f.Cloud32 = geom.Cloud[float32]{X: []float32{1}, Y: []float32{1}}
	r := Result{Maxima: []Maxima{{Directions: "x:max,y:max", Idx: []int32{6}}}}
	dst := []byte("before")
	if got, err := new(Encoder).AppendResults(dst, &r, &f); err == nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
}

// The record has the key and headers of its source; a run that reads it refuses it by name.
func TestResultsAreNoInput(t *testing.T) {
	m := Message{Topic: "points", Partition: 2, Offset: 31, Key: []byte("drive"), Headers: []Header{
		{"Frame_ID", []byte("9")}, {"mine", []byte("kept")}, {HeaderContentType, []byte(ContentTypeKITTI)}}}
	r := Result{FrameKey: FrameKey{Dataset: "d", Sequence: "drive", Sensor: "top", FrameID: 9, TimeNs: 5,
		Topic: "points", Partition: 2, Offset: 31}}
	value, err := new(Encoder).AppendResults(nil, &r, &Frame{})
	if err != nil {
		t.Fatal(err)
	}
	rec := ResultsRecord(&m, &r, value)
	for name, want := range map[string]string{HeaderPublishedFrom: "points/2/31", HeaderSchema: SchemaResults,
		HeaderContentType: ContentTypeArrow, HeaderFrameID: "9", "mine": "kept", HeaderSensor: "top",
		HeaderTimeNs: "5"} {
		if got := string(headerValue(rec.Headers, name)); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if string(rec.Key) != "drive" || rec.From != 2 {
		t.Errorf("the record has key %q of partition %d", rec.Key, rec.From)
	}
	r.Drawing, r.Index = &Drawing{}, 4
	if got := string(ResultsRecord(&m, &r, nil).Headers[0].Value); got != "points/2/31/4" {
		t.Errorf("a drawing is published from %s", got)
	}
	_, err = new(Decoder).Decode(Message{Value: rec.Value, Headers: rec.Headers})
	if fault, ok := err.(*FormatError); !ok || fault.Reason != ReasonUnknownSchema ||
		!strings.Contains(fault.Detail, "--publish-results") {
		t.Errorf("decoding results: %v", err)
	}
}

func BenchmarkAppendResults(b *testing.B) {
	const n = 100_000
	f := Frame{}
	f.Cloud32 = geom.Cloud[float32]{X: make([]float32, n), Y: make([]float32, n), Z: make([]float32, n)}
	r := Result{NPoints: n, Ops: [NumOps]OpResult{Delaunay2D: {Status: StatusOK}}}
	for i := range int32(n - 2) {
		r.Triangles = append(r.Triangles, i, i+1, i+2, i, i+2, i+1)
	}
	var e Encoder
	var value []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if value, err = e.AppendResults(value[:0], &r, &f); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(value)))
}
