package pipeline

import (
	"fmt"
	"runtime/debug"
	"time"

	"entropipe/models"
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
	// Stage is shared by all workers. nil: mode off.
	Stage *Stage
	// Publish are the operators that what is published of a frame is enough for;
	// 0: nothing is published.
	Publish schemas.OpSet
	// EntropyEvery: every so many frames the entropy is measured, for table
	// entropy; 0: never.
	EntropyEvery int64
	// MaxBytes bounds the memory of one decoded message.
	MaxBytes int64
	// Raw names the topics whose values may be raw .bin without a header.
	Raw schemas.RawTopics
	// OnPanic is told of a panic in an operator, with its stack. May be nil.
	OnPanic func(key schemas.FrameKey, what any, stack []byte)
}

// Frames turns messages of point clouds into results: decode, prepare,
// operate. One a worker; it owns scratch memory and is not for concurrent use.
type Frames struct {
	cfg     FrameConfig
	decoder schemas.Decoder
	memory  memory // of the results of the message at hand
	f32     *operators[float32]
	f64     *operators[float64]
	model   *models.EntropyNet // that the operators' stages use
	sender  sender
	scratch outgrown
}

// NewFrames returns a Frames that works as cfg says.
func NewFrames(cfg FrameConfig) *Frames {
	f := &Frames{cfg: cfg, decoder: schemas.Decoder{MaxBytes: cfg.MaxBytes, Raw: cfg.Raw}}
	if cfg.Stage != nil {
		f.model = cfg.Stage.model.Load()
	}
	f.begin()
	return f
}

// begin makes new operators: those of a worker that begins, or whose scratch
// memory is not to be trusted, or far too large, or whose model has changed.
func (f *Frames) begin() {
	f.f32, f.f64 = newOperators[float32](f.cfg.Stage, f.model), newOperators[float64](f.cfg.Stage, f.model)
}

// Process is a Process: one result a frame, in order, or a reject where a
// message cannot be decoded or an operator has a bug.
func (f *Frames) Process(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
	frames, err := f.decoder.Decode(m)
	if err != nil {
		return nil, []schemas.Reject{schemas.NewReject(&m, err)}
	}
	if s := f.cfg.Stage; s != nil && s.model.Load() != f.model {
		f.model = s.model.Load()
		f.begin()
	}
	results := make([]schemas.Result, 0, len(frames))
	f.memory.begin(len(frames))
	defer f.memory.end(len(frames))
	var rejects []schemas.Reject
	for i := range frames {
		r, err := f.operate(&m, &frames[i])
		if err != nil {
			rejects = refuse(rejects, &m, frames[i].Index, err)
			continue
		}
		if m.SentAt() != 0 { // else nobody knows
			r.LatencyNs = time.Since(m.Time).Nanoseconds()
		}
		results = append(results, r)
	}
	if f.cfg.Publish != 0 && len(results) > 0 {
		results[0].Publish = f.sender.record(&m, frames, results[0].Publish)
	}
	if f.scratch.after(frames) {
		f.decoder = schemas.Decoder{MaxBytes: f.cfg.MaxBytes, Raw: f.cfg.Raw}
		f.begin()
	}
	return results, rejects
}

// refuse appends the reject of one frame or sequence of m.
func refuse(rejects []schemas.Reject, m *schemas.Message, index int32, err error) []schemas.Reject {
	if len(rejects) > 0 {
		return append(rejects, rejects[0].Another(index, err))
	}
	r := schemas.NewReject(m, err)
	r.Index = index
	return append(rejects, r)
}

// operate runs the stage and the operators on one frame. An operator that
// panics has a bug: the frame becomes a reject, the stream goes on.
func (f *Frames) operate(m *schemas.Message, fr *schemas.Frame) (r schemas.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			if f.cfg.OnPanic != nil {
				f.cfg.OnPanic(fr.FrameKey, p, debug.Stack())
			}
			// The scratch of an operator that was interrupted is not to be trusted.
			f.begin()
			err = &schemas.FormatError{Stage: schemas.StageOperate, Reason: "panic", Detail: fmt.Sprint(p), At: -1}
		}
	}()
	r = schemas.Result{FrameKey: fr.FrameKey, NPoints: int32(fr.Len())}
	f.memory.next()
	var keep []int32
	if fr.Double {
		keep = f.f64.run(&f.cfg, &f.memory, &r, fr, fr.Cloud64)
	} else {
		keep = f.f32.run(&f.cfg, &f.memory, &r, fr, fr.Cloud32)
	}
	if keep != nil {
		r.Publish, err = f.sender.survivors(m, fr, &r, keep, f.cfg.Publish)
	}
	return r, err
}
