package freeze

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

func TestFreezeRefusesWhatCannotBe(t *testing.T) {
	bert, gpt := load(t, hftest.BERT), load(t, hftest.GPT2)
	in := sequences(4, 96)
	good := Options{Select: Mass, Sparsity: 0.5, Block: 16, Buckets: []int{96}}
	for _, c := range []struct {
		name  string
		m     *model.Model
		in    Inputs
		edits func(o *Options)
		want  string
	}{
		{"selector", bert, in, func(o *Options) { o.Select = "best" }, `"best"`},
		{"sparsity", bert, in, func(o *Options) { o.Sparsity = math.NaN() }, "NaN"},
		{"block", bert, in, func(o *Options) { o.Block = 8 }, "block is 8"},
		{"no bucket", bert, in, func(o *Options) { o.Buckets = nil }, "buckets"},
		{"bucket too long", bert, in, func(o *Options) { o.Buckets = []int{97} }, "96 positions"},
		{"two causal buckets", gpt, in, func(o *Options) { o.Buckets = []int{32, 96} }, "one bucket"},
		{"causal anchors", gpt, in, func(o *Options) { o.Mode, o.Select = support.Anchor, Entropy }, "encoders"},
		{"anchors by mass", bert, in, func(o *Options) { o.Mode = support.Anchor }, "entropy and affinity"},
		{"sorted causal keys", gpt, in, func(o *Options) { o.Permute, o.Select = true, Entropy }, "encoders"},
		{"sorted keys of two buckets", bert, in,
			func(o *Options) { o.Permute, o.Select, o.Buckets = true, Affinity, []int{48, 96} }, "one bucket"},
		{"sorted keys of short inputs", bert, sequences(4, 90),
			func(o *Options) { o.Permute, o.Select = true, Entropy }, "sequence 0 has 90 tokens"},
		{"no import", bert, in, func(o *Options) { o.Select = Imported }, "needs a mask"},
		{"few inputs", bert, sequences(2, 96), func(o *Options) {}, "must calibrate"},
		{"short inputs", bert, sequences(4, 50), func(o *Options) {}, "reaches token 65"},
		{"short inputs for clusters", bert, sequences(4, 50), func(o *Options) { o.Select = Entropy },
			"reaches token 81"},
		{"id", bert, Inputs{Sequences: [][]int32{{1}, {99}, {1}, {1}}}, func(o *Options) {}, "sequence 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := good
			c.edits(&o)
			_, err := Freeze(t.Context(), c.m, c.in, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Numbers that are not finite, of an input or of weights that overflow, are an
// error of every selector, and no fault.
func TestFreezeRefusesNumbersThatAreNotFinite(t *testing.T) {
	c := hftest.Config(t, hftest.GPT2)
	weights := hftest.Tensors(c)
	for i := range weights["h.0.mlp.c_proj.weight"] {
		weights["h.0.mlp.c_proj.weight"][i] = 3e38
	}
	dir := t.TempDir()
	if err := hf.Save(dir, c, weights, safetensors.F32); err != nil {
		t.Fatal(err)
	}
	large, err := model.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	vit := load(t, bigViT)
	for i, at := range []int{7, 4*2*40*40 + 7} { // an image that calibrates, an image that judges
		pixels := images(5)
		pixels.Images[at] = float32(math.NaN())
		for _, selector := range []string{Mass, Window, Entropy} {
			_, err := Freeze(t.Context(), vit, pixels, Options{Select: selector, Sparsity: 0.5, Block: 16})
			if i == 0 && selector == Window {
				continue // looks at nothing that calibrates
			}
			if want := fmt.Sprintf("sequence %d: a result", 4*i); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, pixel %d: got %v, want %q", selector, at, err, want)
			}
		}
	}
	for _, selector := range []string{Mass, Window, Entropy} {
		_, err := Freeze(t.Context(), large, sequences(5, 96),
			Options{Select: selector, Sparsity: 0.5, Block: 16, Buckets: []int{96}})
		if err == nil || !strings.Contains(err.Error(), "not finite") {
			t.Errorf("%s, large weights: got %v", selector, err)
		}
	}
	a := account{histogram: make([]int64, bins+1), least: 1}
	for _, x := range [][2]float64{{math.NaN(), 0}, {1, math.NaN()}, {1, math.Inf(1)}} {
		a.broken = false
		if a.note(x[0], x[1], 1); !a.broken || a.queries != 0 {
			t.Errorf("mass %v, lost %v was taken: %+v", x[0], x[1], a)
		}
	}
}
