package pipeline

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// FrameConfig says what is done with every frame.
type FrameConfig struct {
	// Ops are the operators to run. nil: hull2d and delaunay2d, with maxima3d
	// for clouds with z and maxima2d for those without.
	Ops []schemas.Op
	// Hull3D adds hull3d to what runs when Ops is nil, on clouds with z.
	Hull3D bool
	// Points copies the finite points into the result, for table points.
	Points bool
	// MaxBytes bounds the memory of one decoded message.
	MaxBytes int64
	// OnPanic is told of a panic in an operator, with its stack. May be nil.
	OnPanic func(key schemas.FrameKey, what any, stack []byte)
}

// Frames turns messages of point clouds into results: decode, prepare,
// operate. One a worker; it owns scratch memory and is not for concurrent use.
type Frames struct {
	cfg     FrameConfig
	decoder schemas.Decoder
	memory  memory // of the results of the message at hand
	f32     operators[float32]
	f64     operators[float64]
}

// NewFrames returns a Frames that works as cfg says.
func NewFrames(cfg FrameConfig) *Frames {
	return &Frames{cfg: cfg, decoder: schemas.Decoder{MaxBytes: cfg.MaxBytes}, f32: newOperators[float32](), f64: newOperators[float64]()}
}

// Process is a Process: one result a frame, in order, or a reject where a
// message cannot be decoded or an operator has a bug.
func (f *Frames) Process(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
	frames, err := f.decoder.Decode(m)
	if err != nil {
		return nil, []schemas.Reject{schemas.NewReject(&m, err)}
	}
	results := make([]schemas.Result, 0, len(frames))
	f.memory.begin(len(frames))
	defer f.memory.end(len(frames))
	var rejects []schemas.Reject
	for i := range frames {
		r, err := f.operate(&frames[i])
		if err != nil {
			rejects = append(rejects, schemas.NewReject(&m, err))
			rejects[len(rejects)-1].Index = frames[i].Index
			continue
		}
		r.LatencyNs = time.Since(m.Time).Nanoseconds()
		results = append(results, r)
	}
	return results, rejects
}

// operate runs the stage and the operators on one frame. An operator that
// panics has a bug: the frame becomes a reject, the stream goes on.
func (f *Frames) operate(fr *schemas.Frame) (r schemas.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			if f.cfg.OnPanic != nil {
				f.cfg.OnPanic(fr.FrameKey, p, debug.Stack())
			}
			// The scratch of an operator that was interrupted is not to be trusted.
			f.f32, f.f64 = newOperators[float32](), newOperators[float64]()
			err = &schemas.FormatError{Stage: schemas.StageOperate, Reason: "panic", Detail: fmt.Sprint(p), At: -1}
		}
	}()
	r = schemas.Result{FrameKey: fr.FrameKey, NPoints: int32(fr.Len())}
	f.memory.next()
	if fr.Double {
		f.f64.run(&f.cfg, &f.memory, &r, fr, fr.Cloud64)
	} else {
		f.f32.run(&f.cfg, &f.memory, &r, fr, fr.Cloud32)
	}
	return r, nil
}

var (
	default2D     = []schemas.Op{schemas.Hull2D, schemas.Maxima2D, schemas.Delaunay2D}
	default3D     = []schemas.Op{schemas.Hull2D, schemas.Maxima3D, schemas.Delaunay2D}
	default3DHull = append([]schemas.Op{schemas.Hull3D}, default3D...)
)

// operators are the stage and the operators for one coordinate type.
type operators[T geom.Float] struct {
	stage  preprocess.Stage[T]
	hull   hull.Hull2D[T]
	hull3  hull.Hull3D[T]
	maxima maxima.Maxima[T]
	mesh   delaunay.Triangulator[T]

	vertices, faces []int32         // of a hull in space
	pruned          *schemas.Pruned // of the frame at hand; nil: it is whole
}

// newOperators leaves out the half-edges: no table holds them.
func newOperators[T geom.Float]() operators[T] {
	return operators[T]{mesh: delaunay.Triangulator[T]{NoHalfedges: true}}
}

// run fills r from fr, whose cloud is c: first the stage, then each operator in
// turn.
func (o *operators[T]) run(cfg *FrameConfig, m *memory, r *schemas.Result, fr *schemas.Frame, c geom.Cloud[T]) {
	in, report := o.stage.Apply(c)
	r.NDropped = int32(report.Dropped)
	if o.pruned = fr.Pruned; o.pruned != nil {
		r.NPoints, r.NDropped = o.pruned.NPoints, o.pruned.NDropped
	}
	r.Stage = string(report.Mode)
	ops := cfg.Ops
	if ops == nil {
		ops = default2D
		switch {
		case c.Z != nil && cfg.Hull3D:
			ops = default3DHull
		case c.Z != nil:
			ops = default3D
		}
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
	}
	if cfg.Points {
		r.Points = o.copyPoints(&in, fr.Intensity)
	}
}

