package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/paulmach/orb"
	"github.com/paulmach/orb/encoding/wkb"

	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// ReadFrame is the inverse of a commit: it returns the first frame that matches query
// q, by topic and partition, then offset and index. Besides table frames it reads the
// other named tables, out of hulls, hulls3d, maxima, triangles and points; absent
// lists the tables of which the frame's commit has no file in the frame's folder. *NoFrameError:
// there is no such frame.
//
// Cost: all manifests before the frame's are opened, and row groups that may have the
// frame are read. Memory: the frame, and the keys of one row group.
func ReadFrame(ctx context.Context, store sinks.Reader, q FrameQuery, others ...string) (r *schemas.Result,
	absent []string, err error) {
	if _, err := Identify(ctx, store); err != nil {
		return nil, nil, err
	}
	found, err := (&finder{store: store, query: q}).find(ctx)
	if err != nil {
		return nil, nil, err
	}
	open := openTables{ctx: ctx, store: store}
	defer open.close()
	return open.frame(found, others)
}

// fileOf returns the file of a table in the folder of the frame; nil: there is none.
func (f *foundFrame) fileOf(name string) *record.File {
	path := name + strings.TrimPrefix(f.file.Path, tables.Frames)
	for i := range f.manifest.Files {
		if f.manifest.Files[i].Path == path {
			return &f.manifest.Files[i]
		}
	}
	return nil
}

// tableReaders fill a result from the rows of one frame.
var tableReaders = map[string]func(*frameRows, *schemas.Result){
	tables.Frames:    fillFrame,
	tables.Hulls:     fillHull,
	tables.Hulls3D:   fillHull3D,
	tables.Maxima:    fillMaxima,
	tables.Triangles: fillTriangles,
	tables.Points:    fillPoints,
}

// frameRows are the rows of one frame in a file. The first error is kept; columns read
// after it are empty.
type frameRows struct {
	file     *parquetfile.File
	group    int
	from, to int64
	err      error
}

// each calls put for each value of a column, in order. Dots separate the parts of a
// nested column's name.
func (r *frameRows) each(column string, put func(v parquet.Value)) {
	if r.err == nil {
		r.err = r.read(column, put)
	}
}

func (r *frameRows) read(column string, put func(v parquet.Value)) error {
	leaf, ok := r.file.Schema().Lookup(strings.Split(column, ".")...)
	if !ok {
		return fmt.Errorf("it has no column %s", column)
	}
	pages := r.file.Pages(r.group, leaf.ColumnIndex)
	defer pages.Close()
	if err := pages.SeekToRow(r.from); err != nil {
		return err
	}
	// index of the row that begins with the next value of repetition level 0
	row := r.from
	for row < r.to || row == r.to && leaf.MaxRepetitionLevel > 0 { // a list may go on in the next page
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if row, err = readValues(page, row, r.to, put); err != nil {
			return err
		}
	}
	if row < r.to {
		return fmt.Errorf("column %s ends at row %d of %d", column, row, r.to)
	}
	return nil
}

// readValues calls put for the values of a page that belong to rows before to, and
// releases the page. It returns the next row; to+1: the values that follow belong to
// later rows.
func readValues(page parquet.Page, row, to int64, put func(v parquet.Value)) (int64, error) {
	defer parquet.Release(page)
	var values [256]parquet.Value
	reader := page.Values()
	for {
		n, err := reader.ReadValues(values[:])
		for _, v := range values[:n] {
			if v.RepetitionLevel() == 0 {
				if row == to {
					return to + 1, nil
				}
				row++
			}
			put(v)
		}
		if errors.Is(err, io.EOF) {
			return row, nil
		}
		if err != nil {
			return row, err
		}
	}
}

// The methods below return the value of a column in the last row, or in all rows. A null
// is zero, nil or left out.

func (r *frameRows) int32(column string) (n int32) {
	r.each(column, func(v parquet.Value) { n = v.Int32() })
	return n
}

func (r *frameRows) int64(column string) (n int64) {
	r.each(column, func(v parquet.Value) { n = v.Int64() })
	return n
}

