package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/models/safetensors"
	"entropipe/sparse/freeze"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
	"entropipe/sparse/train"
)

// trained is a small transformer of one training, ready to be judged with masks.
type trained struct {
	model  *model.Model
	result *train.Result
	inputs freeze.Inputs // for the calibration, of what it learned from
	length int           // tokens of a sequence
	block  int
	linear bool // Linformer applies: not causal
	seed   uint64
	// score returns, for every held-out input, what it loses: nats a target, or 1
	// for a wrong answer.
	score func(m *model.Model, o model.Options) ([]float64, error)
}

// regularisersOfAttention are compared, and trainingsOfAttention also the control
// that has none.
var (
	regularisersOfAttention = []train.Regulariser{train.None, train.Entropy, train.Paper, train.L1}
	trainingsOfAttention    = append(slices.Clone(regularisersOfAttention), train.Window)
)

const (
	methodGates    = "L1's own gates"
	methodLearnedW = "window, learned with" // the model was trained with the window that judges it
	closedByL1     = .75
	pruned         = .5 // share of the weights, smallest magnitudes first
)

// trainers are the goroutines of a training that is not timed. The model does not depend on their number.
const trainers = 2

// closing says whether a training ends with few blocks, which it learns to do
// with.
func closing(r train.Regulariser) bool { return r == train.L1 || r == train.Window }

// trainings are the configurations that are compared at some sparsities: those
// that close blocks once for each.
func trainings(cfg train.Config, sparsities []float64) (all []train.Config) {
	for _, r := range trainingsOfAttention {
		cfg := cfg
		cfg.Regulariser = r
		if !closing(r) {
			all = append(all, cfg)
			continue
		}
		for _, cfg.Sparsity = range sparsities {
			all = append(all, cfg)
		}
	}
	return all
}

// trainingKey is a training's part of a cell's key.
func trainingKey(cfg train.Config) string {
	key := fmt.Sprintf("%s steps=%d", cfg.Regulariser, cfg.Steps)
	if closing(cfg.Regulariser) && cfg.Sparsity != closedByL1 {
		key += fmt.Sprintf(" closed=%g", cfg.Sparsity)
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"pruned", cfg.Pruned}, {"smoothing", cfg.Smoothing}, {"adversarial", cfg.Adversarial}} {
		if s.value > 0 {
			key += fmt.Sprintf(" %s=%g", s.name, s.value)
		}
	}
	return key
}

// methodsFor says which methods a training is judged with at a sparsity. One that
// closes blocks is judged with all masks only at 75 %, else with its own.
func (t *trained) methodsFor(cfg train.Config, sparsity float64) (methods []string) {
	if closing(cfg.Regulariser) && sparsity == cfg.Sparsity {
		methods = []string{methodGates}
		if cfg.Regulariser == train.Window {
			methods = []string{methodLearnedW}
		}
	}
	switch {
	case cfg.Regulariser == train.Window, cfg.Regulariser == train.L1 && cfg.Sparsity != closedByL1:
		return methods
	}
	methods = append([]string{freeze.Window, freeze.Mass, freeze.Entropy, freeze.Affinity}, methods...)
	if cfg.Regulariser == train.None {
		methods = append(methods, freeze.BigBird, methodOracle)
		if t.linear {
			methods = append(methods, methodLinformer)
		}
	}
	return methods
}

