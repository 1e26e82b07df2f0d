package schemas

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// SchemaResults is the schema of what a run found in one frame. No run reads it.
const SchemaResults = "results/1"

// AppendResults appends a results/1 stream of r to dst: a batch of one row with the
// columns of docs/messages.md. f is the frame of r; coordinates are taken from it, unless
// r has them. The columns have the same names and types in every message, and are null
// where an operator did not run. The row has no times of the computation: the same frame
// gives the same bytes.
func (e *Encoder) AppendResults(dst []byte, r *Result, f *Frame) ([]byte, error) {
	e.row = resultsRow{columns: columns{rows: 1}, frame: f, mesh: e.row.mesh}
	w := &e.row
	w.key(&r.FrameKey)
	w.numbers32("n_points", r.NPoints)
	w.numbers32("n_dropped", r.NDropped)
	for op := range NumOps {
		status := string(r.Ops[op].Status)
		w.text("status_"+op.String(), status, status != "")
	}
	w.hull(r)
	w.hull3(r)
	w.maxima(r, Maxima2D, "xy")
	w.maxima(r, Maxima3D, "xyz")
	w.triangles(r)
	dst, err := e.append(dst, &w.columns, arrow.NewMetadata([]string{"schema", "unit"},
		[]string{SchemaResults, unit(r)}))
	e.row = resultsRow{mesh: w.mesh} // nothing of the frame is kept
	return dst, err
}

// unit returns the unit of the coordinates of r.
func unit(r *Result) string {
	if r.Drawing != nil {
		return "px"
	}
	return "m"
}

// resultsRow makes the columns of a results/1 row.
type resultsRow struct {
	columns
	frame *Frame
	mesh  []uint64 // a bit for each point that is a corner of a triangle
}

// key adds the columns that identify the frame.
func (w *resultsRow) key(k *FrameKey) {
	w.text("topic", k.Topic, true)
	w.numbers32("partition", k.Partition)
	w.numbers64("offset", k.Offset)
	w.numbers32("index", k.Index)
	w.text("dataset", k.Dataset, true)
	w.text("sequence", k.Sequence, true)
	w.text("sensor", k.Sensor, true)
	w.numbers64("frame_id", k.FrameID)
	w.numbers64("ts_ns", k.TimeNs)
	var drawing Drawing
	if k.Drawing != nil {
		drawing = *k.Drawing
	}
	w.scalar("drawing_id", arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes([]int64{drawing.ID}),
		k.Drawing != nil)
	w.text("label", drawing.Label, k.Drawing != nil)
	var pose []float64
	if k.Pose != nil {
		pose = k.Pose[:]
	}
	w.floats("pose", pose, pose != nil)
}

// ran tells whether an operator ran on the frame of r.
func ran(r *Result, op Op) bool {
	switch r.Ops[op].Status {
	case "", StatusNotRun, StatusPrunedInput:
		return false
	}
	return true
}

func (w *resultsRow) hull(r *Result) {
	h, ok := r.Hull, r.Hull != nil
	if !ok {
		h = &Hull{}
	}
	w.ints("hull_idx", h.Idx, ok)
	w.floats("hull_x", h.X, ok)
	w.floats("hull_y", h.Y, ok)
	w.float("hull_area", h.Area, ok)
	w.float("hull_perimeter", h.Perimeter, ok)
	w.bound("hull_error_bound", h.ErrorBound)
}

func (w *resultsRow) hull3(r *Result) {
	h, ok := r.Hull3, r.Hull3 != nil
	if !ok {
		h = &Hull3{}
	}
	w.ints("hull3d_idx", h.Idx, ok)
	w.coordinates("hull3d_", "xyz", h.Idx, ok)
	w.ints("hull3d_faces", h.Faces, ok)
	w.float("hull3d_area", h.Area, ok)
	w.float("hull3d_volume", h.Volume, ok)
	w.bound("hull3d_error_bound", h.ErrorBound)
}

// maxima adds the columns of one maxima operator. r.Maxima holds those of the operators
// that ran, told apart by the number of their directions.
func (w *resultsRow) maxima(r *Result, op Op, axes string) {
	m, ok := &Maxima{}, false
	for i := range r.Maxima {
		if strings.Count(r.Maxima[i].Directions, ",")+1 == len(axes) {
			m, ok = &r.Maxima[i], true
		}
	}
	w.ints(op.String()+"_idx", m.Idx, ok)
	w.coordinates(op.String()+"_", axes, m.Idx, ok)
	w.bound(op.String()+"_error_bound", m.ErrorBound)
}

// triangles adds the mesh: its corners, ascending, and the triangles as numbers of points.
func (w *resultsRow) triangles(r *Result) {
	ok := ran(r, Delaunay2D)
	words := 0
	for _, v := range r.Triangles {
		words = max(words, int(v)>>6+1)
	}
	w.mesh = resize(w.mesh, words)
	clear(w.mesh)
	for _, v := range r.Triangles {
		w.mesh[v>>6] |= 1 << (v & 63)
	}
	var corners []int32
	for i, word := range w.mesh {
		for b := range 64 {
			if word>>b&1 != 0 {
				corners = append(corners, int32(i<<6+b))
			}
		}
	}
	w.ints("mesh_idx", corners, ok)
	w.coordinates("mesh_", "xyz", corners, ok)
	w.ints("triangles", r.Triangles, ok)
}

