// Package train is the command train: it trains a model of the stage before the operators
// on frames of a data set, a topic or a synthetic scene. Package preprocess/train has the
// optimiser; package transformer trains language and image models.
//
// A checkpoint is the state from which --resume goes on. A stream is the pair of data set
// and sensor that a model is for.
package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"entropipe/algos/entropy"
	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/models"
	"entropipe/preprocess/train"
)

// Command is the command train: its flags and arguments.
type Command struct {
	Source []string `arg:"" name:"source" placeholder:"DIR|FILE…|kafka://HOST:PORT/TOPIC|synthetic"`

	Mode        string  `enum:"perturb,denoise,seed" default:"perturb" group:"Model"`
	Ops         string  `placeholder:"hull2d,…" group:"Model"`
	Regulariser string  `enum:"F,H_diff,H_soft,none,hdiff,hsoft" default:"F" group:"Model"`
	AsPrinted   bool    `group:"Model"`
	Sigma       float64 `default:"0" group:"Model" more:"yes"`
	Directions  int     `default:"32" group:"Model" more:"yes"`
	Out         string  `required:"" placeholder:"FILE.safetensors" group:"Model"`

	Steps     int     `default:"2000" group:"Training"`
	Seed      uint64  `default:"1" group:"Training"`
	Batch     int     `default:"8" group:"Training" more:"yes"`
	Points    int     `default:"2048" group:"Training" more:"yes"`
	Lambda    float64 `default:"0.01" group:"Training" more:"yes"`
	Anchors   int     `default:"16" group:"Training" more:"yes"`
	Alpha     float64 `default:"0" group:"Training" more:"yes"`
	Tau       float64 `default:"0.0005" group:"Training" more:"yes"`
	Tolerance float64 `default:"0.0025" group:"Training" more:"yes"`
	Noise     float64 `default:"0" group:"Training" more:"yes"`
	Resume    bool    `group:"Training"`
	Workers   int     `default:"0" group:"Training"`
	Progress  bool    `group:"Training"`

	Frames      int      `default:"200" group:"Data"`
	Kind        string   `enum:"lidar,sketch" default:"lidar" group:"Data"`
	ContentType []string `placeholder:"TYPE" group:"Data" more:"yes"`
	Dataset     string   `group:"Data"`
	Sensor      string   `group:"Data"`

	Security command.Security `embed:"" group:"Brokers"`
}

