// Package stage opens the stage before the operators and its model, as --stage, --model
// and --publish name them. The commands run, produce and validate use it. The stage
// itself is in packages preprocess and ops/pipeline.
//
// Survivors are the points of a frame that remain after pruning. A model is idle if
// nothing that the command runs uses it.
package stage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/models"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/preprocess"
	"entropipe/schemas"
)

// Flags say what stands between the messages and the operators.
type Flags struct {
	Stage     string `enum:"off,seed,prune,perturb,denoise" default:"off" content:"yes"`
	Model     string `placeholder:"FILE" content:"no"`
	OnForeign string `enum:"go-on,stop" default:"go-on" content:"no" more:"yes"`
}

// Publish say what is sent on.
type Publish struct {
	Publish string   `placeholder:"TOPIC" content:"no" more:"yes"`
	For     []string `enum:"hull2d,hull3d,maxima2d,maxima3d" placeholder:"OP" content:"no" more:"yes"`
	Results string   `name:"publish-results" placeholder:"TOPIC" content:"no" more:"yes"`
	Letters string   `name:"dead-letter" placeholder:"TOPIC" content:"no" more:"yes"`
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Flags) Check(publish *Publish) error {
	switch {
	case c.Stage == "off" && c.Model != "":
		return mistake.About(fmt.Sprintf("--model %s: --stage says what to do with it", c.Model), "model")
	case c.Stage != "off" && c.Stage != "prune" && c.Model == "":
		return mistake.About(fmt.Sprintf("--stage %s needs --model", c.Stage), "stage")
	case c.Stage == "prune" && publish.Publish == "":
		return mistake.About("--stage prune needs --publish TOPIC, where surviving points are sent", "stage")
	}
	return nil
}

// Check returns all mistakes of the flags, joined: each a mistake.Usage, but for a topic of
// results that is read, and a topic of dead letters that is read or published to, which is a
// *mistake.Config.
func (c *Publish) Check(topics []string) error {
	return errors.Join(c.checkSurvivors(topics), c.checkResults(topics), c.checkLetters(topics))
}

// checkLetters finds mistakes of --dead-letter.
func (c *Publish) checkLetters(topics []string) error {
	what := ""
	switch {
	case c.Letters == "":
		return nil
	case slices.Contains(topics, c.Letters):
		what = "this topic is read, and what it refuses would be read and refused for ever"
	case c.Letters == c.Publish:
		what = "--publish sends survivors there"
	case c.Letters == c.Results:
		what = "--publish-results sends results there"
	default:
		return command.CheckNameOfTopic("dead-letter", c.Letters)
	}
	return &mistake.Config{Problems: []mistake.Problem{{Path: "dead-letter", What: c.Letters + ": " + what}}}
}

// Topics returns the topics that are sent to.
func (c *Publish) Topics() []string {
	return slices.DeleteFunc([]string{c.Publish, c.Results, c.Letters}, func(topic string) bool { return topic == "" })
}

// checkResults finds mistakes of --publish-results.
func (c *Publish) checkResults(topics []string) error {
	switch {
	case c.Results == "":
		return nil
	case slices.Contains(topics, c.Results):
		return &mistake.Config{Problems: []mistake.Problem{{Path: "publish-results",
			What: c.Results + ": this topic is read, and results cannot be"}}}
	case c.Results == c.Publish:
		return mistake.About(fmt.Sprintf("--publish-results %s: --publish sends survivors there", c.Results),
			"publish-results", "publish")
	}
	return command.CheckNameOfTopic("publish-results", c.Results)
}

// checkSurvivors finds mistakes of --publish and --for.
func (c *Publish) checkSurvivors(topics []string) error {
	switch {
	case c.Publish == "" && len(c.For) > 0:
		return mistake.About("--for needs --publish TOPIC, where surviving points are sent", "for")
	case c.Publish == "":
		return nil
	case len(c.For) == 0:
		return mistake.About("--publish needs --for, the operators that its consumers run", "publish")
	case slices.Contains(topics, c.Publish):
		return mistake.About(fmt.Sprintf("--publish %s: this topic is read", c.Publish), "publish")
	}
	return command.CheckNameOfTopic("publish", c.Publish)
}