// coordinates adds a list for each of axes, with the coordinates of the points idx. z is
// null for a cloud without z.
func (w *resultsRow) coordinates(prefix, axes string, idx []int32, ok bool) {
	f := w.frame
	at := idx
	if f.Pruned != nil { // points are numbered in the whole frame
		at = make([]int32, len(idx))
		for k, i := range idx {
			n, found := slices.BinarySearch(f.Pruned.Index, i)
			if !found {
				w.err = fmt.Errorf("column %sidx names point %d, which the pruned frame does not have", prefix, i)
				return
			}
			at[k] = int32(n)
		}
	}
	for axis, name := range axes {
		there := ok && (axis < 2 || f.HasZ())
		var v []float64
		if there {
			v = make([]float64, len(at))
			if f.Double {
				c := [...][]float64{f.Cloud64.X, f.Cloud64.Y, f.Cloud64.Z}[axis]
				for k, i := range at {
					v[k] = c[i]
				}
			} else {
				c := [...][]float32{f.Cloud32.X, f.Cloud32.Y, f.Cloud32.Z}[axis]
				for k, i := range at {
					v[k] = float64(c[i])
				}
			}
		}
		w.floats(prefix+string(name), v, there)
	}
}

// The methods below add a column of one row. ok false is a null.

func (w *resultsRow) numbers32(name string, v int32) {
	w.scalar(name, arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes([]int32{v}), true)
}

func (w *resultsRow) numbers64(name string, v int64) {
	w.scalar(name, arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes([]int64{v}), true)
}

func (w *resultsRow) float(name string, v float64, ok bool) {
	w.scalar(name, arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes([]float64{v}), ok)
}

// bound adds the bound of an error; nil means exact, which is null as in the tables.
func (w *resultsRow) bound(name string, v *float64) {
	if v == nil {
		w.float(name, 0, false)
		return
	}
	w.float(name, *v, true)
}

func (w *resultsRow) ints(name string, v []int32, ok bool) {
	w.list(name, arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(v), len(v), ok)
}

func (w *resultsRow) floats(name string, v []float64, ok bool) {
	w.list(name, arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(v), len(v), ok)
}

func (w *resultsRow) scalar(name string, dt arrow.DataType, value []byte, ok bool) {
	w.column(name, dt, []*memory.Buffer{validity(ok), memory.NewBufferBytes(value)}, nil, ok)
}

func (w *resultsRow) text(name, s string, ok bool) {
	ends := []int32{0, int32(len(s))}
	w.column(name, arrow.BinaryTypes.String, []*memory.Buffer{validity(ok),
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(ends)), memory.NewBufferBytes([]byte(s))}, nil, ok)
}

// list adds a list of n values, which must fit into the offsets of a list.
func (w *resultsRow) list(name string, of arrow.DataType, values []byte, n int, ok bool) {
	if n > math.MaxInt32 {
		w.err = fmt.Errorf("column %s has %d values; a list has at most %d", name, n, math.MaxInt32)
		return
	}
	items := array.NewData(of, n, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0)
	ends := []int32{0, int32(n)}
	w.column(name, arrow.ListOf(of), []*memory.Buffer{validity(ok),
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(ends))}, []arrow.ArrayData{items}, ok)
}

func (w *resultsRow) column(name string, dt arrow.DataType, buffers []*memory.Buffer, children []arrow.ArrayData,
	ok bool) {
	nulls := 0
	if !ok {
		nulls = 1
	}
	w.fields = append(w.fields, arrow.Field{Name: name, Type: dt, Nullable: true})
	w.arrays = append(w.arrays, array.MakeFromData(array.NewData(dt, 1, buffers, children, nulls, 0)))
}

// validity returns the bitmap of one value; nil: all are there.
func validity(ok bool) *memory.Buffer {
	if ok {
		return nil
	}
	return memory.NewBufferBytes([]byte{0})
}

// ResultsRecord returns the record of what was found in the frame r of m; value is a
// results/1 stream, which the record owns. It has the key and the headers of m, with those
// that m leaves to defaults spelled out. Frames of a message of drawings have their index
// in HeaderPublishedFrom, because each is a record of its own.
func ResultsRecord(m *Message, r *Result, value []byte) *Record {
	rec := publishedRecord(m, value)
	if r.Drawing != nil {
		from := &rec.Headers[0].Value
		*from = fmt.Appendf(*from, "/%d", r.Index)
	}
	rec.Headers = append(rec.Headers, Headers(r.FrameKey, SchemaResults, "/run/"+m.Topic)...)
	for i := range m.Headers {
		if h := &m.Headers[i]; !replaced(h.Key) {
			rec.Headers = append(rec.Headers, Header{strings.Clone(h.Key), bytes.Clone(h.Value)})
		}
	}
	return rec
}
