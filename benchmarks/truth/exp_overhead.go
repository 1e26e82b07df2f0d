package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/freeze"
	"entropipe/sparse/hf"
	"entropipe/sparse/model"
	"entropipe/sparse/train"
)

var overhead = &experiment{
	eachSeed: true,
	name:     "overhead",
	title:    "What regularised attention costs to train, and when that pays",
	claim: "The paper prints that its regulariser makes the training of ViT-Small 8.2 % longer (2.1 % with its " +
		"mitigations), ViT-Base 12.1 % (3.5 %), BERT-base 9.5 % (2.8 %), and that the time comes back after 450,000 " +
		"batches of 85 ms at a speed-up of 1.47. Here: a language model of 2 layers of 128 numbers on 256 tokens, " +
		"and a classifier of images of 2 layers of 64 numbers on 122 tokens. Their steps under each regulariser are " +
		"taken in turns whose order rotates; a step's increase is against the step without a regulariser of the same " +
		"turn, and a seed's figure is the median of its turns, which come after the regulariser has its weight. One " +
		"sequence or image at serving, dense and with masks by mass at 75 %, blocks of 16, in turns too. The saving " +
		"has to pay for all of the extra training of 500 steps.",
	timed: true,
	cells: overheadCells,
	rows:  overheadRows,
	columns: rig.Table[*record]{
		text("model", "model"), text("training", "training"), value("ms a step", "step", "%.1f"),
		overSeeds("longer than none, %", "longer", "%+.2f", 1),
		value("dense at serving, ms", "dense", "%.3f"), value("masked, ms", "masked", "%.3f"),
		value("speed-up", "speedup", "%.2f"), text("pays after", "pays"),
	},
	verdict: overheadVerdict,
}

const overheadSteps = 500 // steps of the training whose extra time is to be paid for

// overheadModel is a network whose steps are timed.
type overheadModel struct {
	name    string
	cfg     train.Config
	trainer func(cfg train.Config) (*train.Trainer, error)
	served  func(ctx context.Context, cfg train.Config) (*trained, error)
}

func overheadModels(how effort) []overheadModel {
	text, pictures := train.Config{Context: 256, Steps: 64}, train.Config{Dim: 64, Steps: 64, Batch: 16}
	if how == quick {
		text = train.Config{Layers: 1, Dim: 16, Heads: 2, Context: 64, Steps: 40, Batch: 2}
		pictures = train.Config{Layers: 1, Dim: 16, Heads: 2, Patch: 2, Steps: 40, Batch: 2}
	}
	number, side := 600, 44
	if how == quick {
		number, side = 60, 16
	}
	return []overheadModel{
		{"language model", text, func(cfg train.Config) (*train.Trainer, error) {
			data, err := train.ByteText("text", []byte(invented(1<<16)))
			if err != nil {
				return nil, err
			}
			return train.NewLM(cfg, data)
		}, func(ctx context.Context, cfg train.Config) (*trained, error) {
			return newLanguageModel(ctx, cfg, 2, quick)
		}},
		{"classifier of images", pictures, func(cfg train.Config) (*train.Trainer, error) {
			return train.NewViT(cfg, train.Textured(number, side, cfg.Seed))
		}, func(ctx context.Context, cfg train.Config) (*trained, error) {
			t, err := visionModelOf(ctx, cfg, train.Textured(number, side, cfg.Seed), "vit timed", 2, quick)
			if err != nil {
				return nil, err
			}
			return &t.trained, nil
		}},
	}
}

func overheadCells(how effort) (cells []cell) {
	rounds := 8
	if how == quick {
		rounds = 1
	}
	for _, m := range overheadModels(how) {
		m.cfg.Seed, m.cfg.Every = seeds[0], 1<<20
		cells = append(cells, cell{fmt.Sprintf("%s steps=%d in turns, seed=%d", m.name, m.cfg.Steps, seeds[0]),
			func(ctx context.Context) ([]record, error) { return m.records(ctx, rounds) }})
	}
	return cells
}

