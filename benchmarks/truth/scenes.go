package main

import (
	"context"

	"entropipe/sparse/train"
)

// sceneAbout says what the images of the scenes are, for the claims of experiments.
const sceneAbout = "Images of 44 × 44 pixels: an object, a shape of random size, place and rotation, on a ground. " +
	"The object's texture, one of eight that repeat every four pixels, is the class; object and ground have the " +
	"same brightness and contrast. Patches of 4 × 4 give 122 tokens, 8 blocks of 16, so 5 blocks a row closed are " +
	"62.5 % and 6 are 75 %. ViT of 2 layers of 64 numbers, 4 heads; 5,000 images to learn from, drawn anew for " +
	"each seed; 300 steps of 16 images. How much the accuracy still rises in the last fifth stands on the page of " +
	"the scenes."

// sceneClosed are the sparsities of the masks on scenes.
var sceneClosed = []float64{.625, .75}

// sceneSettings are those of all trainings on scenes, their seeds, and how many held-out
// images judge them.
func sceneSettings(how effort) (cfg train.Config, of []uint64, judged int) {
	if how == quick {
		return train.Config{Layers: 1, Dim: 16, Heads: 2, Patch: 2, Steps: 10, Batch: 2, Judged: 4, Every: 8},
			fewSeeds(), 8
	}
	return train.Config{Dim: 64, Steps: 300, Batch: 16, Rate: .003, Judged: 200, Every: 60}, seeds, 500
}

// drawnScenes are the images of the last seed that asked: cells of one seed follow each other.
var drawnScenes struct {
	how    effort
	seed   uint64
	images *train.Images
}

func sceneImages(how effort, seed uint64) *train.Images {
	d := &drawnScenes
	if d.images == nil || d.how != how || d.seed != seed {
		number, side := 6000, 44
		if how == quick {
			number, side = 60, 16
		}
		d.how, d.seed, d.images = how, seed, train.Textured(number, side, seed)
	}
	return d.images
}

// newSceneModel trains a classifier of scenes.
func newSceneModel(ctx context.Context, cfg train.Config, judged int, how effort) (*visionTrained, error) {
	return visionModelOf(ctx, cfg, sceneImages(how, cfg.Seed), "vit scenes", judged, how)
}

// rise is by how much the accuracy on held-out images rose in the last fifth of the
// training, of those that the training itself judges on its way.
func (t *visionTrained) rise() float64 {
	var held []float64
	for _, r := range t.result.Trainer.Records() {
		if r.Held != nil {
			held = append(held, r.Held.Accuracy)
		}
	}
	if len(held) < 2 {
		return 0
	}
	return held[len(held)-1] - held[len(held)-2]
}
