package main

import (
	"context"
	"fmt"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
	"entropipe/sparse/freeze"
	"entropipe/sparse/model"
	"entropipe/sparse/train"
)

// prunedShares are the shares of the weights that are pruned: the first while the network
// learns with what is left, all of them after it has learned.
var prunedShares = []float64{.9, .85, .5}

var pruning = &experiment{
	name:  "pruning",
	title: "Masks together with magnitude pruning",
	claim: "The paper prints for ViT-Small 75.1 % with its regulariser at 75 % sparsity, 74.2 with magnitude " +
		"pruning at 85 %, and 74.5 with both at 90 %, without dense, intervals or a test of whether both disturb " +
		"each other. Here: photographs, network and length of training of table `clothes`; of the 6 blocks of 16 " +
		"that a row has, masks of 75 % keep 2. Two by two: masks of 75 % or none, and weights pruned or not, each " +
		"matrix of a layer by its own magnitudes. Learned with (90 %): the smallest weights go after seven tenths " +
		"of the training and the rest learns on, so the network knows of the pruning; afterwards: they go when the " +
		"training is over. Masks are frozen on the pruned model; the window of the last rows was learned with, and " +
		"its model without masks is plain training. Interaction: the loss with both, less the loss of pruning " +
		"alone, less the loss of masks alone, plus that of neither, of the same seed. More than 0 means that both " +
		"together lose more than their parts. Points of accuracy; intervals are Student's over seeds.",
	cells: pruningCells,
	rows:  pruningRows,
	columns: rig.Table[*record]{
		text("training", "training"), text("masks", "masks"), text("pruned", "pruned"), text("when", "when"),
		overSeeds("neither, wrong %", "neither", "%.2f", 100),
		overSeeds("pruning costs", "weights", "%+.2f", 100), overSeeds("masks cost", "blocks", "%+.2f", 100),
		overSeeds("both cost", "both", "%+.2f", 100),
		overSeeds("pruning costs beside masks", "beside", "%+.2f", 100),
		overSeeds("interaction", "interaction", "%+.2f", 100), text("both together lose", "told"),
	},
	verdict: pruningVerdict,
}

const (
	whenLearned = "learned with"
	whenAfter   = "afterwards"
)

// pruningMasks is the mask that a training is judged with, beside none.
func pruningMasks(r train.Regulariser) string {
	switch r {
	case train.Window:
		return methodLearnedW
	case train.None:
		return freeze.Mass
	}
	return ownMask(r)
}

func pruningCells(how effort) (cells []cell) {
	cfg, of, judged := clothesSettings(how)
	add := func(cfg train.Config, r train.Regulariser) {
		cfg.Regulariser = r
		if r == train.Window {
			cfg.Sparsity = closedByL1
		}
		cells = append(cells, cell{fmt.Sprintf("%s seed=%d", trainingKey(cfg), cfg.Seed),
			func(ctx context.Context) ([]record, error) {
				t, err := newClothesModel(ctx, cfg, judged, how)
				if err != nil {
					return nil, err
				}
				return t.pruned(ctx)
			}})
	}
	// What the row needs comes first, for all seeds.
	for _, some := range [][]train.Regulariser{{train.Paper, train.None, train.Window}, {train.Entropy}} {
		for _, cfg.Seed = range of {
			for _, cfg.Pruned = range []float64{0, prunedShares[0]} {
				for _, r := range some {
					add(cfg, r)
				}
			}
		}
	}
	return cells
}

