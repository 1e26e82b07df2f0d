package main

import (
	"context"
	"fmt"
	"math"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/freeze"
	"entropipe/sparse/model"
	"entropipe/sparse/train"
)

var objects = &experiment{
	name:  "objects",
	title: "Masks and objects that brightness does not tell",
	claim: "The paper prints that masks of its regulariser overlap with objects by an IoU of 0.73, those of L1 by " +
		"0.41, and on COCO 0.56 beside 0.36 at 75 % sparsity, without that of chance or of plain training. " +
		sceneAbout + " The pixels of every object are known: a patch is the object's when a quarter of it is. IoU: " +
		"the patches most attended by the class token, mean over the last layer's heads, as many as the object " +
		"has, with those of the object, on held-out images. At 75 %: with the mask of the training, frozen without " +
		"sorting of keys (mass for plain training, entropy for the corrected regulariser, affinity for the " +
		"paper's), or its own gates; no head of the class token then sees more than 2 of 8 blocks of patches. " +
		"Best head: of all of the model's, chosen afterwards on the same images. A random choice has f/(2-f) for a " +
		"share f of patches. Without a model: the brightest patches, those of most contrast, and those most like a " +
		"neighbour. In percent; intervals are Student's over seeds.",
	cells: objectCells,
	rows:  func(records []record) []record { return measureRows(records, objectMeasures) },
	columns: rig.Table[*record]{
		text("", "measure"), overSeeds("none", "none", "%.2f", 1), overSeeds("entropy", "entropy", "%.2f", 1),
		overSeeds("paper", "paper", "%.2f", 1),
		overSeeds("L1", "l1", "%.2f", 1), overSeeds("window", "window", "%.2f", 1),
		overSeeds("entropy - none", "gain entropy", "%+.2f", 1),
		overSeeds("paper - none", "gain paper", "%+.2f", 1), overSeeds("L1 - none", "gain l1", "%+.2f", 1),
		overSeeds("window - none", "gain window", "%+.2f", 1),
	},
	verdict: objectVerdict,
}

var objectMeasures = []measure{
	{name: "clean", what: "accuracy as trained"},
	{name: "iou", what: "IoU as trained: dense; L1 and window with their blocks of 75 % closed"},
	{name: "iou masked", what: "IoU with masks of 75 %"},
	{name: "iou head", what: "IoU of the best head, as trained"},
	{name: "bright", what: "IoU of the brightest patches, no model", given: true},
	{name: "contrast", what: "IoU of the patches of most contrast, no model", given: true},
	{name: "like", what: "IoU of the patches most like a neighbour, no model", given: true},
	{name: "chance", what: "IoU of chance", given: true},
}

func objectCells(how effort) (cells []cell) {
	cfg, of, judged := sceneSettings(how)
	for _, seed := range of {
		cfg.Seed = seed
		for _, cfg := range trainings(cfg, []float64{closedByL1}) {
			cells = append(cells, cell{fmt.Sprintf("%s seed=%d", trainingKey(cfg), seed),
				func(ctx context.Context) ([]record, error) {
					t, err := newSceneModel(ctx, cfg, judged, how)
					if err != nil {
						return nil, err
					}
					return t.overObjects(ctx)
				}})
		}
	}
	return cells
}

// overObjects measures where the attention of a model looks.
func (t *visionTrained) overObjects(ctx context.Context) ([]record, error) {
	r, v := t.result.Trainer.Config().Regulariser, map[string]float64{"seed": float64(t.seed)}
	numbers := t.held[:min(len(t.held), attacked)]
	as, masked := model.Options{}, model.Options{}
	if closing(r) {
		as = t.gated()
		masked = as
	} else {
		var err error
		if masked, err = t.frozen(ctx, t.model, ownMask(r), closedByL1, false); err != nil {
			return nil, err
		}
	}
	wrong, err := t.score(t.model, as)
	if err != nil {
		return nil, err
	}
	v["clean"] = 1 - meanOf(wrong)
	with := map[string]float64{}
	if err := t.overlap(with, masked, numbers); err != nil {
		return nil, err
	}
	if err := t.overlap(v, as, numbers); err != nil {
		return nil, err
	}
	v["iou masked"] = with["iou"]
	t.withoutModel(v, numbers)
	return []record{{Text: map[string]string{"training": string(r)}, Values: v}}, nil
}

// withoutModel measures how far simple properties of patches tell the object.
func (t *visionTrained) withoutModel(v map[string]float64, numbers []int) {
	across, _ := t.model.Config().Patches()
	counted := 0.0
	for _, i := range numbers {
		object, count := t.inkPatches(i, across)
		if count == 0 || count == len(object) {
			continue
		}
		counted++
		v["contrast"] += heaviestOverlap(t.contrast(i, across), object, count)
		v["like"] += heaviestOverlap(t.likeness(i, across), object, count)
	}
	for _, name := range []string{"contrast", "like"} {
		v[name] /= max(counted, 1)
	}
}

// contrast is the variance of each patch's pixels.
func (t *visionTrained) contrast(image, across int) []float64 {
	sums := t.brightness(image, across)
	squares := t.patchSums(image, across, func(_ int, pixel uint8) float64 { return float64(pixel) * float64(pixel) })
	n := float64(t.images.Side / across * (t.images.Side / across))
	for p := range squares {
		squares[p] -= sums[p] * sums[p] / n
	}
	return squares
}

// likeness is how little each patch differs from the one of its four neighbours that is
// most like it.
func (t *visionTrained) likeness(image, across int) []float64 {
	pixels, side := t.images.Image(image), t.images.Side
	patch, like := side/across, make([]float64, across*across)
	for p := range like {
		like[p] = math.Inf(-1)
		x, y := p%across, p/across
		for _, to := range [][2]int{{x - 1, y}, {x + 1, y}, {x, y - 1}, {x, y + 1}} {
			if to[0] < 0 || to[0] >= across || to[1] < 0 || to[1] >= across {
				continue
			}
			differ := 0.0
			for k := range patch * patch {
				a := pixels[(y*patch+k/patch)*side+x*patch+k%patch]
				b := pixels[(to[1]*patch+k/patch)*side+to[0]*patch+k%patch]
				differ += (float64(a) - float64(b)) * (float64(a) - float64(b))
			}
			like[p] = max(like[p], -differ)
		}
	}
	return like
}

func objectVerdict(records []record) string {
	lines := measureRows(records, objectMeasures)
	line := func(name string) map[string]float64 {
		for k, m := range objectMeasures {
			if m.name == name {
				return lines[k].Values
			}
		}
		return nil
	}
	none := string(train.None)
	return fmt.Sprintf("Against plain training of the same seed, in points of IoU. As trained, where plain training "+
		"has %.2f %% and chance %.2f: %s. With masks of 75 %%, where plain training with masks by %s has %.2f: %s. "+
		"Without a model the brightest patches have %.2f %%, those of most contrast %.2f, and those most like a "+
		"neighbour %.2f.\n\nOf so many intervals one in twenty leaves out 0 by chance.",
		line("iou")[none], line("chance")[none], differences(line("iou")), freeze.Mass, line("iou masked")[none],
		differences(line("iou masked")), line("bright")[none], line("contrast")[none], line("like")[none])
}
