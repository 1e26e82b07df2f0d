package model

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
)

// golden is testdata/golden.json: what transformers computes with the formula's
// weights.
type golden struct {
	IDs   []int32
	Cases map[string]struct {
		Config         string
		Hidden, Logits []float32
		Generated      []int32
	}
}

func readGolden(t testing.TB) golden {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	var g golden
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// loadText writes the formula's weights beside a config.json, and loads them.
func loadText(t testing.TB, config string) *Model { return loadTextAs(t, config, F32) }

func loadTextAs(t testing.TB, config string, w Weights) *Model {
	t.Helper()
	c := hftest.Config(t, config)
	dir := t.TempDir()
	if err := hf.Save(dir, c, hftest.Tensors(c), safetensors.F32); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := OpenAs(dir, w)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func one(ids []int32) Batch { return Batch{ids, []int32{0, int32(len(ids))}} }

func TestOutputsAreThoseOfTransformers(t *testing.T) {
	g := readGolden(t)
	for name, want := range g.Cases {
		m := loadText(t, want.Config)
		s := m.NewSession(2)
		c := m.Config()
		if c.Arch == hf.ViT {
			pixels := hftest.Values("pixels", 2*c.Colors*c.Image[0]*c.Image[1])
			for i := range pixels {
				pixels[i] *= 4
			}
			hidden, err := s.Images(pixels, 2, Options{})
			if err != nil {
				t.Fatal(name, err)
			}
			if c.Head {
				logits := mat.Of(2, c.Labels, make([]float32, 2*c.Labels))
				s.Classify(logits, hidden)
				near(t, name+" logits", logits.Data, want.Logits, 2e-5)
			} else {
				near(t, name, hidden.Slice(c.MaxPositions, 2*c.MaxPositions).Data, want.Hidden, 2e-5)
			}
			continue
		}
		hidden, err := s.Hidden(one(g.IDs), Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		near(t, name, slices.Concat(hidden.Row(0), hidden.Row(7), hidden.Row(15)), want.Hidden, 2e-5)
		if want.Logits == nil {
			continue
		}
		logits := mat.Of(1, c.Vocab, make([]float32, c.Vocab))
		s.Logits(logits, hidden.Slice(15, 16))
		near(t, name+" logits", logits.Data, want.Logits, 2e-5)
		got, err := s.Generate(one(g.IDs), len(want.Generated), Options{})
		if err != nil || !slices.Equal(got[0], want.Generated) {
			t.Errorf("%s: generated %v, %v, want %v", name, got, err, want.Generated)
		}
	}
}

// near holds got against want and returns the largest difference.
func near(t *testing.T, name string, got, want []float32, within float64) (worst float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d numbers, want %d", name, len(got), len(want))
		return math.NaN()
	}
	at := 0
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - float64(w)); !(d <= worst) {
			worst, at = d, i
		}
	}
	if !(worst <= within) {
		t.Errorf("%s: number %d of %d is %v, want %v within %g", name, at, len(want), got[at], want[at], within)
	}
	return worst
}
