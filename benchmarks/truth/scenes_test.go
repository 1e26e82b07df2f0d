package main

import (
	"math"
	"slices"
	"testing"

	"entropipe/sparse/model"
	"entropipe/sparse/train"
)

// Law: the interaction of two factors that add up is 0, one that both have together is
// what they have beyond, and a window's model without masks is plain training.
func TestInteraction(t *testing.T) {
	var records []record
	add := func(training, masks, pruned, when string, seed, loss float64) {
		records = append(records, record{Text: map[string]string{"training": training, "masks": masks,
			"pruned": pruned, "when": when}, Values: map[string]float64{"loss": loss, "seed": seed}})
	}
	for _, seed := range []float64{1, 2, 3} {
		base := .1 * seed
		for k, training := range []string{"none", "paper", "window"} {
			masks := pruningMasks(train.Regulariser(training))
			add(training, methodDense, "0 %", whenLearned, seed, base+7*float64(k/2))
			add(training, masks, "0 %", whenLearned, seed, base+.2)
			for _, when := range []string{whenLearned, whenAfter} {
				add(training, methodDense, "90 %", when, seed, base+.3+7*float64(k/2))
				add(training, masks, "90 %", when, seed, base+.5+.1*float64(k))
			}
		}
	}
	s := sheet{"pruning": records}
	for training, want := range map[string]float64{"none": 0, "paper": .1, "window": .2} {
		for _, when := range []string{whenLearned, whenAfter} {
			e := s.interaction(training, "90 %", when).mean()
			if e.Units != 3 || math.Abs(e.Mid-want) > 1e-12 {
				t.Errorf("%s, %s: interaction %v of %d seeds, want %v of 3", training, when, e.Mid, e.Units, want)
			}
			if b := s.besideMasks(training, "90 %", when).mean(); math.Abs(b.Mid-.3-want) > 1e-12 {
				t.Errorf("%s, %s: pruning costs %v beside masks, want %v", training, when, b.Mid, .3+want)
			}
		}
	}
	rows := pruningRows(records)
	for _, r := range rows {
		if r.Text["training"] == "none" && r.Text["told"] != "not told apart" ||
			r.Text["training"] == "paper" && r.Text["told"] != "more than their parts" {
			t.Errorf("%s, %s: both together lose %s", r.Text["training"], r.Text["when"], r.Text["told"])
		}
	}
	if len(rows) != 6 {
		t.Errorf("%d rows, want 6: 3 trainings, pruned with and after", len(rows))
	}
}

// The patches of objects come from the known pixels; among simple properties likeness
// tells them and brightness does not.
func TestObjectsWithoutModels(t *testing.T) {
	images := train.Textured(120, 44, 3)
	cfg := train.Config{Layers: 1, Dim: 16, Heads: 2, Steps: 1, Batch: 2, Judged: 2}
	m, err := visionModelOf(t.Context(), cfg, images, "", 20, quick)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range m.held {
		object, count := m.inkPatches(i, 11)
		for p, own := range object {
			inside := 0
			for k := range 16 {
				if images.Masks[i*44*44+(p/11*4+k/4)*44+p%11*4+k%4] {
					inside++
				}
			}
			if own != (inside >= 4) {
				t.Fatalf("image %d, patch %d: %d of 16 pixels are the object's, and the patch is %v", i, p, inside, own)
			}
		}
		if count < 3 || count > 60 {
			t.Errorf("image %d: the object has %d of 121 patches", i, count)
		}
	}
	v := map[string]float64{}
	if err := m.overlap(v, model.Options{}, m.held); err != nil {
		t.Fatal(err)
	}
	m.withoutModel(v, m.held)
	if v["like"] < 2*v["chance"] || v["bright"] > 1.6*v["chance"] {
		t.Errorf("IoU of likeness %.3f, of brightness %.3f, of chance %.3f", v["like"], v["bright"], v["chance"])
	}
}

// Printed digits are of all classes and typefaces, lie inside, and are not the same twice.
func TestPrintedDigits(t *testing.T) {
	pixels, labels, err := printedDigits(100, 28, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, image := range pixels {
		if labels[i] != int32(i%10) {
			t.Fatalf("image %d has the label %d", i, labels[i])
		}
		lit, border := 0, 0
		for p, v := range image {
			if v >= ink {
				lit++
				if x, y := p%28, p/28; x == 0 || y == 0 || x == 27 || y == 27 {
					border++
				}
			}
		}
		if lit < 20 || lit > 28*28/2 || border > 0 {
			t.Errorf("image %d, a %d: %d pixels are lit, %d of them at the border", i, labels[i], lit, border)
		}
		for k := range i {
			if slices.Equal(pixels[k], image) {
				t.Errorf("images %d and %d are the same", k, i)
			}
		}
	}
}
