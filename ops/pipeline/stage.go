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

// StageConfig configures the EntropyNet stage, which runs before the operators.
// Metrics and Log are required.
type StageConfig struct {
	Mode  preprocess.Mode
	Model *models.EntropyNet // nil if the mode needs no model

	// Stop is called with a *ForeignError when a frame belongs to another stream
	// than the model, and must end the run. If Stop is nil, such frames are
	// processed without the model, and one warning a stream is logged.
	Stop    func(error)
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// Stage is the part of the EntropyNet stage that all workers share: the model in
// use, which Replace may change while they work, and the state of every stream's
// hints. A stream is a data set and a sensor. Any goroutine may call the methods.
type Stage struct {
	cfg   StageConfig
	model atomic.Pointer[models.EntropyNet]

	mu      sync.Mutex
	streams map[streamName]*stream // at most maxStreams
}

type streamName struct{ dataset, sensor string }

// stream is the state of a stream's hints.
type stream struct {
	watch   preprocess.Watch
	foreign bool // the model is for another stream
}

// maxStreams bounds the streams in memory, since producers choose their names.
// When one more comes, the states of all are discarded.
const maxStreams = 1024

// NewStage returns a Stage. The error says why the mode cannot use the model.
func NewStage(cfg StageConfig) (*Stage, error) {
	s := &Stage{cfg: cfg}
	return s, s.Replace(cfg.Model)
}

// Replace makes workers use m from their next record on, and discards the states
// of all streams. On an error workers keep the model that they have.
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
	if mode == preprocess.Prune { // operators find the survivors; the stage only gives them hints
		cfg.For = []preprocess.Op{preprocess.Hull3D}
	}
	return cfg
}

// givesHints tells whether the mode gives operators hints. s may be nil.
func (s *Stage) givesHints() bool {
	return s != nil && (s.cfg.Mode == preprocess.Seed || s.cfg.Mode == preprocess.Prune)
}

// use tells whether the model is for a frame of dims dimensions and, if the mode
// gives hints, whether the frame gets them. Drift turns hints off; it never turns
// off perturb or denoise. The model and hints are not used when no operator of
// want needs them.
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

// meet adds the stream of frame k. The caller holds the lock.
func (s *Stage) meet(k *schemas.FrameKey, m *models.EntropyNet, dims int) *stream {
	if len(s.streams) >= maxStreams {
		clear(s.streams)
	}
	st := &stream{watch: preprocess.NewWatch(m.Meta.Survivors[preprocess.Hull3D.String()])}
	s.streams[streamName{k.Dataset, k.Sensor}] = st
	// A model of two dimensions also takes clouds in space: it reads x and y.
	if err := m.Matches(k.Dataset, k.Sensor, min(dims, m.Meta.Dims)); err != nil {
		st.foreign = true
		if s.cfg.Stop != nil {
			s.cfg.Stop(&ForeignError{Topic: k.Topic, Partition: k.Partition, Offset: k.Offset, Err: err})
		} else {
			s.cfg.Log.Warn("frames of a stream are processed without the model", "dataset", k.Dataset,
				"sensor", k.Sensor,
				"topic", k.Topic, "offset", k.Offset, "reason", err)
		}
	}
	s.count()
	return st
}

// note records how hull3d ran on a frame: whether it had hints, whether it used
// them, and the fraction of points that it could not drop at once.
func (s *Stage) note(k *schemas.FrameKey, hinted, used bool, survived float64) {
	s.cfg.Metrics.Kept(preprocess.Hull3D.String(), survived)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[streamName{k.Dataset, k.Sensor}]
	if st == nil || st.foreign || !st.watch.Note(hinted, used, survived) {
		return
	}
	s.count()
	log := s.cfg.Log.With("dataset", k.Dataset, "sensor", k.Sensor, "survivors", survived)
	if st.watch.On() {
		s.cfg.Metrics.HintsTurnedOn()
		log.Info("the stream is again what its model knows: hints are on")
	} else {
		s.cfg.Metrics.HintsTurnedOff()
		log.Warn("the stream has drifted from what its model knows: hints are off",
			"at_calibration", s.model.Load().Meta.Survivors[preprocess.Hull3D.String()])
	}
}

// count reports the streams by the state of their hints. The caller holds the
// lock.
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

// ForeignError says that a frame belongs to another stream than the model. Err
// names the difference.
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