func (r *frameRows) float64(column string) (x float64) {
	r.each(column, func(v parquet.Value) { x = v.Double() })
	return x
}

func (r *frameRows) floatOrNil(column string) (x *float64) {
	r.each(column, func(v parquet.Value) {
		if !v.IsNull() {
			x = new(v.Double())
		}
	})
	return x
}

func (r *frameRows) text(column string) (s string) {
	r.each(column, func(v parquet.Value) { s = string(v.ByteArray()) })
	return s
}

func (r *frameRows) int32s(column string) (list []int32) {
	r.each(column, func(v parquet.Value) {
		if !v.IsNull() {
			list = append(list, v.Int32())
		}
	})
	return list
}

// has tells whether the file has a column, as files of older schemas may not, and whether
// some value of its row group may not be null.
func (r *frameRows) has(column string) bool {
	leaf, ok := r.file.Schema().Lookup(strings.Split(column, ".")...)
	if !ok {
		return false
	}
	m := &r.file.Metadata().RowGroups[r.group].Columns[leaf.ColumnIndex].MetaData
	return m.Statistics.NullCount == 0 || m.Statistics.NullCount < m.NumValues
}

func (r *frameRows) float32s(column string) (list []float32) {
	r.each(column, func(v parquet.Value) {
		if !v.IsNull() {
			list = append(list, v.Float())
		}
	})
	return list
}

func (r *frameRows) float64s(column string) (list []float64) {
	r.each(column, func(v parquet.Value) {
		if !v.IsNull() {
			list = append(list, v.Double())
		}
	})
	return list
}

// optional32s returns the column with codec.NoInt32 for null; nil if the file has no such
// column, or nothing but nulls.
func (r *frameRows) optional32s(column string) (list []int32) {
	some := false
	r.eachIfThere(column, func(v parquet.Value) {
		if v.IsNull() {
			list = append(list, codec.NoInt32)
			return
		}
		list, some = append(list, v.Int32()), true
	})
	if !some {
		return nil
	}
	return list
}

// optional64s is optional32s for int64.
func (r *frameRows) optional64s(column string) (list []int64) {
	some := false
	r.eachIfThere(column, func(v parquet.Value) {
		if v.IsNull() {
			list = append(list, codec.NoInt64)
			return
		}
		list, some = append(list, v.Int64()), true
	})
	if !some {
		return nil
	}
	return list
}

// elongation returns the column of that name; nil if the file has none, or only nulls.
func (r *frameRows) elongation() (list []float32) {
	some := false
	r.eachIfThere("elongation", func(v parquet.Value) {
		if v.IsNull() {
			list = append(list, float32(math.NaN()))
			return
		}
		list, some = append(list, v.Float()), true
	})
	if !some {
		return nil
	}
	return list
}

// eachIfThere is each for a column that files of an earlier format lack.
func (r *frameRows) eachIfThere(column string, put func(v parquet.Value)) {
	if _, ok := r.file.Schema().Lookup(strings.Split(column, ".")...); ok {
		r.each(column, put)
	}
}

func fillFrame(rows *frameRows, r *schemas.Result) {
	r.Dataset = footerOf(rows.file, "entropipe.dataset")
	if r.Sequence = footerOf(rows.file, "entropipe.sequence"); r.Sequence == "" {
		r.Sequence = rows.text("sequence")
	}
	r.Sensor, r.FrameID, r.TimeNs = rows.text("sensor"), rows.int64("frame_id"), rows.int64("ts_ns")
	r.NPoints, r.NDropped = rows.int32("n_points"), rows.int32("n_dropped")
	for op := range schemas.NumOps {
		name := op.String()
		r.Ops[op] = schemas.OpResult{Status: schemas.Status(rows.text("status_" + name)), N: rows.int32("n_" + name),
			Ns: rows.int64(name + "_ns")}
	}
	rows.each("drawing_id", func(v parquet.Value) {
		if !v.IsNull() {
			r.Drawing = &schemas.Drawing{ID: v.Int64()}
		}
	})
	if r.Drawing != nil {
		r.Drawing.Label = rows.text("label")
	}
	var pose []float64
	rows.eachIfThere("pose.list.element", func(v parquet.Value) {
		if !v.IsNull() {
			pose = append(pose, v.Double())
		}
	})
	if len(pose) == len(codec.Pose{}) {
		r.Pose = (*codec.Pose)(pose)
	}
	if rows.has("pose.list.element") {
		if pose := rows.float64s("pose.list.element"); len(pose) == len(codec.Pose{}) {
			r.Pose = (*codec.Pose)(pose)
		}
	}
	r.Stage, r.ModelSHA, r.LatencyNs = rows.text("stage"), rows.text("model_sha256"), rows.int64("latency_ns")
}

