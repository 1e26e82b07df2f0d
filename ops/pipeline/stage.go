package pipeline

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"entropipe/models"
	"entropipe/ops/metrics"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// StageConfig says what the stage before the operators does. Metrics and Log
// are needed.
type StageConfig struct {
	Mode  preprocess.Mode
	Model *models.EntropyNet // nil where the mode needs none
	// Stop is told when frames are of another stream than the model's, and is
	// to end the run. nil: they go without it, and a warning says so once.
	Stop    func(error)
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// Stage is what workers share of the stage before the operators: the model in
// use, which may be replaced while they work, and of every stream whether hints
// help it. A stream is a data set and a sensor. Its methods may be called from
// any goroutine.
type Stage struct {
	cfg   StageConfig
	model atomic.Pointer[models.EntropyNet]

	mu      sync.Mutex
	streams map[streamName]*stream
}

type streamName struct{ dataset, sensor string }

// stream is what has become of a stream's hints.
type stream struct {
	watch   preprocess.Watch
	foreign bool // the model is not for it
}

// maxStreams bounds the streams that are remembered: their names come from
// producers. One more, and all begin anew.
const maxStreams = 1024

// NewStage returns a Stage, or why the mode and the model do not go together.
func NewStage(cfg StageConfig) (*Stage, error) {
	s := &Stage{cfg: cfg}
	return s, s.Replace(cfg.Model)
}

// Replace makes workers use another model from their next record on. On an
// error they keep the one that they have.
func (s *Stage) Replace(m *models.EntropyNet) error {
	if _, err := preprocess.New[float32](stageConfig(s.cfg.Mode, m)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Store(m)
	s.streams = map[streamName]*stream{}
	s.count()
	return nil
}

func stageConfig(mode preprocess.Mode, m *models.EntropyNet) preprocess.Config {
	cfg := preprocess.Config{Mode: mode, Model: m}
	if mode == preprocess.Prune { // the operators find the survivors; what is asked for here are hints
		cfg.For = []preprocess.Op{preprocess.Hull3D}
	}
	return cfg
}

// givesHints tells whether the mode is one of hints; s may be nil.
func (s *Stage) givesHints() bool {
	return s != nil && (s.cfg.Mode == preprocess.Seed || s.cfg.Mode == preprocess.Prune)
}

// use says whether the model is for a frame of so many dimensions, and if it
// gives hints, whether the frame is to get them. Drift takes hints away, never
// a network. Neither does work for operators other than those of want.
func (s *Stage) use(k *schemas.FrameKey, dims int, want schemas.OpSet) (model, hints bool) {
	m := s.model.Load()
	if m == nil {
		return true, false
	}
	if s.givesHints() && !want.Has(schemas.Hull3D) {
		return true, false
	}
	if !slices.ContainsFunc(m.Meta.Ops, func(name string) bool {
		op, ok := schemas.ParseOp(name)
		return ok && want.Has(op)
	}) {
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[streamName{k.Dataset, k.Sensor}]
	if st == nil {
		st = s.meet(k, m, dims)
	}
	return !st.foreign, !st.foreign && st.watch.Hinted(k.Offset)
}

// meet begins with a stream. The caller holds the lock.
func (s *Stage) meet(k *schemas.FrameKey, m *models.EntropyNet, dims int) *stream {
	if len(s.streams) >= maxStreams {
		clear(s.streams)
	}
	st := &stream{watch: preprocess.NewWatch(m.Meta.Survivors[preprocess.Hull3D.String()])}
	s.streams[streamName{k.Dataset, k.Sensor}] = st
	// A model for the plane does for clouds in space: it sees x and y.
	if err := m.Matches(k.Dataset, k.Sensor, min(dims, m.Meta.Dims)); err != nil {
		st.foreign = true
		if s.cfg.Stop != nil {
			s.cfg.Stop(&ForeignError{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Err: err})
		} else {
			s.cfg.Log.Warn("frames of a stream go without the model", "dataset", k.Dataset, "sensor", k.Sensor, "topic", k.Topic, "offset", k.Offset, "reason", err)
		}
	}
	s.count()
	return st
}

// note tells how an operator fared: whether it had hints, whether it used them,
// and the fraction of points that it could not drop at once.
func (s *Stage) note(k *schemas.FrameKey, hinted, used bool, survived float64) {
	s.cfg.Metrics.Kept(preprocess.Hull3D.String(), survived)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[streamName{k.Dataset, k.Sensor}]
	if st == nil || st.foreign || !st.watch.Note(hinted, used, survived) {
		return
	}
	on := st.watch.On()
	s.cfg.Metrics.HintsTurned(on)
	s.count()
	if on {
		s.cfg.Log.Info("the stream is again what its model knows: hints are on", "dataset", k.Dataset, "sensor", k.Sensor, "survivors", survived)
	} else {
		s.cfg.Log.Warn("the stream has drifted from what its model knows: hints are off", "dataset", k.Dataset, "sensor", k.Sensor, "survivors", survived,
			"at_calibration", s.model.Load().Meta.Survivors[preprocess.Hull3D.String()])
	}
}

// count reports the streams by what has become of their hints.
func (s *Stage) count() {
	var on, off, foreign int
	for _, st := range s.streams {
		switch {
		case st.foreign:
			foreign++
		case st.watch.On():
			on++
		default:
			off++
		}
	}
	s.cfg.Metrics.Streams(on, off, foreign)
}

// ForeignError says that a frame is not of the stream that the model is for.
type ForeignError struct {
	Topic     string
	Partition int32
	Offset    int64
	Err       error
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s/%d@%d: %v", e.Topic, e.Partition, e.Offset, e.Err)
}

func (e *ForeignError) Unwrap() error { return e.Err }
