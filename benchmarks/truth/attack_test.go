package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/models/mat"
	"entropipe/sparse/model"
	"entropipe/sparse/train"
)

// learnedShapes is a small network that has learned a little, with images that
// it has not seen, as it takes them.
func learnedShapes(t *testing.T) (tr *train.Trainer, pixels []float32, labels []int32, numbers []int) {
	t.Helper()
	images := train.Shapes(200, 16, 5)
	tr, err := train.NewViT(train.Config{Layers: 1, Dim: 32, Heads: 2, Steps: 60, Batch: 8, Judged: 1, Rate: .003},
		images)
	for err == nil && !tr.Done() {
		err = tr.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images.HeldOut()[:20] {
		pixels = append(pixels, normalised(images.Image(i))...)
		labels, numbers = append(labels, images.Labels[i]), append(numbers, i)
	}
	return tr, pixels, labels, numbers
}

// An attack never leaves the ball around an image, nor what a pixel can be; nor
// does noise.
func TestAttacksStayWithinTheBall(t *testing.T) {
	tr, pixels, labels, numbers := learnedShapes(t)
	rapid.Check(t, func(t *rapid.T) {
		a := attack{steps: rapid.IntRange(0, 3).Draw(t, "steps"), eps: rapid.Float64Range(0, 1.5).Draw(t, "eps"),
			step: rapid.Float64Range(0, 3).Draw(t, "step"), random: rapid.Bool().Draw(t, "random")}
		n := rapid.IntRange(0, 3).Draw(t, "images")
		pixels := pixels[:n*256]
		changed, losses := a.change(tr, pixels, labels[:n], numbers[:n])
		for name, changed := range map[string][]float32{"attack": changed, "noise": a.noisy(pixels, numbers[:n])} {
			if len(changed) != len(pixels) || len(losses) != n {
				t.Fatalf("%s: %d pixels, %d losses of %d images", name, len(changed), len(losses), n)
			}
			for p, v := range changed {
				if d := float64(v-pixels[p]) / pixelScale; !(d <= a.eps+1e-6 && d >= -a.eps-1e-6 && v >= -1 && v <= 1) {
					t.Fatalf("%s: pixel %d is %v, was %v, eps %v", name, p, v, pixels[p], a.eps)
				}
			}
		}
	})
}

// On average gradients make the loss larger, more of them more so, and noise of
// the same size does less; nothing moves where nothing may.
func TestAttacksRaiseTheLoss(t *testing.T) {
	tr, pixels, labels, numbers := learnedShapes(t)
	_, losses := attack{}.change(tr, pixels, labels, numbers)
	clean := meanOf(losses)
	for _, eps := range []float64{.01, .03, .1} {
		loss := func(a attack) float64 {
			_, losses := a.change(tr, pixels, labels, numbers)
			return meanOf(losses)
		}
		noise := meanOf(tr.PixelGradients(make([]float32, len(pixels)), attack{eps: eps}.noisy(pixels, numbers),
			labels))
		once, often := loss(attack{steps: 1, eps: eps, step: eps}),
			loss(attack{steps: 10, eps: eps, step: eps / 4, random: true})
		if !(once > clean && once > noise && often >= once*.98) {
			t.Errorf("eps %v: loss %v, of noise %v, of one step %v, of ten %v", eps, clean, noise, once, often)
		}
	}
	if same, _ := (attack{steps: 2, step: .1, random: true}).change(tr, pixels, labels,
		numbers); !slices.Equal(same, pixels) {
		t.Error("an attack of eps 0 changes pixels")
	}
}

// What is attacked is what is served: the trainer's losses are those of the model
// that it writes, read as it was trained.
func TestAttackedIsServed(t *testing.T) {
	cfg, _, _ := visionSettings(quick)
	for _, cfg := range trainings(cfg, []float64{robustClosed}) {
		m, err := newVisionModel(t.Context(), cfg, 8, quick)
		if err != nil {
			t.Fatal(err)
		}
		o := model.Options{}
		if closing(cfg.Regulariser) {
			o = m.gated()
		}
		pixels, labels := m.pixelsOf(m.held, nil), m.labelsOf(m.held)
		losses := m.result.Trainer.PixelGradients(make([]float32, len(pixels)), pixels, labels)
		session := m.model.NewSession(1)
		hidden, err := session.Images(pixels, len(labels), o)
		if err != nil {
			t.Fatal(err)
		}
		logits := mat.Of(len(labels), m.model.Config().Labels, make([]float32, len(labels)*m.model.Config().Labels))
		session.Classify(logits, hidden)
		for i, label := range labels {
			if want, _ := train.CrossEntropy(logits.Row(i), label); math.Abs(losses[i]-want) > 1e-4 {
				t.Errorf("%s, image %d: the trainer loses %v, what is served %v", cfg.Regulariser, i, losses[i], want)
			}
		}
	}
}

// A patch is the digit's by its ink, and the IoU counts patches.
func TestInkPatches(t *testing.T) {
	image := make([]uint8, 64)
	copy(image, []uint8{200, 128, 128, 128}) // a quarter of the first patch
	image[4], image[5], image[6] = 255, 255, 255
	image[63] = 127
	v := &visionTrained{images: &train.Images{Side: 8, Pixels: image, Labels: []int32{0}}}
	object, count := v.inkPatches(0, 2)
	if !slices.Equal(object, []bool{true, false, false, false}) || count != 1 {
		t.Errorf("patches %v, %d", object, count)
	}
	for _, c := range []struct {
		weight []float64
		object []bool
		want   float64
	}{
		{[]float64{.1, .2, .3, .4}, []bool{false, false, true, true}, 1},
		{[]float64{.1, .2, .3, .4}, []bool{false, true, false, true}, 1. / 3},
		{[]float64{.1, .2, .3, .4}, []bool{true, true, false, false}, 0},
	} {
		if got := heaviestOverlap(c.weight, c.object, 2); got != c.want {
			t.Errorf("weights %v, object %v: IoU %v, want %v", c.weight, c.object, got, c.want)
		}
	}
}

// The null of the table is what lots give on average, to the first order of the
// expectation of a ratio.
func TestChanceOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 31))
	const patches, count, rounds = 49, 14, 4000
	object := make([]bool, patches)
	for p := range count {
		object[p] = true
	}
	sum, weight := 0.0, make([]float64, patches)
	for range rounds {
		for p := range weight {
			weight[p] = r.Float64()
		}
		sum += heaviestOverlap(weight, object, count) / rounds
	}
	f := float64(count) / patches
	if want := f / (2 - f); math.Abs(sum-want) > .01 {
		t.Errorf("lots have an IoU of %v, the formula %v", sum, want)
	}
}