// records times trainings and servings in turns. A training's turns count from its
// middle on, for regularisers wait for its beginning to pass.
func (m *overheadModel) records(ctx context.Context, rounds int) (records []record, err error) {
	trainers := make([]*train.Trainer, len(regularisersOfAttention))
	for k, r := range regularisersOfAttention {
		cfg := m.cfg
		cfg.Regulariser = r
		if trainers[k], err = m.trainer(cfg); err != nil {
			return nil, err
		}
	}
	took := make([][]float64, len(trainers)) // ms of every turn that counts
	for step := range m.cfg.Steps {
		for turn := range trainers {
			k := (step + turn) % len(trainers)
			start := time.Now()
			if err := trainers[k].Step(); err != nil {
				return nil, err
			}
			if step < m.cfg.Steps/2 {
				continue
			}
			took[k] = append(took[k], 1e3*time.Since(start).Seconds())
			if r := trainers[k].Records(); regularisersOfAttention[k] != train.None && r[len(r)-1].Lambda == 0 {
				return nil, fmt.Errorf("%s: the regulariser does not work in step %d", regularisersOfAttention[k], step)
			}
		}
	}
	short := m.cfg
	short.Steps = 4
	t, err := m.served(ctx, short)
	if err != nil {
		return nil, err
	}
	dense, masked, err := servingTimes(ctx, t, rounds)
	if err != nil {
		return nil, err
	}
	for k, r := range regularisersOfAttention {
		longer := make([]float64, len(took[k]))
		for turn, ms := range took[k] {
			longer[turn] = 100 * (ms/took[0][turn] - 1)
		}
		records = append(records, record{Text: map[string]string{"model": m.name, "training": string(r)},
			Values: map[string]float64{"step": quantile(took[k], .5), "longer": quantile(longer, .5),
				"dense": 1e3 * dense.Seconds(), "masked": 1e3 * masked.Seconds()}})
	}
	return records, nil
}

// servingTimes are the least times of a sequence or image, dense and masked.
func servingTimes(ctx context.Context, t *trained, rounds int) (dense, masked time.Duration, err error) {
	o, err := t.method(ctx, freeze.Mass, .75)
	if err != nil {
		return 0, 0, err
	}
	session, image := t.model.NewSession(1), 0
	var b model.Batch
	if t.model.Config().Arch == hf.ViT {
		image = t.model.Config().Image[0] * t.model.Config().Image[1]
	} else {
		b.IDs = t.inputs.Sequences[0]
		b.Starts = []int32{0, int32(len(b.IDs))}
	}
	serve := func(o model.Options) (err error) {
		if image > 0 {
			_, err = session.Images(t.inputs.Images[:image], 1, o)
		} else {
			_, err = session.Hidden(b, o)
		}
		return err
	}
	least := []time.Duration{math.MaxInt64, math.MaxInt64}
	for range 40 * rounds {
		for k, o := range []model.Options{{}, o} {
			start := time.Now()
			if err := serve(o); err != nil {
				return 0, 0, err
			}
			least[k] = min(least[k], time.Since(start))
		}
	}
	return least[0], least[1], nil
}

func overheadRows(records []record) (rows []record) {
	for _, r := range records {
		v, row := r.Values, record{Text: map[string]string{"model": r.Text["model"], "training": r.Text["training"]}}
		row.Values = map[string]float64{"step": v["step"], "longer": v["longer"], "longer_ci": v["longer_ci"],
			"dense": v["dense"], "masked": v["masked"], "speedup": v["dense"] / v["masked"]}
		saved, extra := v["dense"]-v["masked"], overheadSteps*v["step"]*(1-1/(1+v["longer"]/100))
		switch {
		case r.Text["training"] == string(train.None):
			row.Text["pays"] = "-"
		case saved <= 0:
			row.Text["pays"] = "never: no time is saved"
		default:
			row.Text["pays"] = fmt.Sprintf("%.0f served", math.Ceil(max(extra, 0)/saved))
		}
		rows = append(rows, row)
	}
	return rows
}

func overheadVerdict(records []record) string {
	says := ""
	for _, r := range overheadRows(records) {
		if name := r.Text["training"]; name != string(train.None) {
			says += fmt.Sprintf("A step of the %s with %s takes %.1f ± %.1f %% longer and pays after %s. ",
				r.Text["model"], name, r.Values["longer"], r.Values["longer_ci"], r.Text["pays"])
		}
	}
	return says + "That is the arithmetic of time alone: it assumes that the masks of the regularised training may " +
		"be served, which the tables on the language model and on images decide."
}
