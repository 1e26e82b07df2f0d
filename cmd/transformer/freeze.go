package transformer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/sparse/freeze"
	"entropipe/sparse/hf"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// Freeze is the command freeze: its flags.
type Freeze struct {
	LM        string `name:"lm" required:"" placeholder:"DIR"`
	Calibrate string `required:"" placeholder:"FILE"`
	Out       string `required:"" placeholder:"DIR"`

	Select   string  `enum:"mass,window,bigbird,affinity,entropy,imported" default:"mass" group:"Mask"`
	Sparsity float64 `default:"0.75" group:"Mask"`
	Block    int     `default:"64" group:"Mask"`
	Bucket   []int   `placeholder:"N" group:"Mask"`
	Mode     string  `enum:"static,anchor" default:"static" group:"Mask"`
	Import   string  `placeholder:"FILE" group:"Mask"`
	Beyond   []int   `placeholder:"SINK,LOCAL,STRIDE" group:"Mask"`
	Seed     uint64  `default:"1" group:"Mask"`

	Sequences int  `default:"64" group:"Calibration"`
	Tokens    int  `default:"0" group:"Calibration"`
	Workers   int  `default:"0" group:"Calibration"`
	Progress  bool `group:"Calibration"`
	JSON      bool `name:"json"`
}

// longestBucket is the default's bound: what calibrates in minutes.
const longestBucket = 2048

// Run freezes, writes the mask and says what it is worth.
func (c *Freeze) Run(e *command.Env) error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := command.LocalFolder(c.LM); err != nil {
		return err
	}
	var (
		m  *model.Model
		o  freeze.Options
		in freeze.Inputs
	)
	err := command.UntilStopped(e, func() (err error) { // reading some gigabytes asks no context
		if m, err = model.Open(c.LM); err == nil {
			o, err = c.options(m)
		}
		if err == nil {
			in, err = c.inputs(m, o.Buckets)
		}
		return err
	})
	if err != nil {
		return err
	}
	set, err := c.freeze(e, m, in, o)
	switch {
	case errors.Is(err, context.Canceled):
		_, err = fmt.Fprintln(e.Stdout, "stopped: no mask has been written")
		return err
	case err != nil:
		return err
	}
	if err := set.Write(c.Out); err != nil {
		return err
	}
	return c.report(e.Stdout, set)
}

// Check returns all mistakes of the flags, joined, each a mistake.Usage.
func (c *Freeze) Check() error {
	switch {
	case !(c.Sparsity >= 0 && c.Sparsity < 1):
		return mistake.NewUsage(fmt.Errorf("--sparsity %v: want at least 0 and below 1", c.Sparsity))
	case c.Block != 16 && c.Block != 32 && c.Block != 64 && c.Block != 128:
		return mistake.NewUsage(fmt.Errorf("--block %d: want 16, 32, 64 or 128", c.Block))
	case (c.Select == freeze.Imported) != (c.Import != ""):
		return mistake.NewUsage(errors.New("--select imported and --import FILE go together"))
	case len(c.Beyond) != 0 && len(c.Beyond) != 3:
		return mistake.NewUsage(errors.New("--beyond: want three numbers: sink, local and stride"))
	}
	for _, n := range c.Bucket {
		if err := command.CheckAmount("bucket", n, 1, math.MaxInt32); err != nil {
			return err
		}
	}
	return errors.Join(command.CheckAmount("sequences", c.Sequences, 3, 1<<20),
		command.CheckAmount("tokens", c.Tokens, 0, math.MaxInt32),
		command.CheckAmount("workers", c.Workers, 0, command.MaxWorkers))
}

func (c *Freeze) options(m *model.Model) (freeze.Options, error) {
	o := freeze.Options{Select: c.Select, Sparsity: c.Sparsity, Block: c.Block, Buckets: c.Bucket,
		Seed: c.Seed, Mode: c.Mode,
		Workers: cmp.Or(c.Workers, runtime.GOMAXPROCS(0))}
	cfg := m.Config()
	o.Permute = cfg.Arch == hf.ViT && c.Mode == support.Static &&
		(c.Select == freeze.Affinity || c.Select == freeze.Entropy)
	if len(o.Buckets) == 0 {
		o.Buckets = []int{min(cfg.MaxPositions, longestBucket)}
	}
	if len(c.Beyond) == 3 {
		o.Beyond = &support.Shift{Sink: c.Beyond[0], Local: c.Beyond[1], Stride: c.Beyond[2]}
	}
	var err error
	if c.Import != "" {
		o.Import, err = freeze.ReadMask(c.Import)
	}
	return o, err
}

