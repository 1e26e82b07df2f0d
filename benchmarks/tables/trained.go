package main

import (
	"context"
	"fmt"
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

// The trainings that are compared, and the share of blocks that L1 closes.
var regularisersOfAttention = []train.Regulariser{train.None, train.Entropy, train.Paper, train.L1}

const (
	methodGates = "L1's own gates"
	closedByL1  = .75
	pruned      = .5 // of the weights, by magnitude
)

// methodsFor says which methods a training is judged with at a sparsity.
func (t *trained) methodsFor(r train.Regulariser, sparsity float64) []string {
	methods := []string{freeze.Window, freeze.Mass, freeze.Entropy, freeze.Affinity}
	if r == train.None {
		methods = append(methods, freeze.BigBird, methodOracle)
		if t.linear {
			methods = append(methods, methodLinformer)
		}
	}
	if r == train.L1 && sparsity == closedByL1 {
		methods = append(methods, methodGates)
	}
	return methods
}

// judge returns a record for every sparsity and method, dense first.
func (t *trained) judge(ctx context.Context, r train.Regulariser, sparsities []float64) (records []record, err error) {
	add := func(m *model.Model, o model.Options, method string, sparsity float64) error {
		losses, err := t.score(m, o)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		records = append(records, record{Text: map[string]string{"training": string(r), "method": method, "sparsity": fmt.Sprintf("%g %%", 100*sparsity)},
			Values: map[string]float64{"loss": meanOf(losses), "seed": float64(t.seed), "sparsity": sparsity}})
		return nil
	}
	if err := add(t.model, model.Options{}, methodDense, 0); err != nil {
		return nil, err
	}
	for _, sparsity := range sparsities {
		for _, method := range t.methodsFor(r, sparsity) {
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
	light, err := t.lighter()
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
	case methodGates:
		return t.gated(), nil
	}
	o := freeze.Options{Select: name, Sparsity: sparsity, Block: t.block, Seed: t.seed, Mode: support.Static, HeldOut: 2, Workers: 1}
	if t.model.Config().Arch == hf.ViT {
		o.Permute = name == freeze.Affinity || name == freeze.Entropy
	} else {
		o.Buckets = []int{t.length}
	}
	set, err := freeze.Freeze(ctx, t.model, t.inputs, o)
	if err != nil {
		return model.Options{}, err
	}
	planner, err := plan.New(set, plan.Facts{Facts: freeze.Facts(t.model), Always: true})
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

// gated reads the blocks that L1 left open.
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

// lighter is the model without half of the weights of its layers, those of the
// smallest magnitude of each matrix.
func (t *trained) lighter() (*model.Model, error) {
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
		if layer := strings.HasPrefix(tensor.Name, "h.") || strings.Contains(tensor.Name, "layer."); layer && len(tensor.Shape) == 2 {
			prune(v)
		}
		tensors[tensor.Name] = v
	}
	if err := hf.Save(filepath.Join(dir, "light"), from.Config(), tensors, safetensors.F32); err != nil {
		return nil, err
	}
	return model.Load(filepath.Join(dir, "light"))
}

// prune sets the smaller half of v to zero.
func prune(v []float32) {
	sizes := make([]float64, len(v))
	for i, x := range v {
		sizes[i] = math.Abs(float64(x))
	}
	slices.Sort(sizes)
	for i, x := range v {
		if math.Abs(float64(x)) < sizes[int(pruned*float64(len(v)))] {
			v[i] = 0
		}
	}
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

// trainedRows has a line for every training, sparsity and method: how much is lost
// to the same training dense, to the plain one dense, and gained on the window of
// the same training and budget. inPerplexity: differences are shares of
// perplexity, else of answers.
func trainedRows(records []record, inPerplexity bool) (rows []record) {
	of := func(training, sparsity, method string) (some []record) {
		for _, r := range records {
			if r.Text["training"] == training && r.Text["method"] == method && r.Text["sparsity"] == sparsity {
				some = append(some, r)
			}
		}
		return some
	}
	change := func(a, b []record) []float64 { // of a on b
		d := against(a, b, "loss")
		for k := range d {
			if inPerplexity {
				d[k] = math.Expm1(d[k])
			}
		}
		return d
	}
	bound := servedPoints
	if inPerplexity {
		bound = servedPerplexity
	}
	seen := map[string]bool{}
	for _, r := range records {
		training, sparsity, method := r.Text["training"], r.Text["sparsity"], r.Text["method"]
		if key := training + sparsity + method; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		here := of(training, sparsity, method)
		row := record{Text: map[string]string{"training": training, "sparsity": sparsity, "method": method}}
		row.add("loss", nil, valuesOf(here, "loss"))
		plain := change(here, of(string(train.None), "0 %", methodDense))
		if training != string(train.None) || method != methodDense {
			row.add("lost", nil, plain)
		}
		if method != methodDense && !strings.Contains(method, "pruned") {
			row.add("own", nil, change(here, of(training, "0 %", methodDense)))
			row.Text["serve"] = "dense: it is the window"
			if method != freeze.Window {
				gained := change(of(training, sparsity, freeze.Window), here)
				row.add("gained", nil, gained)
				row.Text["serve"] = serve(plain, gained, bound)
			}
			if method == methodOracle || method == methodLinformer {
				row.Text["serve"] = ""
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b record) int {
		x := slices.Index(regularisersOfAttention, train.Regulariser(a.Text["training"]))
		y := slices.Index(regularisersOfAttention, train.Regulariser(b.Text["training"]))
		return x - y
	})
	return rows
}

// servedOf lists the lines that the rule serves sparse.
func servedOf(rows []record) string {
	var which []string
	for _, r := range rows {
		if r.Text["serve"] == "sparse" {
			which = append(which, fmt.Sprintf("%s at %s, trained with %s", r.Text["method"], r.Text["sparsity"], r.Text["training"]))
		}
	}
	if which == nil {
		return "No mask passes the rule for serving sparse: dense is better, and is what is served."
	}
	return "The rule for serving sparse is passed by " + strings.Join(which, "; ") + "."
}

// lineOf is a row's loss to the plain dense model, for verdicts.
func lineOf(rows []record, training train.Regulariser, sparsity, method string) string {
	for _, r := range rows {
		if r.Text["training"] == string(training) && r.Text["sparsity"] == sparsity && r.Text["method"] == method {
			return fmt.Sprintf("%+.2f ± %.2f", 100*r.Values["lost"], 100*r.Values["lost_ci"])
		}
	}
	return "not measured"
}