// Run trains, writes what comes of it and says what that is.
func (c *Command) Run(e *command.Env) error {
	if err := command.CheckFileOut(c.Out); err != nil {
		return err
	}
	if c.Mode == models.Seed {
		return c.runSeed(e)
	}
	cfg, dims, err := c.config()
	if err != nil {
		return err
	}
	if !c.Resume {
		if err := command.CheckNoCheckpoint(c.checkpoint()); err != nil {
			return err
		}
	}
	data, err := c.data(e, dims)
	if err != nil {
		return err
	}
	if c.AsPrinted {
		printed := train.AsPrinted(cfg.Ops[0], data)
		printed.Ops, printed.Points, printed.Seed, printed.Workers = cfg.Ops, cfg.Points, cfg.Seed, cfg.Workers
		cfg, c.Steps = printed, printed.Steps
	}
	t, err := c.begin(cfg, data)
	if err != nil {
		return err
	}
	switch err := c.steps(e, t); {
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(e.Stdout, "stopped after step %d of %d: --resume goes on from %s\n", t.Steps(),
			c.Steps, c.checkpoint())
		return nil
	case err != nil:
		return err
	}
	m, err := c.write(t)
	if err != nil {
		return err
	}
	if err := os.Remove(c.checkpoint()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err = io.WriteString(e.Stdout, trained(c.Out, m, t))
	return err
}

// config turns flags into settings and the dimensions that the operators ask
// for.
func (c *Command) config() (cfg train.Config, dims int, err error) {
	if err := errors.Join(c.Check(), c.checkOps(), c.checkPrinted(), c.checkUsed()); err != nil {
		return cfg, 0, err
	}
	cfg = train.Config{Mode: c.Mode, Regulariser: regulariser(c.Regulariser), Steps: c.Steps, Seed: c.Seed,
		Batch: c.Batch, Points: c.Points,
		Sigma: c.Sigma, Lambda: c.Lambda, Anchors: c.Anchors, Alpha: c.Alpha, Tau: c.Tau, Tolerance: c.Tolerance,
		Workers: cmp.Or(c.Workers, runtime.GOMAXPROCS(0))}
	if c.Mode == models.Denoise && c.Noise > 0 {
		cfg.Noise = train.Noise{Sigma: c.Noise, Outliers: 0.01, Reach: 8}
	}
	dims = 2
	for name := range strings.SplitSeq(c.Ops, ",") {
		op, _ := train.ParseProblem(name)
		cfg.Ops = append(cfg.Ops, op)
		if op == entropy.Hull3D || op == entropy.Maxima3D {
			dims = 3
		}
	}
	return cfg, dims, nil
}

// regulariser returns the regulariser of a name. Models keep the names without the
// paper's underscore.
func regulariser(name string) train.Regulariser {
	return train.Regulariser(strings.ReplaceAll(strings.ReplaceAll(name, "H_d", "hd"), "H_s", "hs"))
}

// checkPrinted refuses what --as-printed sets itself.
func (c *Command) checkPrinted() error {
	if !c.AsPrinted {
		return nil
	}
	var set []string
	for _, f := range []struct {
		flag  string
		other bool
	}{{"--mode", c.Mode != models.Perturb},
		{"--regulariser", c.Regulariser != "F" && regulariser(c.Regulariser) != train.HDiff},
		{"--sigma", c.Sigma != 0}, {"--steps", c.Steps != 2000}, {"--batch", c.Batch != 8},
		{"--lambda", c.Lambda != 0.01}, {"--anchors", c.Anchors != 16}, {"--alpha", c.Alpha != 0},
		{"--tau", c.Tau != 0.0005}, {"--tolerance", c.Tolerance != 0.0025}} {
		if f.other {
			set = append(set, f.flag)
		}
	}
	if set == nil {
		return nil
	}
	return mistake.NewUsage(fmt.Errorf("--as-printed is the paper's protocol and sets %s itself: leave out one or the "+
		"other", strings.Join(set, ", ")))
}

// checkUsed refuses flags that the regulariser or the mode does not use.
func (c *Command) checkUsed() error {
	if c.AsPrinted {
		return nil
	}
	of := regulariser(c.Regulariser)
	var all []error
	for _, f := range []struct {
		flag, needs string
		idle        bool
	}{{"--anchors", "--regulariser H_diff", c.Anchors != 16 && of != train.HDiff},
		{"--alpha", "--regulariser H_diff", c.Alpha != 0 && of != train.HDiff},
		{"--tau", "--regulariser F or H_soft", c.Tau != 0.0005 && of != train.F && of != train.HSoft},
		{"--lambda", "a --regulariser", c.Lambda != 0.01 && of == train.None},
		{"--noise", "--mode denoise", c.Noise != 0 && c.Mode != models.Denoise},
		{"--tolerance", "--mode perturb", c.Tolerance != 0.0025 && c.Mode != models.Perturb}} {
		if f.idle {
			all = append(all, mistake.NewUsage(fmt.Errorf("%s has no effect here: it is for %s", f.flag, f.needs)))
		}
	}
	return errors.Join(all...)
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Command) Check() error {
	if filepath.Ext(c.Out) != ".safetensors" {
		return mistake.NewUsage(fmt.Errorf("--out %s: want a name that ends in .safetensors", c.Out))
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"sigma", c.Sigma}, {"lambda", c.Lambda}, {"tolerance", c.Tolerance}, {"noise", c.Noise}, {"alpha", c.Alpha}} {
		if !(f.value >= 0 && f.value <= math.MaxFloat32) {
			return mistake.NewUsage(fmt.Errorf("--%s %v: want a number from 0 on", f.flag, f.value))
		}
	}
	if !(c.Tau > 0 && c.Tau <= 1) {
		return mistake.NewUsage(fmt.Errorf("--tau %v: want a number above 0, at most 1", c.Tau))
	}
	return errors.Join(
		command.CheckAmount("anchors", c.Anchors, 1, 1<<12),
		command.CheckAmount("steps", c.Steps, 1, math.MaxInt32),
		command.CheckAmount("batch", c.Batch, 1, 1<<12),
		command.CheckAmount("points", c.Points, 4, 1<<20),
		command.CheckAmount("frames", c.Frames, 1, 1<<20),
		command.CheckAmount("workers", c.Workers, 0, command.MaxWorkers))
}

func (c *Command) checkOps() error {
	if c.Ops == "" {
		c.Ops = map[string]string{models.Perturb: "hull2d", models.Denoise: "maxima2d"}[c.Mode]
	}
	for name := range strings.SplitSeq(c.Ops, ",") {
		if _, ok := train.ParseProblem(name); !ok {
			return mistake.NewUsage(fmt.Errorf("--ops: %q is no operator that a model can be trained for: want "+
				"hull2d, hull3d, maxima2d, maxima3d", name))
		}
	}
	return nil
}

func (c *Command) checkpoint() string { return c.Out + ".checkpoint" }

// beside is the name of another file of the model.
func (c *Command) beside(suffix string) string {
	return strings.TrimSuffix(c.Out, ".safetensors") + suffix
}

// begin begins a training or goes on with one.
func (c *Command) begin(cfg train.Config, data *train.Data) (*train.Trainer, error) {
	if !c.Resume {
		t, err := train.New(cfg, data)
		if err != nil {
			return nil, mistake.NewUsage(err)
		}
		return t, nil
	}
	t, err := train.Resume(c.checkpoint(), cfg, data)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--resume: %s is not there: nothing was interrupted; leave --resume out to begin",
			c.checkpoint())
	}
	return t, err
}