// inputs reads the calibration file.
func (c *Freeze) inputs(m *model.Model, buckets []int) (freeze.Inputs, error) {
	if m.Config().Arch == hf.ViT {
		return c.images(m)
	}
	read, err := readCalibration(c.Calibrate, c.Sequences)
	if err != nil {
		return freeze.Inputs{}, err
	}
	in := freeze.Inputs{Sequences: read.sequences}
	if len(read.sequences) == 0 {
		tokenizer, err := command.OpenTokenizer(c.LM, m.Config().Vocab)
		if err != nil {
			return in, err
		}
		if tokenizer == nil {
			return in, fmt.Errorf("%s: no tokenizer.json beside the model, and %s is text: give input_ids", c.LM,
				c.Calibrate)
		}
		in.Sequences = cutText(tokenizer, read.paragraphs, buckets, c.Sequences)
	}
	total, vocab := 0, int32(m.Config().Vocab)
	for i, s := range in.Sequences {
		for _, id := range s {
			if id >= vocab {
				return in, fmt.Errorf("%s: sequence %d has the id %d, and the model's are below %d: is it of "+
					"another tokenizer?", c.Calibrate, i+1, id, vocab)
			}
		}
		if total += len(s); c.Tokens > 0 && total > c.Tokens {
			in.Sequences = in.Sequences[:i]
			break
		}
	}
	if len(in.Sequences) < 3 {
		return in, fmt.Errorf("%s: %d sequences of the asked length, and 3 are the least: give more text, a shorter "+
			"--bucket or more --tokens", c.Calibrate, len(in.Sequences))
	}
	return in, nil
}

// images reads pixels [n][channels][height][width].
func (c *Freeze) images(m *model.Model) (freeze.Inputs, error) {
	cfg := m.Config()
	shape, pixels, err := freeze.ReadPixels(c.Calibrate)
	if err != nil {
		return freeze.Inputs{}, err
	}
	if len(shape) != 4 || shape[1] != cfg.Colors || shape[2] != cfg.Image[0] || shape[3] != cfg.Image[1] {
		return freeze.Inputs{}, fmt.Errorf("%s: pixels of shape %v, want [n %d %d %d]", c.Calibrate, shape, cfg.Colors,
			cfg.Image[0], cfg.Image[1])
	}
	return freeze.Inputs{Images: pixels[:min(shape[0], c.Sequences)*shape[1]*shape[2]*shape[3]]}, nil
}

// freeze runs the three steps, and shows them.
func (c *Freeze) freeze(e *command.Env, m *model.Model, in freeze.Inputs, o freeze.Options) (*support.Set, error) {
	if c.Progress {
		var done atomic.Int64
		var step atomic.Pointer[string]
		begin := ""
		step.Store(&begin)
		o.Progress = func(name string, i, of int) {
			text := fmt.Sprintf("%s %d of %d", name, i, of)
			step.Store(&text)
			done.Store(int64(i))
		}
		defer command.StartProgress(e.Stderr, e.Log, "inputs", 0,
			func() (int64, string) { return done.Load(), *step.Load() }).Stop()
	}
	return freeze.Freeze(e.Ctx, m, in, o)
}

// report prints the certificates, layer by layer, and the verdict.
func (c *Freeze) report(w io.Writer, s *support.Set) error {
	sha, err := s.SHA256()
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(w, map[string]any{"out": c.Out, "mask_sha256": sha, "selector": s.Select,
			"calibration": s.Source, "sparsity": s.Sparsity(),
			"quality": s.Quality, "serve": s.Serve, "reason": s.Reason, "certificates": s.Certs, "heads": s.Heads})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "layer\thead\tmass kept\t1 % keep\tleast\terror\t2·B·delta\tB\trun\t")
	for i, cert := range s.Certs {
		fmt.Fprintf(t, "%d\t%d\t%.4f\t%.4f\t%.4f\t%.4g\t%.4g\t%.4g\t%.1f\t\n", i/s.Heads, i%s.Heads, cert.MassMean,
			cert.MassP01, cert.MassMin,
			cert.Error, cert.Bound, cert.Radius, cert.Run)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	q := s.Quality
	var lengths []string
	for _, b := range s.Buckets {
		lengths = append(lengths, fmt.Sprint(b.Length))
	}
	_, err = fmt.Fprintf(w, `
%s: %s, blocks of %d, %.1f %% not read, lengths to %s
%s on %d inputs: dense %.5g, masked %.5g, window of the same budget %.5g
loses %.3f %s (95 %%: %.3f to %.3f), gains on the window %.3f (%.3f to %.3f)
%s: %s
`, filepath.Join(c.Out, support.ConfigFile), s.Select.Name, s.Block, 100*s.Sparsity(), strings.Join(lengths, ", "),
		q.Metric, q.Sequences, q.Dense, q.Sparse, q.Window, q.Lost, q.Unit, q.LostLow, q.LostHigh, q.Gained,
		q.GainedLow, q.GainedHigh,
		s.Serve, s.Reason)
	return err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
