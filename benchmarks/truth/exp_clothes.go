package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"entropipe/sparse/freeze"
	"entropipe/sparse/train"
)

// clothesClosed is the sparsity that whole blocks, 4 of 6, have nearest to the paper's for
// ViT-Small. Masks and gates round it to the same number.
const clothesClosed = .67

var photographedClothes = &experiment{
	name:  "clothes",
	title: "Regularised attention on photographs of clothes, 82 tokens",
	claim: "The paper prints for ViT-Small on CIFAR-100: 76.8 % dense, 74.8 with L1 at 62 % sparsity, 75.1 with " +
		"its regulariser at 64 %. Here: Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), grey photographs of clothes " +
		"of ten classes, 27 × 27 pixels (the last row and column are left out): patches of 3 × 3 give 82 tokens, 6 " +
		"blocks of 16, of which a row keeps 2 at 67 %, which is nearest to the paper's sparsities. ViT of 2 layers " +
		"of 64 numbers, 4 heads; 25,000 photographs to learn from, 2,500 steps of 16; 1,000 of 5,000 held-out " +
		"photographs judge. Trained without a regulariser, with the corrected one, the paper's, L1 on gates, which " +
		"close for good after seven tenths of the training, and as a control to that with a window that closes " +
		"then. Masks are frozen on photographs that the models learned from. Intervals are Student's over seeds; " +
		"losses are in points of accuracy.",
	cells:   clothesCells,
	rows:    func(records []record) []record { return trainedRows(records, answers) },
	columns: imageColumns(),
	verdict: clothesVerdict,
}

// clothesSettings are those of all trainings on photographs, their seeds, and how many held-out
// photographs judge them.
func clothesSettings(how effort) (cfg train.Config, of []uint64, judged int) {
	if how == quick {
		return train.Config{Layers: 1, Dim: 16, Heads: 2, Patch: 2, Steps: 10, Batch: 2, Judged: 4, Every: 8},
			fewSeeds(), 8
	}
	return train.Config{Dim: 64, Patch: 3, Steps: 2500, Batch: 16, Rate: .001, Judged: 1000, Every: 500}, seeds, 1000
}

// newClothesModel trains a classifier of photographs.
func newClothesModel(ctx context.Context, cfg train.Config, judged int, how effort) (*visionTrained, error) {
	images, err := clothesImages(how)
	if err != nil {
		return nil, err
	}
	return visionModelOf(ctx, cfg, images, "vit clothes", judged, how)
}

func clothesCells(how effort) (cells []cell) {
	cfg, of, judged := clothesSettings(how)
	for _, cfg := range trainings(cfg, []float64{clothesClosed}) {
		for _, seed := range of {
			cfg := cfg
			cfg.Seed = seed
			cells = append(cells, cell{fmt.Sprintf("%s seed=%d", trainingKey(cfg), seed),
				func(ctx context.Context) ([]record, error) {
					t, err := newClothesModel(ctx, cfg, judged, how)
					if err != nil {
						return nil, err
					}
					records, err := t.judge(ctx, []float64{clothesClosed})
					if err == nil {
						records[0].Values["rise"] = t.rise()
					}
					return records, err
				}})
		}
	}
	return cells
}

// readClothes are the photographs, once a cell has asked for them.
var readClothes *train.Images

// clothesImages are the photographs, or for quick ones what is drawn.
func clothesImages(how effort) (*train.Images, error) {
	if how == quick {
		return train.Shapes(60, 16, firstDraw()), nil
	}
	if readClothes != nil {
		return readClothes, nil
	}
	dir := os.Getenv("ENTROPIPE_CLOTHES")
	if dir == "" {
		return nil, errors.New("ENTROPIPE_CLOTHES names no folder of photographs; .ci/clothes fetches and prints it")
	}
	images, err := train.ReadImages(os.DirFS(dir), "clothes")
	if err == nil {
		readClothes = images
	}
	return images, err
}

func clothesVerdict(records []record) string {
	rows := trainedRows(records, answers)
	at := percent(clothesClosed)
	line := func(r train.Regulariser, method string) string { return lineOf(rows, r, at, method) }
	return fmt.Sprintf("%s\n\nAt 67 %%, in points of accuracy against plain training, dense: plain training with a "+
		"window %s, masks by mass %s, by entropy with keys sorted by cluster %s, by affinity (the paper's) %s, "+
		"BigBird %s, Linformer %s; the corrected regulariser with masks by entropy %s; the paper's with affinity "+
		"%s. Trained to the end with what is served: L1's own gates %s; a plain window %s. The paper loses 1.7 points "+
		"with its regulariser and 2.0 with L1.\n\n%s",
		servedOf(rows), line(train.None, freeze.Window), line(train.None, freeze.Mass),
		line(train.None, freeze.Entropy), line(train.None, freeze.Affinity), line(train.None, freeze.BigBird),
		line(train.None, methodLinformer), line(train.Entropy, freeze.Entropy), line(train.Paper, freeze.Affinity),
		line(train.L1, methodGates), line(train.Window, methodLearnedW), riseOf(records))
}