// judge returns a record for every sparsity and method, dense first.
func (t *trained) judge(ctx context.Context, sparsities []float64) (records []record, err error) {
	cfg := t.result.Trainer.Config()
	r := cfg.Regulariser
	add := func(m *model.Model, o model.Options, method string, sparsity float64) error {
		losses, err := t.score(m, o)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		records = append(records, record{Text: map[string]string{"training": string(r), "method": method,
			"sparsity": percent(sparsity)},
			Values: map[string]float64{"loss": meanOf(losses), "seed": float64(t.seed), "sparsity": sparsity}})
		return nil
	}
	if !closing(r) || r == train.L1 && cfg.Sparsity == closedByL1 {
		if err := add(t.model, model.Options{}, methodDense, 0); err != nil {
			return nil, err
		}
	}
	for _, sparsity := range sparsities {
		for _, method := range t.methodsFor(cfg, sparsity) {
			o, err := t.method(ctx, method, sparsity)
			if err == nil {
				err = add(t.model, o, method, sparsity)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if r != train.None && r != train.Entropy {
		return records, nil
	}
	light, err := t.lighter(pruned)
	if err != nil {
		return nil, err
	}
	if err := add(light, model.Options{}, "dense, half of the weights pruned", 0); err != nil {
		return nil, err
	}
	o, err := t.method(ctx, freeze.Mass, closedByL1)
	if err == nil {
		err = add(light, o, "mass, half of the weights pruned", closedByL1)
	}
	return records, err
}

// method returns how a method attends.
func (t *trained) method(ctx context.Context, name string, sparsity float64) (model.Options, error) {
	causal := t.model.Config().Causal
	budget := func(r int) int {
		return support.Budget(sparsity, r, support.Blocks(t.length, t.block), causal)
	}
	switch name {
	case methodOracle:
		return model.Options{Hook: func(_, _ int, j *kern.Job) { j.Layouts = ownBlocks(j, t.block, budget) }}, nil
	case methodLinformer:
		return model.Options{Hook: func(_, _ int, j *kern.Job) { shorten(j, min(budget(0)*t.block, j.K.Rows)) }}, nil
	case methodGates, methodLearnedW:
		return t.gated(), nil
	}
	return t.frozen(ctx, t.model, name, sparsity, t.sorts(name))
}

// sorts reports whether the keys of a mask are put in the order of their clusters.
func (t *trained) sorts(name string) bool {
	return t.model.Config().Arch == hf.ViT && (name == freeze.Affinity || name == freeze.Entropy)
}

// frozen returns a mask that is frozen on what the model learned from; sorted: with keys
// in the order of their clusters.
func (t *trained) frozen(ctx context.Context, m *model.Model, name string, sparsity float64,
	sorted bool) (model.Options, error) {
	o := freeze.Options{Select: name, Sparsity: sparsity, Block: t.block, Seed: t.seed, Mode: support.Static,
		HeldOut: 2, Workers: 1, Permute: sorted}
	if m.Config().Arch != hf.ViT {
		o.Buckets = []int{t.length}
	}
	set, err := freeze.Freeze(ctx, m, t.inputs, o)
	if err != nil {
		return model.Options{}, err
	}
	planner, err := plan.New(set, plan.Facts{Facts: freeze.Facts(m), Always: true})
	if err != nil {
		return model.Options{}, err
	}
	return model.Options{Plan: planner.For}, nil
}

// ownBlocks is the blocks with the most mass of this sequence's own attention;
// every row keeps its own block.
func ownBlocks(j *kern.Job, block int, budget func(r int) int) []*support.Layout {
	n := j.K.Rows
	blocks := support.Blocks(n, block)
	mass := make([]float64, blocks*blocks)
	layouts := make([]*support.Layout, j.KVHeads)
	for h := range layouts {
		kern.BlockMass(mass, j, h, block)
		layouts[h] = support.New(n, block, j.Causal, func(r int) []int32 {
			end := blocks
			if j.Causal {
				end = r + 1
			}
			return support.Top(mass[r*blocks:r*blocks+end], budget(r), r)
		})
	}
	return layouts
}

// gated reads the blocks that the training left open.
func (t *trained) gated() model.Options {
	open := t.result.Trainer.Open()
	return model.Options{Hook: func(layer, _ int, j *kern.Job) {
		j.Layouts = make([]*support.Layout, j.KVHeads)
		for h := range j.Layouts {
			blocks := support.Blocks(j.K.Rows, t.block)
			j.Layouts[h] = support.New(j.K.Rows, t.block, j.Causal, func(r int) (cols []int32) {
				for c, is := range open[layer][h][r*blocks : (r+1)*blocks] {
					if is && (!j.Causal || c <= r) {
						cols = append(cols, int32(c))
					}
				}
				return cols
			})
		}
	}}
}

// lighter is the model without a share of the weights of its layers, those of the
// smallest magnitude of each matrix.
func (t *trained) lighter(share float64) (*model.Model, error) {
	dir, err := os.MkdirTemp("", "entropipe-pruned-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := t.result.Trainer.Write(filepath.Join(dir, "whole"), safetensors.F32, ""); err != nil {
		return nil, err
	}
	from, err := hf.Open(filepath.Join(dir, "whole"))
	if err != nil {
		return nil, err
	}
	defer from.Close()
	tensors := map[string][]float32{}
	for _, tensor := range from.Config().Tensors() {
		v, err := from.Float32s(tensor.Name)
		if err != nil {
			return nil, err
		}
		if layer := strings.HasPrefix(tensor.Name, "h.") ||
			strings.Contains(tensor.Name, "layer."); layer && len(tensor.Shape) == 2 {
			prune(v, share)
		}
		tensors[tensor.Name] = v
	}
	if err := hf.Save(filepath.Join(dir, "light"), from.Config(), tensors, safetensors.F32); err != nil {
		return nil, err
	}
	return model.Load(filepath.Join(dir, "light"))
}

// prune sets the smallest share of v to zero.
func prune(v []float32, share float64) {
	sizes := make([]float64, len(v))
	for i, x := range v {
		sizes[i] = math.Abs(float64(x))
	}
	slices.Sort(sizes)
	for i, x := range v {
		if math.Abs(float64(x)) < sizes[int(share*float64(len(v)))] {
			v[i] = 0
		}
	}
}

// finished trains t, or takes the checkpoint that an earlier run left of the same
// training: its bits do not depend on which. Checkpoints lie in a folder of the
// user's caches; quick keeps none.
func finished(ctx context.Context, t *train.Trainer, name string, how effort) (*train.Result, error) {
	path, err := "", error(nil)
	if how != quick {
		if path, err = checkpointOf(name); err != nil {
			return nil, err
		}
		switch err := t.Resume(path); {
		case err == nil && t.Done():
			return t.Result(), nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	for !t.Done() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := t.Step(); err != nil {
			return nil, err
		}
	}
	if path != "" {
		if err := t.Save(path); err != nil {
			return nil, err
		}
	}
	return t.Result(), nil
}

// checkpointOf is the file of a training's checkpoint.
func checkpointOf(name string) (string, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(caches, "entropipe", "tables")
	return filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".safetensors"), os.MkdirAll(folder, 0o777)
}

// loaded writes a training's model and reads it as it would be served.
func loaded(r *train.Result) (*model.Model, error) {
	dir, err := os.MkdirTemp("", "entropipe-trained-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := r.Trainer.Write(filepath.Join(dir, "model"), safetensors.F32, ""); err != nil {
		return nil, err
	}
	return model.Load(filepath.Join(dir, "model"))
}