// OpSet returns the operators of these names, which a grammar has checked.
func OpSet(names []string) (ops schemas.OpSet) {
	for _, name := range names {
		if op, ok := schemas.ParseOp(name); ok {
			ops = ops.With(op)
		}
	}
	return ops
}

// PruneOps is OpSet for the stage.
func PruneOps(names []string) (ops []preprocess.Op) {
	for _, name := range names {
		if op, ok := preprocess.ParseOp(name); ok {
			ops = append(ops, op)
		}
	}
	return ops
}

// ReadModel reads the model; nil if there is none. The error is a *mistake.Config.
func (c *Flags) ReadModel() (*models.EntropyNet, error) {
	if c.Model == "" {
		return nil, nil
	}
	m, err := models.Open(c.Model)
	if err != nil {
		return nil, &mistake.Config{Problems: []mistake.Problem{{Path: "model", What: err.Error()}}}
	}
	return m, nil
}

// BadModel is the mistake of a model that does not fit its stage.
func (c *Flags) BadModel(err error) error {
	return &mistake.Config{Problems: []mistake.Problem{{Path: "model", What: fmt.Sprintf("%s: %v", c.Model, err)}}}
}

// NewStage returns the stage with its model; nil for mode off.
func (c *Flags) NewStage(m *models.EntropyNet, met *metrics.Metrics, log *slog.Logger,
	stop func(error)) (*pipeline.Stage, error) {
	if c.Stage == "off" {
		return nil, nil
	}
	if c.OnForeign != "stop" {
		stop = nil
	}
	s, err := pipeline.NewStage(pipeline.StageConfig{Mode: preprocess.Mode(c.Stage), Model: m, Stop: stop,
		Metrics: met, Log: log})
	if err != nil {
		return nil, c.BadModel(err)
	}
	if m != nil {
		log.Info("model", "file", c.Model, "ops", strings.Join(m.Meta.Ops, ","), "dataset", m.Meta.Dataset, "sensor",
			m.Meta.Sensor, "sha256", m.SHA256)
	}
	return s, nil
}

// Idle tells whether the model has nothing to do: hints are for hull3d, and a
// network for the operators that its model names.
func Idle(m *models.EntropyNet, cfg *pipeline.FrameConfig) bool {
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
	return runs&OpSet(m.Meta.Ops) == 0
}

// ModelFile notices that a model's file has changed.
type ModelFile struct {
	path string
	seen os.FileInfo
}

// NewModelFile returns the ModelFile of path, with its present state as seen.
func NewModelFile(path string) *ModelFile {
	f := &ModelFile{path: path}
	f.changed()
	return f
}

// changed tells whether there is another file than at the last call. A file
// that is away is no change: whoever replaces it may take its time.
func (f *ModelFile) changed() bool {
	is, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	was := f.seen
	f.seen = is
	return was == nil || !os.SameFile(was, is) || was.Size() != is.Size() || !was.ModTime().Equal(is.ModTime())
}

// Reload replaces the stage's model if its file has changed. A file that is no
// good changes nothing but the log; one that changes while it is read may be
// half of it, and is left to the next call. It returns the SHA-256 of a model that
// is in use now and was not before.
func (f *ModelFile) Reload(s *pipeline.Stage, met *metrics.Metrics, log *slog.Logger) (sha256 string) {
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
		log.Warn("the model's file has changed, but cannot be used; going on with the old one", "file",
			f.path, "error", err)
		return ""
	}
	log.Info("the model's file has changed: it is in use now", "file", f.path, "sha256", m.SHA256)
	return m.SHA256
}

// PublishPatience is how long brokers may take nothing before the run stops.
const PublishPatience = 3 * time.Minute