// pruned judges a model without masks and with its masks, as it learned, and if it learned
// with all of its weights, with fewer of them.
func (t *visionTrained) pruned(ctx context.Context) (records []record, err error) {
	cfg := t.result.Trainer.Config()
	masks := pruningMasks(cfg.Regulariser)
	add := func(m *model.Model, share float64, when string) error {
		var o model.Options
		if masks == methodLearnedW {
			o = t.gated()
		} else if o, err = t.frozen(ctx, m, masks, closedByL1, t.sorts(masks)); err != nil {
			return err
		}
		for k, o := range []model.Options{{}, o} {
			wrong, err := t.score(m, o)
			if err != nil {
				return err
			}
			records = append(records, record{Text: map[string]string{"training": string(cfg.Regulariser),
				"masks": []string{methodDense, masks}[k], "pruned": percent(share), "when": when},
				Values: map[string]float64{"loss": meanOf(wrong), "seed": float64(t.seed)}})
		}
		return nil
	}
	if err := add(t.model, cfg.Pruned, whenLearned); err != nil || cfg.Pruned > 0 {
		return records, err
	}
	for _, share := range prunedShares {
		light, err := t.lighter(share)
		if err == nil {
			err = add(light, share, whenAfter)
		}
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// corner is the loss of a training with masks or methodDense and pruned weights, a value a
// seed. A window that was learned with has plain training as its model without masks.
func (s sheet) corner(training, masks, share, when string) units {
	if training == string(train.Window) && masks == methodDense {
		training = string(train.None)
	}
	if share == percent(0) {
		when = whenLearned
	}
	return s.unitsOf("pruning", "loss", "training="+training, "masks="+masks, "pruned="+share, "when="+when).bySeed()
}

// besideMasks is what pruning costs a model with masks, in shares of the answers.
func (s sheet) besideMasks(training, share, when string) units {
	masks := pruningMasks(train.Regulariser(training))
	return s.corner(training, masks, share, when).less(s.corner(training, masks, percent(0), when))
}

// interaction is what both cost beyond the sum of what each costs alone.
func (s sheet) interaction(training, share, when string) units {
	alone := s.corner(training, methodDense, share, when).less(s.corner(training, methodDense, percent(0), when))
	return s.besideMasks(training, share, when).less(alone)
}

func pruningRows(records []record) (rows []record) {
	s := sheet{"pruning": records}
	for _, r := range []train.Regulariser{train.None, train.Entropy, train.Paper, train.Window} {
		training, masks := string(r), pruningMasks(r)
		for _, when := range []string{whenLearned, whenAfter} {
			for _, share := range prunedShares {
				share := percent(share)
				neither := s.corner(training, methodDense, percent(0), when)
				both := s.corner(training, masks, share, when)
				if len(neither.with(both, func(a, _ float64) float64 { return a })) == 0 {
					continue
				}
				row := record{Text: map[string]string{"training": training, "masks": masks, "pruned": share,
					"when": when}}
				interaction := s.interaction(training, share, when).values()
				row.add("neither", nil, neither.values())
				row.add("weights", nil, s.corner(training, methodDense, share, when).less(neither).values())
				row.add("blocks", nil, s.corner(training, masks, percent(0), when).less(neither).values())
				row.add("both", nil, both.less(neither).values())
				row.add("beside", nil, s.besideMasks(training, share, when).values())
				row.add("interaction", nil, interaction)
				row.Text["told"] = told(row.Values["interaction"], row.Values["interaction_ci"],
					float64(len(interaction)), "more than their parts", "less than their parts")
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func pruningVerdict(records []record) string {
	var p []float64
	var says []string
	rows, s := pruningRows(records), sheet{"pruning": records}
	for _, r := range rows {
		one, _ := s.interaction(r.Text["training"], r.Text["pruned"], r.Text["when"]).mean().P(0)
		p = append(p, one)
	}
	for k, one := range estimate.Holm(p) {
		if r := rows[k]; one <= estimate.Level {
			says = append(says, fmt.Sprintf("%s with %s, %s pruned %s: %+.2f points, p = %.2g", r.Text["training"],
				r.Text["masks"], r.Text["pruned"], r.Text["when"], 100*r.Values["interaction"], one))
		}
	}
	tests := fmt.Sprintf("Of %d tests of an interaction %d leave out 0 after Holm's correction", len(rows), len(says))
	if says != nil {
		tests += ": " + strings.Join(says, "; ")
	}
	return tests + ". A model that is near chance with masks or with pruning alone has little left to lose, which " +
		"pushes the interaction below 0: read it beside the columns of costs."
}
