package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/freeze"
	"entropipe/sparse/model"
	"entropipe/sparse/train"
)

var visionModel = &experiment{
	name:  "vit",
	title: "Regularised attention in a vision transformer",
	claim: "The paper prints for ViT-Small on CIFAR-100: 76.8 % dense, 74.8 with L1 at 62 % sparsity, 75.1 with its " +
		"regulariser at 64 %, and a speed-up of 1.47. Here: ViT of 2 layers of 128 numbers on MNIST, patches of 4 × " +
		"4 (50 tokens), five seeds; trained without a regulariser, with the corrected one, the paper's, L1 on " +
		"gates, which close for good after seven tenths of the training, and as a control to that with a window " +
		"that closes then; blocks of 16, so 2 of 4 blocks a row at 50 %, and 1 at 75 %, where no row can keep more " +
		"than one. Masks are frozen on images that the models learned from. Of 50 tokens attention is 3 % of the " +
		"multiplications, so no mask can make this model faster by more than that. Intervals are Student's over " +
		"seeds; losses are in points of accuracy.",
	cells:   visionCells,
	rows:    func(records []record) []record { return trainedRows(records, answers) },
	columns: imageColumns(),
	verdict: visionVerdict,
}

// visionImages are MNIST, or for quick ones what is drawn.
func visionImages(how effort, seed uint64) (*train.Images, error) {
	if how == quick {
		return train.Shapes(60, 16, seed), nil
	}
	path, err := rig.TestData("images", "mnist")
	if err != nil {
		return nil, err
	}
	return train.ReadImages(os.DirFS(path), "mnist")
}

// visionSettings are those of all trainings on images, their seeds, and how many
// held-out images judge them.
func visionSettings(how effort) (cfg train.Config, of []uint64, judged int) {
	if how == quick {
		return train.Config{Layers: 1, Dim: 16, Heads: 2, Patch: 2, Steps: 10, Batch: 2, Judged: 4}, fewSeeds(), 8
	}
	return train.Config{Steps: 2000, Shift: 2}, seeds, 1000
}

func visionCells(how effort) (cells []cell) {
	cfg, of, judged := visionSettings(how)
	sparsities := []float64{.5, .75}
	for _, seed := range of {
		cfg.Seed = seed
		for _, cfg := range trainings(cfg, sparsities) {
			key := fmt.Sprintf("%s seed=%d", trainingKey(cfg), seed)
			cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
				t, err := newVisionModel(ctx, cfg, judged, how)
				if err != nil {
					return nil, err
				}
				return t.judge(ctx, sparsities)
			}})
		}
	}
	return cells
}

// visionTrained is a trained classifier with its images.
type visionTrained struct {
	trained
	images *train.Images
	held   []int
}

func newVisionModel(ctx context.Context, cfg train.Config, judged int, how effort) (*visionTrained, error) {
	images, err := visionImages(how, cfg.Seed)
	if err != nil {
		return nil, err
	}
	return visionModelOf(ctx, cfg, images, "vit mnist", judged, how)
}

// visionModelOf trains a classifier of images, which have a name for the checkpoint.
func visionModelOf(ctx context.Context, cfg train.Config, images *train.Images, name string, judged int,
	how effort) (*visionTrained, error) {
	cfg.Workers = trainers
	trainer, err := train.NewViT(cfg, images)
	if err != nil {
		return nil, err
	}
	result, err := finished(ctx, trainer, fmt.Sprintf("%s %s seed=%d", name, trainingKey(cfg), cfg.Seed), how)
	if err != nil {
		return nil, err
	}
	m, err := loaded(result)
	if err != nil {
		return nil, err
	}
	rows, cols := m.Config().Patches()
	t := &visionTrained{trained: trained{model: m, result: result, length: rows*cols + 1, block: 16, linear: true,
		seed: cfg.Seed}, images: images, held: images.HeldOut()}
	t.held = t.held[:min(len(t.held), judged)]
	for i := 0; len(t.inputs.Images) < 64*images.Side*images.Side && i < images.Len(); i++ {
		if !train.Held(i) {
			t.inputs.Images = append(t.inputs.Images, normalised(images.Image(i))...)
		}
	}
	t.score = func(m *model.Model, o model.Options) ([]float64, error) {
		return t.wrong(m, o, t.held, t.pixelsOf(t.held, nil))
	}
	return t, nil
}

func normalised(image []uint8) []float32 {
	v := make([]float32, len(image))
	train.Normalised(v, image)
	return v
}

// pixelsOf are images as models take them, changed first unless change is nil.
func (t *visionTrained) pixelsOf(numbers []int, change func(pixels []uint8, i int) []uint8) (pixels []float32) {
	for _, i := range numbers {
		image := t.images.Image(i)
		if change != nil {
			image = change(image, i)
		}
		pixels = append(pixels, normalised(image)...)
	}
	return pixels
}

// wrong is 1 for every image of these numbers, with these pixels, that is not
// recognised.
func (t *visionTrained) wrong(m *model.Model, o model.Options, numbers []int,
	pixels []float32) (wrong []float64, err error) {
	session, labels, size := m.NewSession(1), m.Config().Labels, t.images.Side*t.images.Side
	for chunk := range slices.Chunk(numbers, 32) {
		hidden, err := session.Images(pixels[:len(chunk)*size], len(chunk), o)
		if err != nil {
			return nil, err
		}
		pixels = pixels[len(chunk)*size:]
		logits := mat.Of(len(chunk), labels, make([]float32, len(chunk)*labels))
		session.Classify(logits, hidden)
		for k, i := range chunk {
			_, best := train.CrossEntropy(logits.Row(k), t.images.Labels[i])
			wrong = append(wrong, boolValue(best != t.images.Labels[i]))
		}
	}
	return wrong, nil
}

func visionVerdict(records []record) string {
	rows := trainedRows(records, answers)
	line := func(r train.Regulariser, sparsity, method string) string { return lineOf(rows, r, sparsity, method) }
	return fmt.Sprintf("%s\n\nAt 50 %%, in points of accuracy against plain training, dense: plain training with a "+
		"window %s, masks by mass %s, by entropy with keys sorted by cluster %s, by affinity (the paper's) %s, "+
		"BigBird %s, Linformer %s; the corrected regulariser with masks by entropy %s; the paper's with affinity "+
		"%s. Trained to the end with what is served, at 50 and 75 %%: L1's own gates %s, %s; a plain window %s, %s. "+
		"The paper loses 1.7 points at 64 %% with its regulariser and 2.0 with L1.",
		servedOf(rows), line(train.None, "50 %", freeze.Window), line(train.None, "50 %", freeze.Mass),
		line(train.None, "50 %", freeze.Entropy), line(train.None, "50 %", freeze.Affinity),
		line(train.None, "50 %", freeze.BigBird), line(train.None, "50 %", methodLinformer),
		line(train.Entropy, "50 %", freeze.Entropy), line(train.Paper, "50 %", freeze.Affinity),
		line(train.L1, "50 %", methodGates), line(train.L1, "75 %", methodGates),
		line(train.Window, "50 %", methodLearnedW), line(train.Window, "75 %", methodLearnedW))
}
