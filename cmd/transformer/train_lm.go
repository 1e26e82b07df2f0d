package transformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/models/plainfile"
	"entropipe/models/safetensors"
	"entropipe/sparse/token"
	"entropipe/sparse/train"
)

// transformerFlags are what train-lm and train-vit have in common.
type transformerFlags struct {
	Layers      int     `default:"2" group:"Model"`
	Dim         int     `default:"128" group:"Model"`
	Heads       int     `default:"4" group:"Model"`
	Regulariser string  `enum:"none,entropy,paper,l1,window" default:"none" group:"Model"`
	Lambda      float64 `default:"0" group:"Model"`
	Mu          float64 `default:"0" group:"Model"`
	Block       int     `default:"16" group:"Model"`
	Sparsity    float64 `default:"0" group:"Model"`
	DType       string  `name:"dtype" enum:"f32,f16,bf16" default:"f32" group:"Model"`
	Out         string  `required:"" placeholder:"DIR" group:"Model"`

	About string `placeholder:"TEXT" group:"Model"`

	Minutes  float64 `default:"0" group:"Training"`
	Steps    int     `default:"0" group:"Training"`
	Seed     uint64  `default:"1" group:"Training"`
	Rate     float64 `default:"0" group:"Training"`
	Resume   bool    `group:"Training"`
	Workers  int     `default:"0" group:"Training"`
	Progress bool    `group:"Training"`
}

// config turns the flags into settings.
func (c *transformerFlags) config() (train.Config, error) {
	if !(c.Minutes >= 0 && c.Minutes <= 1e6) || c.Minutes > 0 && c.Steps > 0 {
		return train.Config{}, mistake.NewUsage(errors.New("want --minutes or --steps, from 0 on, and not both"))
	}
	if c.Minutes == 0 && c.Steps == 0 {
		c.Minutes = 5
	}
	if err := errors.Join(command.CheckAmount("layers", c.Layers, 1, 1<<10),
		command.CheckAmount("dim", c.Dim, 1, 1<<16), command.CheckAmount("heads", c.Heads, 1, 1<<16),
		command.CheckAmount("steps", c.Steps, 0, 1<<30),
		command.CheckAmount("workers", c.Workers, 0, command.MaxWorkers)); err != nil {
		return train.Config{}, err
	}
	return train.Config{Layers: c.Layers, Dim: c.Dim, Heads: c.Heads, Regulariser: train.Regulariser(c.Regulariser),
		Lambda: c.Lambda, Mu: c.Mu,
		Block: c.Block, Sparsity: c.Sparsity, Steps: c.Steps, Time: time.Duration(c.Minutes * float64(time.Minute)),
		Seed: c.Seed, Rate: c.Rate,
		Workers: cmp.Or(c.Workers, runtime.GOMAXPROCS(0))}, nil
}

func (c *transformerFlags) checkpoint() string { return filepath.Join(c.Out, "checkpoint.safetensors") }

// run takes the trainer to its end and writes the model, or, when a signal ends
// it, a checkpoint.
func (c *transformerFlags) run(e *command.Env, t *train.Trainer, line string) error {
	if c.Resume {
		if err := t.Resume(c.checkpoint()); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("--resume: %s is not there: nothing was interrupted; leave --resume out to begin",
				c.checkpoint())
		} else if err != nil {
			return err
		}
	} else if err := command.CheckNoCheckpoint(c.checkpoint()); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	switch err := c.steps(e, t); {
	case errors.Is(err, context.Canceled):
		_, err := fmt.Fprintf(e.Stdout, "stopped after step %d: --resume goes on from %s\n", t.Steps(), c.checkpoint())
		return err
	case err != nil:
		return err
	}
	r := t.Result()
	dtype := map[string]safetensors.DType{"f32": safetensors.F32, "f16": safetensors.F16,
		"bf16": safetensors.BF16}[c.DType]
	if err := t.Write(c.Out, dtype, line+c.text(t)); err != nil {
		return err
	}
	if err := os.Remove(c.checkpoint()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s: %d parameters, %d steps in %.0f s, %.0f tokens/s; held out: loss %.4f "+
		"nats, perplexity %.3f, accuracy %.2f %% of %d\n",
		c.Out, t.Parameters(), r.Steps, r.Seconds, float64(r.Tokens)/max(r.Seconds, 1e-9), r.Held.Loss,
		r.Held.Perplexity(), 100*r.Held.Accuracy, r.Held.Targets)
	return err
}

// checkpointEvery is how much time a crash costs at most.
const checkpointEvery = 30 * time.Second

// steps trains until it is done or a signal comes.
func (c *transformerFlags) steps(e *command.Env, t *train.Trainer) error {
	var done atomic.Int64
	var text atomic.Pointer[string]
	none := ""
	text.Store(&none)
	done.Store(int64(1000 * t.Progress()))
	if c.Progress {
		show := command.StartProgress(e.Stderr, e.Log, "‰", 1000,
			func() (int64, string) { return done.Load(), *text.Load() })
		defer show.Stop()
	}
	saved := time.Now()
	for !t.Done() {
		if e.Ctx.Err() != nil {
			return cmp.Or(t.Save(c.checkpoint()), context.Canceled)
		}
		if err := t.Step(); err != nil {
			return err
		}
		done.Store(int64(1000 * t.Progress()))
		now := trainingText(t)
		text.Store(&now)
		if time.Since(saved) > checkpointEvery {
			if err := t.Save(c.checkpoint()); err != nil {
				return err
			}
			saved = time.Now()
		}
	}
	return nil
}

