package main

import (
	"context"
	"fmt"

	"entropipe/sparse/freeze"
	"entropipe/sparse/train"
)

var texturedScenes = &experiment{
	name:  "scenes",
	title: "Regularised attention on textured images of 122 tokens",
	claim: "The paper prints for ViT-Small on CIFAR-100: 76.8 % dense, 74.8 with L1 at 62 % sparsity, 75.1 with its " +
		"regulariser at 64 %. " + sceneAbout + " Trained without a regulariser, with the corrected one, the paper's, " +
		"L1 on gates, which close for good after seven tenths of the training, and as a control to that with a " +
		"window that closes then. Masks are frozen on images that the models learned from. Intervals are Student's " +
		"over seeds; losses are in points of accuracy.",
	cells:   sceneCells,
	rows:    func(records []record) []record { return trainedRows(records, answers) },
	columns: imageColumns(),
	verdict: sceneVerdict,
}

func sceneCells(how effort) (cells []cell) {
	cfg, of, judged := sceneSettings(how)
	// A training comes for all seeds before the next one: few of them are enough for the row.
	for _, cfg := range trainings(cfg, sceneClosed) {
		for _, seed := range of {
			cfg := cfg
			cfg.Seed = seed
			cells = append(cells, cell{fmt.Sprintf("%s seed=%d", trainingKey(cfg), seed),
				func(ctx context.Context) ([]record, error) {
					t, err := newSceneModel(ctx, cfg, judged, how)
					if err != nil {
						return nil, err
					}
					records, err := t.judge(ctx, sceneClosed)
					if err == nil {
						records[0].Values["rise"] = t.rise()
					}
					return records, err
				}})
		}
	}
	return cells
}

func sceneVerdict(records []record) string {
	rows := trainedRows(records, answers)
	line := func(r train.Regulariser, sparsity, method string) string { return lineOf(rows, r, sparsity, method) }
	return fmt.Sprintf("%s\n\nAt 62.5 %%, in points of accuracy against plain training, dense: plain training with a "+
		"window %s, masks by mass %s, by entropy with keys sorted by cluster %s, by affinity (the paper's) %s, "+
		"BigBird %s, Linformer %s; the corrected regulariser with masks by entropy %s; the paper's with affinity "+
		"%s. Trained to the end with what is served, at 62.5 and 75 %%: L1's own gates %s, %s; a plain window %s, "+
		"%s.\n\n%s",
		servedOf(rows), line(train.None, "62.5 %", freeze.Window), line(train.None, "62.5 %", freeze.Mass),
		line(train.None, "62.5 %", freeze.Entropy), line(train.None, "62.5 %", freeze.Affinity),
		line(train.None, "62.5 %", freeze.BigBird), line(train.None, "62.5 %", methodLinformer),
		line(train.Entropy, "62.5 %", freeze.Entropy), line(train.Paper, "62.5 %", freeze.Affinity),
		line(train.L1, "62.5 %", methodGates), line(train.L1, "75 %", methodGates),
		line(train.Window, "62.5 %", methodLearnedW), line(train.Window, "75 %", methodLearnedW), riseOf(records))
}

// riseOf says by how much the accuracy rose in the last fifth of plain training.
func riseOf(records []record) string {
	var rise []float64
	for _, r := range records {
		if v, ok := r.Values["rise"]; ok && r.Text["training"] == string(train.None) {
			rise = append(rise, 100*v)
		}
	}
	mean, half := interval(rise)
	return fmt.Sprintf("In the last fifth of plain training the accuracy rises by %.2f ± %.2f points.", mean, half)
}