// steps trains until it is done or a signal comes.
func (c *Command) steps(e *command.Env, t *train.Trainer) error {
	var done atomic.Int64
	var text atomic.Pointer[string]
	none := ""
	text.Store(&none)
	done.Store(int64(t.Steps()))
	if c.Progress {
		show := command.StartProgress(e.Stderr, e.Log, "steps", int64(c.Steps),
			func() (int64, string) { return done.Load(), *text.Load() })
		defer show.Stop()
	}
	for !t.Done() {
		if e.Ctx.Err() != nil {
			return cmp.Or(t.Save(c.checkpoint()), context.Canceled)
		}
		if err := t.Step(); err != nil {
			return err
		}
		done.Store(int64(t.Steps()))
		log := t.Records()
		last := &log[len(log)-1]
		if last.Step != t.Steps() {
			continue
		}
		now := fmt.Sprintf("loss %.4g, task %.4g, %s %.4g", last.Loss, last.Task, c.Regulariser, last.Regulariser)
		text.Store(&now)
		if last.Judged != nil {
			if err := t.Save(c.checkpoint()); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the model and the files beside it.
func (c *Command) write(t *train.Trainer) (*models.EntropyNet, error) {
	m := t.Model()
	m.Meta.Command = c.command()
	if err := m.Write(c.Out); err != nil {
		return nil, err
	}
	card := t.Card()
	if err := card.Write(c.Out, m); err != nil {
		return nil, err
	}
	return m, cmp.Or(writeWith(c.beside(".jsonl"), t.WriteRecords), writeWith(c.beside(".svg"), t.WriteCurves))
}

// command is the command line that makes the model: what decides the result,
// and not how it came about, so that a resumed training makes the same file.
func (c *Command) command() string {
	args := append([]string{"entropipe train"}, c.Source...)
	if c.Source[0] == "synthetic" {
		args = append(args, "--kind", c.Kind)
	}
	args = append(args, "--mode", c.Mode, "--ops", c.Ops)
	if c.AsPrinted {
		args = append(args, "--as-printed", "--seed", fmt.Sprint(c.Seed), "--points", fmt.Sprint(c.Points), "--frames",
			fmt.Sprint(c.Frames))
		return strings.Join(append(args, c.stream()...), " ")
	}
	args = append(args, "--regulariser", c.Regulariser)
	for _, f := range []struct {
		flag  string
		value any
		other bool
	}{{"anchors", c.Anchors, c.Anchors != 16}, {"alpha", c.Alpha, c.Alpha != 0}, {"tau", c.Tau, c.Tau != 0.0005}} {
		if f.other {
			args = append(args, "--"+f.flag, fmt.Sprint(f.value))
		}
	}
	for _, f := range []struct {
		flag  string
		value any
	}{{"sigma", c.Sigma}, {"steps", c.Steps}, {"seed", c.Seed}, {"batch", c.Batch}, {"points", c.Points},
		{"lambda", c.Lambda},
		{"tolerance", c.Tolerance}, {"noise", c.Noise}, {"frames", c.Frames}} {
		if text := fmt.Sprint(f.value); text != "" && text != "0" {
			args = append(args, "--"+f.flag, text)
		}
	}
	return strings.Join(append(args, c.stream()...), " ")
}

// stream is the end of the command line: which frames the model is for, and its file.
func (c *Command) stream() (args []string) {
	if c.Dataset != "" {
		args = append(args, "--dataset", c.Dataset)
	}
	if c.Sensor != "" {
		args = append(args, "--sensor", c.Sensor)
	}
	return append(args, "--out", filepath.Base(c.Out))
}

func writeWith(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return cmp.Or(write(f), f.Close())
}

// trained says in a line what was made.
func trained(path string, m *models.EntropyNet, t *train.Trainer) string {
	j, what := t.Best(), ""
	if m.Meta.Mode == models.Denoise {
		what = fmt.Sprintf("F1 of maxima %.3f, was %.3f", j.F1, j.Raw)
	} else {
		what = fmt.Sprintf("G %.3f nats a point, was %.3f; error %.4f %% of a frame's diagonal, at most %.4f %%",
			j.After, j.Before, 100*j.Error, 100*j.Worst)
		if j.After >= j.Before {
			what += ", no gain"
		}
		if c := t.Config(); j.Error > c.Tolerance {
			what += fmt.Sprintf(", more than the %.4f %% asked for", 100*c.Tolerance)
		}
	}
	return fmt.Sprintf("%s: %s model for %s, step %d of %d kept (%s), SHA-256 %.12s…\n", path, m.Meta.Mode,
		strings.Join(m.Meta.Ops, ","), m.Meta.Steps, t.Steps(), what, m.SHA256)
}