// operate runs one operator, adds its rows to r and returns how it ended.
func (o *operators[T]) operate(op schemas.Op, m *memory, r *schemas.Result, in *preprocess.Prepared[T]) (schemas.Status, int) {
	switch op {
	case schemas.Hull2D:
		r.Hull = o.hullOf(m, in)
		return r.Hull.Status, len(r.Hull.Idx)
	case schemas.Hull3D:
		r.Hull3 = o.hull3Of(in)
		return r.Hull3.Status, len(r.Hull3.Idx)
	case schemas.Maxima2D:
		return addMaxima(m, r, "x:max,y:max", o.original(in, m.keep(o.maxima.Append2D(m.room(), in.Cloud))))
	case schemas.Maxima3D:
		return addMaxima(m, r, "x:max,y:max,z:max", o.original(in, m.keep(o.maxima.Append3D(m.room(), in.Cloud))))
	case schemas.Delaunay2D:
		mesh := o.mesh.Triangulate(in.Cloud)
		r.Triangles = o.original(in, m.copy(mesh.Triangles))
		if len(mesh.Triangles) > 0 {
			return schemas.StatusOK, len(mesh.Triangles) / 3
		}
		return degenerate(len(mesh.Hull)), 0
	}
	panic("pipeline: no such operator")
}

func (o *operators[T]) hullOf(m *memory, in *preprocess.Prepared[T]) *schemas.Hull {
	idx := m.keep(o.hull.Append(m.room(), in.Cloud))
	xy, n := m.numbers(2*len(idx)), len(idx)
	h := m.hull()
	*h = schemas.Hull{X: xy[:n:n], Y: xy[n:], Status: degenerate(n)}
	h.Area, h.Perimeter = hull.Measure(in.Cloud, idx)
	for k, i := range idx {
		h.X[k], h.Y[k] = float64(in.Cloud.X[i]), float64(in.Cloud.Y[i])
	}
	h.Idx = o.original(in, idx)
	return h
}

// hull3Of keeps no more than the hull: its memory is the operator's, grown for
// what was larger.
func (o *operators[T]) hull3Of(in *preprocess.Prepared[T]) *schemas.Hull3 {
	v, f, dim := o.hull3.Append(o.vertices[:0], o.faces[:0], in.Cloud)
	o.vertices, o.faces = v, f
	h := &schemas.Hull3{Status: dimensions[dim+1]}
	h.Area, h.Volume = hull.Measure3D(in.Cloud, f)
	h.Idx, h.Faces = o.original(in, slices.Clone(v)), o.original(in, slices.Clone(f))
	return h
}

// original maps numbers of points to those in the whole frame as received, in
// place. Both mappings ascend, so that canonical orders survive them.
func (o *operators[T]) original(in *preprocess.Prepared[T], idx []int32) []int32 {
	idx = in.Original(idx)
	if o.pruned != nil {
		for i, v := range idx {
			idx[i] = o.pruned.Index[v]
		}
	}
	return idx
}

// dimensions are the statuses of a hull in space, of dimension -1 to 3.
var dimensions = [5]schemas.Status{schemas.StatusEmpty, schemas.StatusDegeneratePoint, schemas.StatusDegenerateLine, schemas.StatusDegeneratePlane, schemas.StatusOK}

// degenerate is the status of a hull with so many vertices.
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

func addMaxima(m *memory, r *schemas.Result, directions string, idx []int32) (schemas.Status, int) {
	if r.Maxima == nil {
		r.Maxima = one(&m.maxima, m.frames)[:0]
	}
	r.Maxima = append(r.Maxima, schemas.Maxima{Directions: directions, Idx: idx})
	if len(idx) == 0 {
		return schemas.StatusEmpty, 0
	}
	return schemas.StatusOK, len(idx)
}

// copyPoints copies the prepared cloud with each point's number as received.
func (o *operators[T]) copyPoints(in *preprocess.Prepared[T], intensity []float32) *schemas.Points {
	p := &schemas.Points{Idx: make([]int32, in.Cloud.Len())}
	for i := range p.Idx {
		p.Idx[i] = int32(i)
	}
	in.Original(p.Idx)
	switch c := any(in.Cloud).(type) {
	case geom.Cloud[float32]:
		p.X32, p.Y32, p.Z32 = clone(c.X), clone(c.Y), clone(c.Z)
	case geom.Cloud[float64]:
		p.X64, p.Y64, p.Z64 = clone(c.X), clone(c.Y), clone(c.Z)
	}
	if intensity != nil {
		p.Intensity = make([]float32, len(p.Idx))
		for k, i := range p.Idx {
			p.Intensity[k] = intensity[i]
		}
	}
	if o.pruned != nil {
		for k, i := range p.Idx {
			p.Idx[k] = o.pruned.Index[i]
		}
	}
	return p
}

func clone[T any](v []T) []T { return append([]T(nil), v...) }