func fillHull(rows *frameRows, r *schemas.Result) {
	h := &schemas.Hull{Idx: rows.int32s("hull_idx.list.element"), Area: rows.float64("area"),
		Perimeter:  rows.float64("perimeter"),
		ErrorBound: rows.floatOrNil("error_bound"), Status: schemas.Status(rows.text("status"))}
	r.Hull = h
	var vertices []orb.Point
	rows.each("geometry", func(v parquet.Value) {
		if v.IsNull() {
			return
		}
		g, err := wkb.Unmarshal(v.ByteArray())
		if err != nil {
			rows.err = fmt.Errorf("column geometry: %w", err)
			return
		}
		switch g := g.(type) {
		case orb.Point:
			vertices = []orb.Point{g}
		case orb.LineString:
			vertices = g
		case orb.Polygon:
			vertices = g[0][:len(g[0])-1] // the ring is closed
		}
	})
	for _, p := range vertices {
		h.X, h.Y = append(h.X, p[0]), append(h.Y, p[1])
	}
}

func fillHull3D(rows *frameRows, r *schemas.Result) {
	r.Hull3 = &schemas.Hull3{Idx: rows.int32s("hull_idx.list.element"), Faces: rows.int32s("faces.list.element"),
		Area:   rows.float64("area"),
		Volume: rows.float64("volume"), ErrorBound: rows.floatOrNil("error_bound"),
		Status: schemas.Status(rows.text("status"))}
}

func fillMaxima(rows *frameRows, r *schemas.Result) {
	rows.each("directions", func(v parquet.Value) {
		r.Maxima = append(r.Maxima, schemas.Maxima{Directions: string(v.ByteArray())})
	})
	i := -1
	rows.each("idx.list.element", func(v parquet.Value) {
		if v.RepetitionLevel() == 0 {
			i++
		}
		if !v.IsNull() {
			r.Maxima[i].Idx = append(r.Maxima[i].Idx, v.Int32())
		}
	})
	i = 0
	rows.each("error_bound", func(v parquet.Value) {
		if !v.IsNull() {
			r.Maxima[i].ErrorBound = new(v.Double())
		}
		i++
	})
}

func fillTriangles(rows *frameRows, r *schemas.Result) {
	r.Triangles = make([]int32, 3*(rows.to-rows.from))
	for v, column := range []string{"v0", "v1", "v2"} {
		i := v
		rows.each(column, func(v parquet.Value) { r.Triangles[i] = v.Int32(); i += 3 })
	}
}

func fillPoints(rows *frameRows, r *schemas.Result) {
	p := &schemas.Points{Idx: rows.int32s("point_idx"), Intensity: rows.float32s("intensity")}
	r.Points = p
	columns := p.Extra.Int32s()
	for i, name := range codec.Int32Names {
		*columns[i] = rows.optional32s(name)
	}
	p.Elongation, p.TOffsetNs = rows.elongation(), rows.optional64s("t_offset_ns")
	if leaf, ok := rows.file.Schema().Lookup("x"); ok && leaf.Node.Type().Kind() == parquet.Double {
		p.X64, p.Y64, p.Z64 = rows.float64s("x"), rows.float64s("y"), rows.float64s("z")
		return
	}
	p.X32, p.Y32, p.Z32 = rows.float32s("x"), rows.float32s("y"), rows.float32s("z")
}