// trainingText says how a training is getting on.
func trainingText(t *train.Trainer) string {
	records := t.Records()
	if len(records) == 0 {
		return ""
	}
	last := &records[len(records)-1]
	text := fmt.Sprintf("step %d, loss %.3f, %.0f tokens/s", t.Steps(), last.Loss,
		float64(t.Steps()*t.Tokens())/max(t.Elapsed().Seconds(), 1e-9))
	for i := len(records) - 1; i >= 0; i-- {
		if h := records[i].Held; h != nil {
			return text + fmt.Sprintf(", held out %.3f, accuracy %.1f %%", h.Loss, 100*h.Accuracy)
		}
	}
	return text
}

// text is the part of the command line that these flags decide. Minutes stay
// minutes: the rate follows the share of the time that is gone, so no number of
// steps makes the same model.
func (c *transformerFlags) text(t *train.Trainer) string {
	cfg := t.Config()
	text := fmt.Sprintf(" --layers %d --dim %d --heads %d --regulariser %s", cfg.Layers, cfg.Dim,
		cfg.Heads, cfg.Regulariser)
	for _, f := range []struct {
		flag  string
		value float64
	}{{"lambda", cfg.Lambda}, {"mu", cfg.Mu}, {"sparsity", cfg.Sparsity}, {"rate", cfg.Rate}} {
		if f.value != 0 {
			text += fmt.Sprintf(" --%s %v", f.flag, f.value)
		}
	}
	if cfg.Regulariser == train.L1 || cfg.Regulariser == train.Window {
		text += fmt.Sprintf(" --block %d", cfg.Block)
	}
	if cfg.Time > 0 {
		text += fmt.Sprintf(" --minutes %v", cfg.Time.Minutes())
	} else {
		text += fmt.Sprintf(" --steps %d", cfg.Steps)
	}
	if c.About != "" {
		text += fmt.Sprintf(" --about %q", c.About)
	}
	return text + fmt.Sprintf(" --batch %d --seed %d --dtype %s --out %s", cfg.Batch, cfg.Seed, c.DType,
		filepath.Base(c.Out))
}

// TrainLM is the command train-lm: its flags and arguments.
type TrainLM struct {
	Files []string `arg:"" name:"file" placeholder:"FILE"`

	Context   int    `default:"256" group:"Model"`
	Tokenizer string `placeholder:"FILE" group:"Model"`
	Batch     int    `default:"4" group:"Training"`
	transformerFlags
}

// Run trains, writes the directory and says what came of it.
func (c *TrainLM) Run(e *command.Env) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	cfg.Context, cfg.Batch = c.Context, c.Batch
	if err := errors.Join(command.CheckAmount("context", c.Context, 2, 1<<14),
		command.CheckAmount("batch", c.Batch, 1, 1<<14)); err != nil {
		return err
	}
	text, err := c.read()
	if err != nil {
		return err
	}
	e.Log.Info("text to learn from", "tokens", len(text.Learn), "held_out", len(text.Held), "vocabulary", text.Vocab)
	t, err := train.NewLM(cfg, text)
	if err != nil {
		return mistake.NewUsage(err)
	}
	command := "entropipe train-lm " + baseNames(c.Files)
	if c.Tokenizer != "" {
		command += " --tokenizer " + filepath.Base(c.Tokenizer)
	}
	return c.run(e, t, command+fmt.Sprintf(" --context %d", c.Context))
}

// maxText bounds the bytes of all files together.
const maxText = 1 << 30

// read reads the files.
func (c *TrainLM) read() (*train.Text, error) {
	var documents [][]byte
	total := 0
	for _, path := range c.Files {
		f, err := plainfile.Open(path)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, int64(maxText-total)+1))
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if total += len(data); total > maxText {
			return nil, fmt.Errorf("%s: more than %s of text in all", path, command.ByteSize(maxText))
		}
		if c.Tokenizer != "" && !utf8.Valid(data) { // every other byte would be learned as U+FFFD
			return nil, fmt.Errorf("%s: is not text in UTF-8; without --tokenizer any bytes can be learned", path)
		}
		documents = append(documents, data)
	}
	name := cmp.Or(c.About, baseNames(c.Files))
	if c.Tokenizer == "" {
		return train.ByteText(name, documents...)
	}
	return tokenText(name, c.Tokenizer, documents)
}

// tokenText encodes documents by a tokenizer.json, without the special tokens
// of its post-processor, which would stand in the middle of the text.
func tokenText(name, path string, documents [][]byte) (*train.Text, error) {
	data, err := plainfile.Read(path, token.MaxFile)
	if err != nil {
		return nil, err
	}
	t, err := token.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var ids []int32
	for _, d := range documents {
		ids = t.EncodePart(ids, string(d))
	}
	return train.TokenText(name, ids, t.Vocab(), data)
}

func baseNames(paths []string) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return strings.Join(names, " ")
}
