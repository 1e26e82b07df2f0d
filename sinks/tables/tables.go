// Package tables turns batches into the Parquet files of an output's tables. Its
// Encoder is the sinks.Encoder of the program.
//
// It commits nothing and reads no file: package sinks stages and publishes what
// an Encoder writes, package read reads it back.
//
// Vocabulary. A table is a kind of file with fixed columns: frames, hulls, tokens
// and so on (schemas/docs/tables.md). A row group is the part of a file that is
// encoded at once, and holds whole frames. A folder key is a property of frames
// that names a folder of a table: dataset, sequence or date. The footer is a
// file's key-value metadata.
package tables

import (
	"fmt"
	"slices"
	"strings"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Names of the tables; those of sequences are in tokens.go.
const (
	Frames    = record.Frames
	Hulls     = "hulls"
	Hulls3D   = "hulls3d"
	Maxima    = "maxima"
	Triangles = "triangles"
	Points    = "points"
	Entropy   = "entropy"
	Rejects   = "rejects"
)

// SchemaVersion is the version of the tables. It stands in store.json and in
// every file's footer, and changes when a column is added, or its name, type or
// meaning changes: a folder of two schemas is an error in Polars and DuckDB, and
// loses columns without a word in pyarrow.
const SchemaVersion = 2

// table is one kind of file. add appends the rows of one frame; has tells
// whether there are any, so that no empty file is made.
type table struct {
	name string
	row  any // a struct whose tags are the schema; it is never filled
	has  func(*schemas.Result) bool
	add  func(*tableWriter, *schemas.Result)
}

// The tables. points is two of them, because a file's coordinates have one
// width: float32, or float64 if any frame of the file came so.
var (
	framesTable      = &table{Frames, framesRow{}, func(r *schemas.Result) bool { return r.Tokens == nil }, addFrame}
	hullsTable       = &table{Hulls, hullsRow{}, func(r *schemas.Result) bool { return r.Hull != nil }, addHull}
	hulls3DTable     = &table{Hulls3D, hulls3DRow{}, func(r *schemas.Result) bool { return r.Hull3 != nil }, addHull3D}
	maximaTable      = &table{Maxima, maximaRow{}, func(r *schemas.Result) bool { return len(r.Maxima) > 0 }, addMaxima}
	trianglesTable   = &table{Triangles, trianglesRow{}, func(r *schemas.Result) bool { return len(r.Triangles) > 0 }, addTriangles}
	pointsTable      = &table{Points, pointsRow{}, hasPoints, addPoints}
	pointsTableWide  = &table{Points, pointsRowWide{}, hasPoints, addPointsWide}
	entropyTable     = &table{Entropy, entropyRow{}, func(r *schemas.Result) bool { return len(r.Entropy) > 0 }, addEntropy}
	rejectsTable     = &table{name: Rejects, row: rejectsRow{}}
	selectableTables = []*table{hullsTable, hulls3DTable, maximaTable, trianglesTable, pointsTable, entropyTable}
	allTables        = slices.Concat([]*table{framesTable}, selectableTables, sequenceTables, []*table{rejectsTable})
)

// Names returns the names of all tables, in the order in which a commit writes them.
func Names() []string {
	names := make([]string, len(allTables))
	for i, t := range allTables {
		names[i] = t.name
	}
	return names
}

func hasPoints(r *schemas.Result) bool { return r.Points != nil && len(r.Points.Idx) > 0 }

// selectTables returns the tables that are always written and those of these
// names, each once, in the order in which files are written.
func selectTables(names []string) ([]*table, error) {
	want := map[string]bool{}
	for _, name := range names {
		want[name] = true
	}
	delete(want, Frames)
	delete(want, Rejects)
	for _, t := range sequenceTables {
		delete(want, t.name)
	}
	selected := []*table{framesTable}
	for _, t := range selectableTables {
		if want[t.name] {
			selected = append(selected, t)
			delete(want, t.name)
		}
	}
	for _, name := range names {
		if want[name] {
			return nil, &sinks.ConfigError{Field: "tables", Problem: fmt.Sprintf("there is no table %q; there are frames, tokens, attention_stats and rejects (always), hulls, hulls3d, maxima, triangles, points, entropy", name)}
		}
	}
	return append(selected, sequenceTables...), nil
}

// The rows. Columns are written in the order of the fields, by the functions
// in rows.go. Traps of the readers that these tags avoid: nanosecond timestamps
// (cut by DuckDB, refused by Spark before 4), enum (binary in pyarrow), a
// geometry logical type (refused by Polars and older Arrow), unsigned integers,
// and a column that is also a folder key.

// keys begin the rows of all tables but triangles, points and rejects.
type keys struct {
	Sequence  string `parquet:"sequence,dict"`
	FrameID   int64  `parquet:"frame_id,delta"`
	Sensor    string `parquet:"sensor,dict"`
	TS        int64  `parquet:"ts,delta,timestamp(microsecond)"`
	TSNs      int64  `parquet:"ts_ns,delta"`
	Partition int32  `parquet:"partition,delta"`
	Offset    int64  `parquet:"offset,delta"`
	Index     int32  `parquet:"index,delta"`
}

// shortKeys begin the rows of triangles and points: what joins them to frames,
// and frame_id for people.
type shortKeys struct {
	FrameID   int64 `parquet:"frame_id,delta"`
	Partition int32 `parquet:"partition,delta"`
	Offset    int64 `parquet:"offset,delta"`
	Index     int32 `parquet:"index,delta"`
}

type framesRow struct {
	keys
	NPoints          int32  `parquet:"n_points,delta"`
	NDropped         int32  `parquet:"n_dropped,delta"`
	StatusHull2D     string `parquet:"status_hull2d,optional,dict"`
	NHull2D          int32  `parquet:"n_hull2d,optional,delta"`
	Hull2DNs         int64  `parquet:"hull2d_ns,optional,delta"`
	StatusHull3D     string `parquet:"status_hull3d,optional,dict"`
	NHull3D          int32  `parquet:"n_hull3d,optional,delta"`
	Hull3DNs         int64  `parquet:"hull3d_ns,optional,delta"`
	StatusMaxima2D   string `parquet:"status_maxima2d,optional,dict"`
	NMaxima2D        int32  `parquet:"n_maxima2d,optional,delta"`
	Maxima2DNs       int64  `parquet:"maxima2d_ns,optional,delta"`
	StatusMaxima3D   string `parquet:"status_maxima3d,optional,dict"`
	NMaxima3D        int32  `parquet:"n_maxima3d,optional,delta"`
	Maxima3DNs       int64  `parquet:"maxima3d_ns,optional,delta"`
	StatusDelaunay2D string `parquet:"status_delaunay2d,optional,dict"`
	NDelaunay2D      int32  `parquet:"n_delaunay2d,optional,delta"`
	Delaunay2DNs     int64  `parquet:"delaunay2d_ns,optional,delta"`
	DrawingID        int64  `parquet:"drawing_id,optional,delta"`
	Label            string `parquet:"label,optional,dict"`
	Stage            string `parquet:"stage,optional,dict"`
	ModelSHA256      string `parquet:"model_sha256,optional,dict"`
	LatencyNs        int64  `parquet:"latency_ns,delta"`
	// Pose is sensor to world: 12 numbers, the upper three rows of the matrix.
	Pose []float64 `parquet:"pose,optional,list"`
}

type hullsRow struct {
	keys
	NPoints    int32   `parquet:"n_points,delta"`
	NHull      int32   `parquet:"n_hull,delta"`
	Area       float64 `parquet:"area"`
	Perimeter  float64 `parquet:"perimeter"`
	Geometry   []byte  `parquet:"geometry,optional"`
	BBox       *bbox   `parquet:"bbox,optional"`
	HullIdx    []int32 `parquet:"hull_idx,list" parquet-element:",delta"`
	ErrorBound float64 `parquet:"error_bound,optional"`
	Status     string  `parquet:"status,dict"`
}

type bbox struct {
	XMin float64 `parquet:"xmin"`
	YMin float64 `parquet:"ymin"`
	XMax float64 `parquet:"xmax"`
	YMax float64 `parquet:"ymax"`
}

type hulls3DRow struct {
	keys
	NPoints    int32   `parquet:"n_points,delta"`
	NHull      int32   `parquet:"n_hull,delta"`
	HullIdx    []int32 `parquet:"hull_idx,list" parquet-element:",delta"`
	Faces      []int32 `parquet:"faces,list" parquet-element:",delta"`
	Area       float64 `parquet:"area"`
	Volume     float64 `parquet:"volume"`
	ErrorBound float64 `parquet:"error_bound,optional"`
	Status     string  `parquet:"status,dict"`
}

type maximaRow struct {
	keys
	Directions string  `parquet:"directions,dict"`
	Idx        []int32 `parquet:"idx,list" parquet-element:",delta"`
	ErrorBound float64 `parquet:"error_bound,optional"`
}

type trianglesRow struct {
	shortKeys
	TriID int32 `parquet:"tri_id,delta"`
	V0    int32 `parquet:"v0,delta"`
	V1    int32 `parquet:"v1,delta"`
	V2    int32 `parquet:"v2,delta"`
}

type pointsRow struct {
	shortKeys
	PointIdx  int32   `parquet:"point_idx,delta"`
	X         float32 `parquet:"x,split"`
	Y         float32 `parquet:"y,split"`
	Z         float32 `parquet:"z,optional,split"`
	Intensity float32 `parquet:"intensity,optional,split"`
	pointFields
}

type pointsRowWide struct {
	shortKeys
	PointIdx  int32   `parquet:"point_idx,delta"`
	X         float64 `parquet:"x,split"`
	Y         float64 `parquet:"y,split"`
	Z         float64 `parquet:"z,optional,split"`
	Intensity float32 `parquet:"intensity,optional,split"`
	pointFields
}

// pointFields end the rows of points: what sensors and data sets say of a point
// besides coordinates and intensity.
type pointFields struct {
	Ring       int32   `parquet:"ring,optional,delta"`
	Return     int32   `parquet:"return,optional,delta"`
	Laser      int32   `parquet:"laser,optional,delta"`
	Label      int32   `parquet:"label,optional,delta"`
	Elongation float32 `parquet:"elongation,optional,split"`
	TOffsetNs  int64   `parquet:"t_offset_ns,optional,delta"`
	Red        int32   `parquet:"red,optional,delta"`
	Green      int32   `parquet:"green,optional,delta"`
	Blue       int32   `parquet:"blue,optional,delta"`
}

// numPointFields is the number of columns of pointFields.
const numPointFields = 9

type entropyRow struct {
	keys
	Op            string  `parquet:"op,dict"`
	NHullOrMaxima int32   `parquet:"n_hull_or_maxima,delta"`
	Lower         float64 `parquet:"lower"`
	Upper         float64 `parquet:"upper"`
	Kind          string  `parquet:"kind,dict"`
	F             float64 `parquet:"f,optional"`
	NSurvivors    int32   `parquet:"n_survivors,delta"`
	Stage         string  `parquet:"stage,optional,dict"` // before, after: which side of the stage was measured
}

type rejectsRow struct {
	Partition   int32  `parquet:"partition,delta"`
	Offset      int64  `parquet:"offset,delta"`
	Index       int32  `parquet:"index,delta"`
	TS          int64  `parquet:"ts,delta,timestamp(microsecond)"`
	TSNs        int64  `parquet:"ts_ns,delta"`
	Stage       string `parquet:"stage,dict"`
	Reason      string `parquet:"reason,dict"`
	Message     string `parquet:"message"`
	Key         []byte `parquet:"key,optional"`
	Headers     string `parquet:"headers"`
	Value       []byte `parquet:"value,optional"`
	ValueSize   int64  `parquet:"value_size,delta"`
	ValueSHA256 string `parquet:"value_sha256,optional"`
	Retriable   bool   `parquet:"retriable"`
}

// addKeys appends the columns of keys.
func addKeys(t *tableWriter, k *schemas.FrameKey) {
	if !t.noSequence {
		t.text(k.Sequence)
	}
	t.int64(k.FrameID)
	t.text(k.Sensor)
	t.int64(microseconds(k.TimeNs))
	t.int64(k.TimeNs)
	t.int32(k.Partition)
	t.int64(k.Offset)
	t.int32(k.Index)
}

// microseconds rounds down, before 1970 too.
func microseconds(ns int64) int64 {
	us := ns / 1000
	if ns%1000 < 0 {
		us--
	}
	return us
}

func addFrame(t *tableWriter, r *schemas.Result) {
	t.begin(1, 256)
	addKeys(t, &r.FrameKey)
	t.int32(r.NPoints)
	t.int32(r.NDropped)
	for _, op := range &r.Ops {
		if op.Status == "" {
			t.nulls(3)
			continue
		}
		t.text(string(op.Status))
		t.int32(op.N)
		t.int64(op.Ns)
	}
	if r.Drawing == nil {
		t.nulls(2)
	} else {
		t.int64(r.Drawing.ID)
		t.text(r.Drawing.Label)
	}
	t.textOrNull(r.Stage)
	t.textOrNull(r.ModelSHA)
	t.int64(r.LatencyNs)
	t.nulls(1) // pose
	t.end(1)
}

func addHull3D(t *tableWriter, r *schemas.Result) {
	h := r.Hull3
	t.begin(1, 192+4*(len(h.Idx)+len(h.Faces)))
	addKeys(t, &r.FrameKey)
	t.int32(r.NPoints)
	t.int32(int32(len(h.Idx)))
	t.list(h.Idx)
	t.list(h.Faces)
	t.float64(h.Area)
	t.float64(h.Volume)
	t.floatOrNull(h.ErrorBound)
	t.text(string(h.Status))
	t.end(1)
}

func addMaxima(t *tableWriter, r *schemas.Result) {
	size := 0
	for i := range r.Maxima {
		size += 128 + 4*len(r.Maxima[i].Idx)
	}
	t.begin(len(r.Maxima), size)
	for i := range r.Maxima {
		m := &r.Maxima[i]
		addKeys(t, &r.FrameKey)
		t.text(m.Directions)
		t.list(m.Idx)
		t.floatOrNull(m.ErrorBound)
		t.end(1)
	}
}

func addEntropy(t *tableWriter, r *schemas.Result) {
	t.begin(len(r.Entropy), 160*len(r.Entropy))
	for i := range r.Entropy {
		e := &r.Entropy[i]
		addKeys(t, &r.FrameKey)
		t.text(e.Op.String())
		t.int32(e.N)
		t.float64(e.Lower)
		t.float64(e.Upper)
		t.text(e.Kind)
		t.floatOrNull(e.F)
		t.int32(e.Survivors)
		t.nulls(1) // stage
		t.end(1)
	}
}

// addTriangles works by column, a frame at once: its rows are as many as the
// points.
func addTriangles(t *tableWriter, r *schemas.Result) {
	n := len(r.Triangles) / 3
	t.begin(n, n*40)
	addShortKeys(t, &r.FrameKey, n)
	t.count32(0, n)
	for v := range 3 {
		t.stride32(r.Triangles[v:], 3, n)
	}
	t.end(n)
}

func addShortKeys(t *tableWriter, f *schemas.FrameKey, n int) {
	t.repeat64(f.FrameID, n)
	t.repeat32(f.Partition, n)
	t.repeat64(f.Offset, n)
	t.repeat32(f.Index, n)
}

func addPoints(t *tableWriter, r *schemas.Result) {
	p := r.Points
	addPointColumns(t, r, func(from, to int) {
		t.floats32(p.X32[from:to])
		t.floats32(p.Y32[from:to])
		if p.Z32 == nil {
			t.absent(1, to-from)
		} else {
			t.floats32(p.Z32[from:to])
		}
	})
}

// addPointsWide takes frames of either width: float32 widens exactly.
func addPointsWide(t *tableWriter, r *schemas.Result) {
	p := r.Points
	axis := func(narrow []float32, wide []float64, from, to int) {
		switch {
		case wide != nil:
			floats64(t, wide[from:to])
		case narrow != nil:
			floats64(t, narrow[from:to])
		default:
			t.absent(1, to-from)
		}
	}
	addPointColumns(t, r, func(from, to int) {
		axis(p.X32, p.X64, from, to)
		axis(p.Y32, p.Y64, from, to)
		axis(p.Z32, p.Z64, from, to)
	})
}

// addPointColumns appends the points of a frame column by column, a chunk of
// rows at a time; coordinates appends x, y and z of points [from, to).
func addPointColumns(t *tableWriter, r *schemas.Result, coordinates func(from, to int)) {
	p := r.Points
	t.begin(len(p.Idx), len(p.Idx)*56)
	for from := 0; from < len(p.Idx); from += chunkRows {
		to := min(from+chunkRows, len(p.Idx))
		addShortKeys(t, &r.FrameKey, to-from)
		t.stride32(p.Idx[from:], 1, to-from)
		coordinates(from, to)
		if p.Intensity == nil {
			t.absent(1, to-from)
		} else {
			t.floats32(p.Intensity[from:to])
		}
		t.absent(numPointFields, to-from)
		t.end(to - from)
	}
}

// validText returns s, with what is not UTF-8 replaced: a string column must
// be readable, whatever a producer wrote into a header.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
