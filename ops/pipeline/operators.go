package pipeline

import (
	"slices"
	"time"

	"entropipe/algos/delaunay"
	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/models"
	"entropipe/preprocess"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

var (
	default2D     = []schemas.Op{schemas.Hull2D, schemas.Maxima2D, schemas.Delaunay2D}
	default3D     = []schemas.Op{schemas.Hull2D, schemas.Maxima3D, schemas.Delaunay2D}
	default3DHull = append([]schemas.Op{schemas.Hull3D}, default3D...)
)

// operators holds the stage and the operators for one coordinate type, with their
// scratch memory.
type operators[T geom.Float] struct {
	stage  *preprocess.Stage[T]
	plain  preprocess.Stage[T]  // mode off, for streams that have no model
	active *preprocess.Stage[T] // stage or plain, for the current frame
	hull   hull.Hull2D[T]
	hull3  hull.Hull3D[T]
	maxima maxima.Maxima[T]
	mesh   delaunay.Triangulator[T]

	vertices, faces []int32         // scratch for the hull in space
	pruned          *schemas.Pruned // how the current frame was pruned; nil if it is whole
	keep            []int32         // scratch for survivors
	surrogates      surrogates[T]
	meter           entropy.Meter[T]
	found           []int32 // scratch: points that an operator found, numbered in the prepared cloud
}

// newOperators returns operators for the model m, which shared has accepted. The
// triangulation leaves out half-edges, because no table holds them.
func newOperators[T geom.Float](shared *Stage, m *models.EntropyNet) *operators[T] {
	o := &operators[T]{stage: &preprocess.Stage[T]{}, mesh: delaunay.Triangulator[T]{NoHalfedges: true}}
	if shared == nil {
		return o
	}
	var err error
	if o.stage, err = preprocess.New[T](stageConfig(shared.cfg.Mode, m)); err != nil {
		panic("pipeline: the stage refuses a model that it accepted before: " + err.Error())
	}
	return o
}

// run sets r from fr, whose cloud is c: it runs the stage and then each operator in
// turn. It returns the numbers of the points to publish, or nil if the frame's
// points are not to be published.
func (o *operators[T]) run(
	cfg *FrameConfig,
	m *memory,
	r *schemas.Result,
	fr *schemas.Frame,
	c geom.Cloud[T],
) []int32 {
	ops := cfg.OpsForPlane()
	if c.Z != nil {
		ops = cfg.OpsForSpace()
	}
	in, report := o.prepare(cfg, &fr.FrameKey, c, ops)
	r.NDropped = int32(report.Dropped)
	if o.pruned = fr.Pruned; o.pruned != nil {
		r.NPoints, r.NDropped = o.pruned.NPoints, o.pruned.NDropped
	}
	if report.Mode != preprocess.Off {
		r.Stage, r.ModelSHA = string(report.Mode), report.Model
	}
	for _, op := range ops {
		if c.Z == nil && (op == schemas.Hull3D || op == schemas.Maxima3D) {
			r.Ops[op].Status = schemas.StatusNotRun
			continue
		}
		if o.pruned != nil && !o.pruned.For.Has(op) {
			r.Ops[op].Status = schemas.StatusPrunedInput
			continue
		}
		start := time.Now()
		status, n := o.operate(op, m, r, &in)
		r.Ops[op] = schemas.OpResult{Status: status, N: int32(n), Ns: time.Since(start).Nanoseconds()}
		if op == schemas.Hull3D && cfg.Stage.givesHints() {
			o.noteHints(cfg.Stage, &fr.FrameKey, &in)
		}
	}
	if measured(&fr.FrameKey, in.Cloud.Len(), ops, cfg.EntropyEvery) {
		o.measure(r, &in)
	}
	if cfg.Points {
		r.Points = o.copyPoints(&in, &fr.Points)
	}
	if cfg.Publish == 0 || fr.Drawing != nil {
		return nil
	}
	return o.survivors(cfg.Publish, r, &in)
}

// OpsForPlane returns the operators that run on a cloud without z. The caller must
// not change the slice.
func (cfg *FrameConfig) OpsForPlane() []schemas.Op {
	if cfg.Ops != nil {
		return cfg.Ops
	}
	return default2D
}

// OpsForSpace returns the operators that run on a cloud with z. The caller must not
// change the slice.
func (cfg *FrameConfig) OpsForSpace() []schemas.Op {
	switch {
	case cfg.Ops != nil:
		return cfg.Ops
	case cfg.Hull3D:
		return default3DHull
	}
	return default3D
}

// prepare runs the stage on c for the operators ops.
func (o *operators[T]) prepare(cfg *FrameConfig, k *schemas.FrameKey, c geom.Cloud[T],
	ops []schemas.Op) (preprocess.Prepared[T], preprocess.Report) {
	shared := cfg.Stage
	if shared == nil {
		o.active = o.stage
		return o.active.Apply(c)
	}
	start, dims, want := time.Now(), 2, schemas.OpSet(0)
	if c.Z != nil {
		dims = 3
	}
	if shared.givesHints() {
		want = cfg.Publish
	}
	for _, op := range ops {
		want = want.With(op)
	}
	model, hints := shared.use(k, dims, want)
	o.active, o.stage.Unhinted = o.stage, !hints
	if !model {
		o.active = &o.plain
	}
	in, report := o.active.Apply(c)
	shared.cfg.Metrics.Prepared(string(report.Mode), time.Since(start))
	return in, report
}

// noteHints tells shared how hull3d ran with its hints, or without hints that drift
// or the schedule of unhinted frames kept from it.
func (o *operators[T]) noteHints(shared *Stage, k *schemas.FrameKey, in *preprocess.Prepared[T]) {
	hinted, n := len(in.Hints.Hull3D) > 0, in.Cloud.Len()
	if o.active == &o.plain || !hinted && (!o.stage.Unhinted || n < preprocess.HintFrom) {
		return
	}
	left, used := o.hull3.Survivors()
	shared.note(k, hinted, used, float64(left)/float64(max(n, 1)))
}

// operate runs one operator, adds its rows to r and returns how it ended.
func (o *operators[T]) operate(op schemas.Op, m *memory, r *schemas.Result,
	in *preprocess.Prepared[T]) (schemas.Status, int) {
	switch op {
	case schemas.Hull2D:
		r.Hull = o.hullOf(m, in)
		return r.Hull.Status, len(r.Hull.Idx)
	case schemas.Hull3D:
		r.Hull3 = o.hull3Of(in)
		return r.Hull3.Status, len(r.Hull3.Idx)
	case schemas.Maxima2D, schemas.Maxima3D:
		return o.addMaxima(op, m, r, in)
	case schemas.Delaunay2D:
		mesh := o.mesh.Triangulate(in.Cloud)
		r.Triangles = o.original(in, m.copy(mesh.Triangles))
		if len(mesh.Triangles) > 0 {
			return schemas.StatusOK, len(mesh.Triangles) / 3
		}
		return degenerate(len(mesh.Hull)), 0
	}
	panic("pipeline: operate does not know the operator")
}

func (o *operators[T]) hullOf(m *memory, in *preprocess.Prepared[T]) *schemas.Hull {
	idx, wrong := m.room(), (*float64)(nil)
	if o.active.Approximates(preprocess.Hull2D, in) {
		wrong = new(float64)
		idx, *wrong = o.active.Hull2D(idx, in)
	} else {
		idx = o.hull.Append(idx, in.Cloud)
	}
	idx = m.keep(idx)
	xy, n := m.numbers(2*len(idx)), len(idx)
	h := m.hull()
	*h = schemas.Hull{X: xy[:n:n], Y: xy[n:], Status: degenerate(n), ErrorBound: wrong}
	h.Area, h.Perimeter = hull.Measure(in.Cloud, idx)
	for k, i := range idx {
		h.X[k], h.Y[k] = float64(in.Cloud.X[i]), float64(in.Cloud.Y[i])
	}
	h.Idx = o.original(in, idx)
	return h
}

// hull3Of returns the hull in space. It copies vertices and faces out of scratch
// memory, which may have grown for a larger hull.
func (o *operators[T]) hull3Of(in *preprocess.Prepared[T]) *schemas.Hull3 {
	v, f, dim, wrong := o.vertices[:0], o.faces[:0], 0, (*float64)(nil)
	if o.active.Approximates(preprocess.Hull3D, in) {
		wrong = new(float64)
		v, f, dim, *wrong = o.active.Hull3D(v, f, in)
	} else {
		o.hull3.Seeds = in.Hints.Hull3D
		v, f, dim = o.hull3.Append(v, f, in.Cloud)
	}
	o.vertices, o.faces = v, f
	h := &schemas.Hull3{Status: dimensions[dim+1], ErrorBound: wrong}
	h.Area, h.Volume = hull.Measure3D(in.Cloud, f)
	h.Idx, h.Faces = o.original(in, slices.Clone(v)), o.original(in, slices.Clone(f))
	return h
}

// original maps point numbers in the prepared cloud to numbers in the whole frame
// as received, in place. Both mappings ascend, so canonical orders are kept.
func (o *operators[T]) original(in *preprocess.Prepared[T], idx []int32) []int32 {
	idx = in.Original(idx)
	if o.pruned != nil {
		for i, v := range idx {
			idx[i] = o.pruned.Index[v]
		}
	}
	return idx
}

// dimensions[d+1] is the status of a hull in space of dimension d = -1 to 3.
var dimensions = [5]schemas.Status{schemas.StatusEmpty, schemas.StatusDegeneratePoint, schemas.StatusDegenerateLine,
	schemas.StatusDegeneratePlane, schemas.StatusOK}

// degenerate returns the status of a plane hull from its number of vertices.
func degenerate(vertices int) schemas.Status {
	switch vertices {
	case 0:
		return schemas.StatusEmpty
	case 1:
		return schemas.StatusDegeneratePoint
	case 2:
		return schemas.StatusDegenerateLine
	}
	return schemas.StatusOK
}

func (o *operators[T]) addMaxima(op schemas.Op, m *memory, r *schemas.Result,
	in *preprocess.Prepared[T]) (schemas.Status, int) {
	idx, wrong := m.room(), (*float64)(nil)
	switch space := op == schemas.Maxima3D; {
	case space && o.active.Approximates(preprocess.Maxima3D, in):
		wrong = new(float64)
		idx, *wrong = o.active.Maxima3D(idx, in)
	case space:
		idx = o.maxima.Append3D(idx, in.Cloud)
	case o.active.Approximates(preprocess.Maxima2D, in):
		wrong = new(float64)
		idx, *wrong = o.active.Maxima2D(idx, in)
	default:
		idx = o.maxima.Append2D(idx, in.Cloud)
	}
	idx = o.original(in, m.keep(idx))
	if r.Maxima == nil {
		r.Maxima = one(&m.maxima, m.frames)[:0]
	}
	r.Maxima = append(r.Maxima, schemas.Maxima{Directions: maximaDirections[op], Idx: idx, ErrorBound: wrong})
	if len(idx) == 0 {
		return schemas.StatusEmpty, 0
	}
	return schemas.StatusOK, len(idx)
}

// pick returns a copy of column, of the values at the positions idx; nil positions: of all. It
// returns nil for a column that is absent.
func pick[T any](column []T, idx []int32) []T {
	if column == nil || idx == nil {
		return clone(column)
	}
	values := make([]T, len(idx))
	for k, i := range idx {
		values[k] = column[i]
	}
	return values
}

// copyPoints copies the prepared cloud, with each point's number in the frame as
// received.
func (o *operators[T]) copyPoints(in *preprocess.Prepared[T], from *codec.Points) *schemas.Points {
	p := &schemas.Points{}
	if n := in.Cloud.Len(); n < from.Len() || o.pruned != nil {
		p.Idx = make([]int32, n)
		for i := range p.Idx {
			p.Idx[i] = int32(i)
		}
		in.Original(p.Idx)
	}
	switch c := any(in.Cloud).(type) {
	case geom.Cloud[float32]:
		p.X32, p.Y32, p.Z32 = clone(c.X), clone(c.Y), clone(c.Z)
	case geom.Cloud[float64]:
		p.X64, p.Y64, p.Z64 = clone(c.X), clone(c.Y), clone(c.Z)
	}
	p.Intensity = pick(from.Intensity, p.Idx)
	p.Elongation = pick(from.Elongation, p.Idx)
	p.TOffsetNs = pick(from.TOffsetNs, p.Idx)
	columns := p.Extra.Int32s()
	for i, v := range from.Extra.Int32s() {
		*columns[i] = pick(*v, p.Idx)
	}
	if o.pruned != nil {
		for k, i := range p.Idx {
			p.Idx[k] = o.pruned.Index[i]
		}
	}
	return p
}

func clone[T any](v []T) []T { return append([]T(nil), v...) }
