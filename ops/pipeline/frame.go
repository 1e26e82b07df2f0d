package pipeline

import (
	"fmt"
	"runtime/debug"
	"time"

	"entropipe/models"
	"entropipe/ops/live"
	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// FrameConfig configures the processing of frames. Its zero value runs the default
// operators.
type FrameConfig struct {
	// Ops are the operators to run. If Ops is nil, hull2d and delaunay2d run, with
	// maxima3d on clouds that have z and maxima2d on clouds that have none.
	Ops []schemas.Op
	// Hull3D adds hull3d to the default operators on clouds that have z.
	Hull3D bool
	// Points copies the finite points into the result, for table points.
	Points bool
	// Stage is shared by all workers; nil is mode off.
	Stage *Stage
	// Publish are the operators for which the published points of a frame suffice;
	// 0 publishes nothing.
	Publish schemas.OpSet
	// Results publishes what the operators found in each frame, as results/1.
	Results bool
	// EntropyEvery is the stride of entropy measurements: one frame in EntropyEvery
	// gets rows in table entropy; 0 measures none.
	EntropyEvery int64
	// MaxBytes bounds the memory of one decoded message; 0 is the decoder's default.
	MaxBytes int64
	// ContentTypes names the topics whose values without header content-type are no Arrow
	// streams.
	ContentTypes schemas.ContentTypes
	// Metrics, if not nil, counts the time of decoding.
	Metrics *metrics.Metrics
	// OnPanic, if not nil, is called in the worker with the value and the stack of
	// an operator's panic.
	OnPanic func(key schemas.FrameKey, what any, stack []byte)
	// Archive says that times of messages are those of recorded items: results have no
	// latency.
	Archive bool
	// Tap, if not nil, is offered the frames that somebody watches.
	Tap *live.Tap
}

// Frames turns messages of point clouds into results: decode, prepare,
// operate. Each worker has its own Frames, since a Frames owns scratch memory and
// is not for concurrent use.
type Frames struct {
	cfg     FrameConfig
	decoder schemas.Decoder
	memory  memory // holds the results of the current message
	f32     *operators[float32]
	f64     *operators[float64]
	model   *models.EntropyNet // the model of f32's and f64's stages
	sender  sender
	scratch outgrown
}

// NewFrames returns a Frames with the configuration cfg.
func NewFrames(cfg FrameConfig) *Frames {
	f := &Frames{cfg: cfg, decoder: schemas.Decoder{MaxBytes: cfg.MaxBytes, ContentTypes: cfg.ContentTypes}}
	if cfg.Stage != nil {
		f.model = cfg.Stage.model.Load()
	}
	f.begin()
	return f
}

// begin makes new operators. A worker needs them when it starts, after a panic left
// the scratch memory undefined, when the scratch is far too large, and when the
// model has changed.
func (f *Frames) begin() {
	f.f32, f.f64 = newOperators[float32](f.cfg.Stage, f.model), newOperators[float64](f.cfg.Stage, f.model)
}

// Process is a Process. It returns one result or reject for each frame of m, in
// order of the frames' index, and one reject if m cannot be decoded. An operator
// that panics makes its frame a reject.
func (f *Frames) Process(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
	f.decoder.Strokes = f.cfg.Tap.Watched()
	start := time.Now()
	frames, err := f.decoder.Decode(m)
	if f.cfg.Metrics != nil {
		f.cfg.Metrics.Decoded(time.Since(start))
	}
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
		if m.SentAt() != 0 && !f.cfg.Archive { // a record without a timestamp has no latency
			r.LatencyNs = time.Since(m.Time).Nanoseconds()
		}
		results = append(results, r)
	}
	if f.cfg.Publish != 0 && len(results) > 0 {
		results[0].Publish = f.sender.record(&m, frames, results[0].Publish)
	}
	if f.scratch.after(frames) {
		f.decoder = schemas.Decoder{MaxBytes: f.cfg.MaxBytes, ContentTypes: f.cfg.ContentTypes}
		f.sender = sender{}
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
			// The panic may have left any operator's scratch half written.
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
	if f.cfg.Results && err == nil {
		r.Found, err = f.sender.found(m, fr, &r)
	}
	if err == nil && f.cfg.Tap.Wants(&fr.FrameKey) {
		f.show(m, fr, &r)
	}
	return r, err
}

// show offers the frame to those who watch. A panic is told and changes no result.
func (f *Frames) show(m *schemas.Message, fr *schemas.Frame, r *schemas.Result) {
	defer func() {
		if p := recover(); p != nil && f.cfg.OnPanic != nil {
			f.cfg.OnPanic(fr.FrameKey, p, debug.Stack())
		}
	}()
	f.cfg.Tap.Offer(live.Capture(m, fr, r))
}
