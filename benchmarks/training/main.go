// Command training trains the small transformers of train-lm and train-vit, and
// says how fast and how well: the speed of a step with every regulariser beside
// that of one matrix product, timed in turns, and what held-out data say after
// some minutes on tiny shakespeare and on MNIST. Rows are kept in
// training.jsonl as they are done; a run that was interrupted goes on with
// those that are missing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/train"
)

type cli struct {
	Data    string  `env:"ENTROPIPE_TESTDATA" default:"../shared/data" help:"Folder of real data (${default})."`
	Minutes float64 `default:"5" help:"Minutes of each of the two trainings (${default})."`
	Rounds  int     `default:"12" help:"Steps of each speed, after one that is not counted (${default})."`
	Results string  `default:"benchmarks/results" help:"Folder for training.jsonl and training.md (${default})."`
	Again   bool    `help:"Measure also what training.jsonl holds."`
	Render  bool    `help:"Measure nothing; write training.md again from training.jsonl."`
	Threads []int   `default:"1,2" help:"Goroutines of the speeds (${default})."`
	Workers int     `default:"0" help:"Goroutines of a whole training; 0: one a processor."`
}

// row is one measurement. Of a speed, Seconds are the least of a step.
type row struct {
	Key                     string  `json:"key"`
	Kind                    string  `json:"kind"` // step or run
	Data                    string  `json:"data"`
	Regulariser             string  `json:"regulariser"`
	Workers                 int     `json:"workers"`
	Steps                   int     `json:"steps"`
	Seconds                 float64 `json:"seconds"`
	TokensPerSecond         float64 `json:"tokens_per_second"`
	GFLOPs                  float64 `json:"gflops"`
	Share                   float64 `json:"share_of_product"` // 0 of runs
	Loss, Accuracy          float64
	Parameters, SequenceLen int
}

func main() {
	var c cli
	kong.Parse(&c, kong.Name("training"),
		kong.Description("Trains small transformers, and says how fast and how well."))
	rig.Main("training", c.run)
}

func (c *cli) run(ctx context.Context) error {
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	j, err := rig.ReadJournal[row]("training", filepath.Join(c.Results, "training.jsonl"))
	if err != nil {
		return err
	}
	if c.Again && !c.Render {
		if err := j.Forget(); err != nil {
			return err
		}
	}
	if c.Render {
		return rig.WritePage(c.page(), report(j))
	}
	for _, m := range c.measurements() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if slices.ContainsFunc(j.Records, func(r rig.Record[row]) bool { return r.Figures.Key == m.key }) {
			continue
		}
		fmt.Fprintln(os.Stderr, m.key)
		r, err := m.measure(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(os.Stderr, "left out: %v\n", err)
			continue
		}
		if err != nil {
			return err
		}
		r.Key = m.key
		if err := j.Add(r); err != nil {
			return err
		}
	}
	return rig.WritePage(c.page(), report(j))
}

func (c *cli) page() string { return filepath.Join(c.Results, "training.md") }

// kind is the kind of data that a transformer is trained on.
type kind int

const (
	text kind = iota
	images
)

// measurement is one row to come.
type measurement struct {
	key     string
	measure func(ctx context.Context) (row, error)
}

func (c *cli) measurements() (all []measurement) {
	for _, kind := range []kind{text, images} {
		for _, reg := range []train.Regulariser{train.None, train.Entropy, train.Paper, train.L1} {
			for _, workers := range c.Threads {
				key := fmt.Sprintf("step, text %v, %s, %d workers, %d rounds", kind == text, reg, workers, c.Rounds)
				all = append(all, measurement{key, func(context.Context) (row, error) {
					return c.step(kind, reg, workers)
				}})
			}
		}
	}
	for _, kind := range []kind{text, images} {
		key := fmt.Sprintf("run, text %v, %v minutes, %d workers", kind == text, c.Minutes, c.Workers)
		all = append(all, measurement{key, func(ctx context.Context) (row, error) { return c.whole(ctx, kind) }})
	}
	return all
}

// whole trains for the minutes.
func (c *cli) whole(ctx context.Context, of kind) (row, error) {
	cfg := train.Config{Time: time.Duration(c.Minutes * float64(time.Minute)), Seed: 1, Workers: c.Workers}
	var r *train.Result
	name := "tiny shakespeare, bytes"
	if of == text {
		data, err := os.ReadFile(filepath.Join(c.Data, "text", "tinyshakespeare", "input.txt"))
		if err != nil {
			return row{}, err
		}
		t, err := train.ByteText(name, data)
		if err != nil {
			return row{}, err
		}
		if r, err = train.LM(ctx, cfg, t, "", ""); err != nil {
			return row{}, err
		}
	} else {
		name = "MNIST, patches of 4 × 4, moved by up to 2 pixels"
		folder := filepath.Join(c.Data, "images", "mnist")
		set, err := train.ReadImages(os.DirFS(folder), name)
		if err != nil {
			return row{}, fmt.Errorf("%s: %w", folder, err)
		}
		cfg.Shift = 2
		if r, err = train.ViT(ctx, cfg, set, "", ""); err != nil {
			return row{}, err
		}
	}
	return row{Kind: "run", Data: name, Regulariser: "none", Workers: c.Workers, Steps: r.Steps, Seconds: r.Seconds,
		TokensPerSecond: float64(r.Tokens) / r.Seconds,
		GFLOPs:          2e-9 * r.Trainer.Multiplications() * float64(r.Steps) / r.Seconds,
		Loss:            r.Held.Loss, Accuracy: r.Held.Accuracy, Parameters: r.Trainer.Parameters(),
		SequenceLen: r.Trainer.Tokens() / r.Trainer.Config().Batch}, nil
}
