package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"entropipe/ingest"
	"entropipe/models"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// stageFlags say what stands between the messages and the operators.
type stageFlags struct {
	Stage     string `enum:"off,seed,prune,perturb,denoise" default:"off" help:"Mode of the stage before the operators (${enum}). seed: hints of a trained model, for the same rows in less time. prune: the same beside --publish, with or without a model. perturb, denoise: a network moves the points, and the rows of the operators that it was trained for are approximate, each with its error." group:"Stage" content:"yes"`
	Model     string `placeholder:"FILE" help:"Model of the stage (.safetensors), or builtin:lidar. A model of mode seed is read again when its file changes." group:"Stage" content:"no"`
	OnForeign string `enum:"go-on,stop" default:"go-on" help:"When frames are of another stream than the model's: go on without it, or stop (${enum})." group:"Stage" content:"no"`
}

// publishFlags say what is sent on.
type publishFlags struct {
	Publish string   `placeholder:"TOPIC" help:"Send what is left of every frame to this topic; created when absent." group:"Publish" content:"no"`
	For     []string `enum:"hull2d,hull3d,maxima2d,maxima3d" placeholder:"OP" help:"Operators for which consumers of --publish are to find the rows of whole frames: hull2d, hull3d, maxima2d, maxima3d." group:"Publish" content:"no"`
}

// check returns its mistakes, as usageErrors.
func (c *stageFlags) check(publish *publishFlags) error {
	switch {
	case c.Stage == "off" && c.Model != "":
		return mistaken(fmt.Sprintf("--model %s: --stage says what to do with it", c.Model), "model")
	case c.Stage != "off" && c.Stage != "prune" && c.Model == "":
		return mistaken(fmt.Sprintf("--stage %s: want a --model", c.Stage), "stage")
	case c.Stage == "prune" && publish.Publish == "":
		return mistaken("--stage prune: want --publish, the topic for what is left of frames", "stage")
	}
	return nil
}

// check returns its mistakes, as usageErrors.
func (c *publishFlags) check(topics []string) error {
	switch {
	case c.Publish == "" && len(c.For) > 0:
		return mistaken("--for: want --publish, the topic for what is left of frames", "for")
	case c.Publish == "":
		return nil
	case len(c.For) == 0:
		return mistaken("--publish: want --for, the operators that its consumers run", "publish")
	case slices.Contains(topics, c.Publish):
		return mistaken(fmt.Sprintf("--publish %s: this topic is read", c.Publish), "publish")
	}
	return checkNameOfTopic("publish", c.Publish)
}

// opSet returns the operators of these names, which a grammar has checked.
func opSet(names []string) (ops schemas.OpSet) {
	for _, name := range names {
		if op, ok := schemas.ParseOp(name); ok {
			ops = ops.With(op)
		}
	}
	return ops
}

// pruneOps is opSet for the stage.
func pruneOps(names []string) (ops []preprocess.Op) {
	for _, name := range names {
		if op, ok := preprocess.ParseOp(name); ok {
			ops = append(ops, op)
		}
	}
	return ops
}

// readModel reads the model; nil if there is none. The error is a *ConfigError.
func (c *stageFlags) readModel() (*models.EntropyNet, error) {
	if c.Model == "" {
		return nil, nil
	}
	m, err := models.Open(c.Model)
	if err != nil {
		return nil, &ConfigError{Problems: []Problem{{Path: "model", What: err.Error()}}}
	}
	return m, nil
}

// badModel is the mistake of a model that does not fit its stage.
func (c *stageFlags) badModel(err error) error {
	return &ConfigError{Problems: []Problem{{Path: "model", What: fmt.Sprintf("%s: %v", c.Model, err)}}}
}

// newStage returns the stage with its model; nil for mode off.
func (c *stageFlags) newStage(m *models.EntropyNet, met *metrics.Metrics, log *slog.Logger, stop func(error)) (*pipeline.Stage, error) {
	if c.Stage == "off" {
		return nil, nil
	}
	if c.OnForeign != "stop" {
		stop = nil
	}
	s, err := pipeline.NewStage(pipeline.StageConfig{Mode: preprocess.Mode(c.Stage), Model: m, Stop: stop, Metrics: met, Log: log})
	if err != nil {
		return nil, c.badModel(err)
	}
	if m != nil {
		log.Info("model", "file", c.Model, "ops", strings.Join(m.Meta.Ops, ","), "dataset", m.Meta.Dataset, "sensor", m.Meta.Sensor, "sha256", m.SHA256)
	}
	return s, nil
}

// idle tells whether the model has nothing to do: hints are for hull3d, and a
// network for the operators that its model names.
func idle(m *models.EntropyNet, cfg *pipeline.FrameConfig) bool {
	var runs schemas.OpSet
	for _, op := range cfg.Ops {
		runs = runs.With(op)
	}
	if cfg.Ops == nil {
		runs = runs.With(schemas.Hull2D).With(schemas.Maxima2D).With(schemas.Maxima3D)
	}
	if cfg.Ops == nil && cfg.Hull3D {
		runs = runs.With(schemas.Hull3D)
	}
	if m.Meta.Mode == models.Seed {
		return !(runs | cfg.Publish).Has(schemas.Hull3D) // a network does nothing for what is published
	}
	return runs&opSet(m.Meta.Ops) == 0
}

// modelFile notices that a model's file has changed.
type modelFile struct {
	path string
	seen os.FileInfo
}

func newModelFile(path string) *modelFile {
	f := &modelFile{path: path}
	f.changed()
	return f
}

// changed tells whether there is another file than at the last call. A file
// that is away is no change: whoever replaces it may take its time.
func (f *modelFile) changed() bool {
	is, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	was := f.seen
	f.seen = is
	return was == nil || !os.SameFile(was, is) || was.Size() != is.Size() || !was.ModTime().Equal(is.ModTime())
}

// reload replaces the stage's model if its file has changed. A file that is no
// good changes nothing but the log; one that changes while it is read may be
// half of it, and is left to the next call. It returns the SHA-256 of a model that
// is in use now and was not before.
func (f *modelFile) reload(s *pipeline.Stage, met *metrics.Metrics, log *slog.Logger) (sha256 string) {
	was := f.seen
	if !f.changed() {
		return ""
	}
	m, err := models.ReadEntropyNet(f.path)
	if f.changed() {
		f.seen = was
		return ""
	}
	if err == nil {
		err = s.Replace(m)
	}
	met.ModelLoaded(err)
	if err != nil {
		log.Warn("the model's file has changed, but cannot be used; going on with the old one", "file", f.path, "error", err)
		return ""
	}
	log.Info("the model's file has changed: it is in use now", "file", f.path, "sha256", m.SHA256)
	return m.SHA256
}

// openOutbox connects to the topic of --publish, which gets as many partitions
// as the largest of those that are read. It ends with close, not with ctx: what
// a stopping run has read is published.
func (c *runFlags) openOutbox(ctx context.Context, security ingest.Security, partitions int, log *slog.Logger, complaints *ingest.Complaints) (*ingest.Outbox, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	o, err := ingest.OpenOutbox(lasting, ingest.OutboxConfig{Brokers: c.Source.Brokers, Security: security, Complaints: complaints, Topic: c.Publish.Publish,
		Create: ingest.TopicSpec{Partitions: partitions}, Window: min(int64(c.Resource.Memory)/8, 32<<20), Patience: publishPatience, Log: log})
	if err != nil {
		cancel()
	}
	return o, err
}

// publishPatience is how long brokers may take nothing before the run stops.
const publishPatience = 3 * time.Minute
