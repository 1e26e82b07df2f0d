package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/sparse/support"
)

// Retention by blocks is its sum over the keys of the blocks that are read, and without a mask
// what the recurrence in chunks gives.
func TestBlockRetention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := latencyShape{keys: rapid.IntRange(1, 90).Draw(t, "keys"),
			dim:   rapid.SampledFrom([]int{8, 32}).Draw(t, "dim"),
			heads: 2}
		l := formLayer{latencyLayer: latencyLayer{heads: 2, tokens: s.keys, block: 16}}
		masks := l.lotMasks(true, rapid.Uint64().Draw(t, "seed"))
		if rapid.Bool().Draw(t, "dense") {
			masks = nil
		}
		j := newLatencyJob(s)
		newBlockRetention(s.heads, s.dim, 16, s.keys, j.Scale, masks).attend(&j)
		got := slices.Clone(j.Out.Data)
		for h := range s.heads {
			for i := range s.keys {
				want, size := make([]float64, s.dim), 0.0
				for k := range i + 1 {
					if masks != nil {
						if cols, _ := masks[h].Row(i / 16); !slices.Contains(cols, int32(k/16)) {
							continue
						}
					}
					dot := 0.0
					for c, x := range j.Q.Row(i)[h*s.dim : (h+1)*s.dim] {
						dot += float64(x) * float64(j.K.Row(k)[h*s.dim+c])
					}
					dot *= float64(j.Scale) * math.Pow(retentionDecay(h), float64(i-k))
					for c := range want {
						v := dot * float64(j.V.Row(k)[h*s.dim+c])
						want[c] += v
						size += math.Abs(v)
					}
				}
				for c, x := range want {
					if y := float64(got[i*j.Out.Cols+h*s.dim+c]); math.Abs(x-y) > 1e-5*(1+size) {
						t.Fatalf("head %d, query %d, column %d: %v, want %v", h, i, c, y, x)
					}
				}
			}
		}
		if masks == nil {
			newRetention(s.heads, s.dim, 64, j.Scale).attend(&j)
			for i, x := range j.Out.Data {
				if d := math.Abs(float64(x - got[i])); d > 1e-4*(1+math.Abs(float64(x))) {
					t.Fatalf("number %d: %v in chunks, %v by blocks", i, x, got[i])
				}
			}
		}
	})
}

// LongNet's mask with masks on top reads a part of what LongNet reads, in every row.
func TestMasksOnLongNetAreAPart(t *testing.T) {
	for _, l := range formLayers(whole)[:2] {
		long, masked := l.dilated(42)
		for h := range long {
			if err := masked[h].Validate(false); err != nil {
				t.Fatal(err)
			}
			for r := range long[h].Rows {
				all, _ := long[h].Row(r)
				some, _ := masked[h].Row(r)
				if len(all) != support.Blocks(l.tokens, l.block)/2 || len(some) != 3 {
					t.Errorf("head %d, row %d: %d and %d blocks", h, r, len(all), len(some))
				}
				for _, c := range some {
					if !slices.Contains(all, c) {
						t.Errorf("head %d, row %d reads block %d, which LongNet does not", h, r, c)
					}
				}
			}
		}
	}
}

// The formula gives what the paper's own figures give, and names the time that a printed N needs.
func TestFormulaOfBreakEven(t *testing.T) {
	if got := paysAfterOf(48, .85, 1.6); got != "542118" {
		t.Errorf("LLaMA-2 by its own figures pays after %s batches", got)
	}
	if got := paysAfterOf(48, .85, 1); got != "never" {
		t.Errorf("without a gain: %s", got)
	}
}

// Every printed language model is timed, on the tokens that the paper prints, and has its bound.
func TestLayersAreThePapers(t *testing.T) {
	timed := map[string]bool{}
	for _, s := range blockShapes(whole) {
		timed[s.amdahl] = true
		at := slices.IndexFunc(shapes, func(x shape) bool { return x.name == s.amdahl })
		if at < 0 || shapes[at].tokens != float64(s.tokens) || shapes[at].printed != s.s {
			t.Errorf("%s: no shape like %q", s.name, s.amdahl)
		}
	}
	for _, s := range shapes {
		if s.causal && !timed[s.name] {
			t.Errorf("%s is not timed", s.name)
		}
	}
}

// The page has both parts, and no figure in it is broken.
func TestLayersPageIsWhole(t *testing.T) {
	var records []record
	for _, c := range modelLayers.list(quick) {
		some, err := c.run(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.key, err)
		}
		records = append(records, some...)
	}
	page := layerColumns.Markdown(pointers(layerRows(records))) + layerVerdict(records)
	for _, want := range []string{layerPlain, layerLongMasks, layerBlockMasks, layerPadded, "no GPU was at hand"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Errorf("page:\n%s", page)
	}
}

// The formula's lines of transformers: ViT-Base's is below what is printed, LLaMA-2's three times
// as much, and GPT-J's equal, for its time of a batch comes from it.
func TestBreakEvenOfTransformers(t *testing.T) {
	var got []float64
	for _, r := range paperBreakEven(paperTransformers) {
		got = append(got, r.Values["even"])
	}
	if want := []float64{384000, 542118, 420000}; !slices.EqualFunc(got, want, func(a, b float64) bool {
		return math.Abs(a-b) <= 1
	}) {
		t.Errorf("%v batches, want %v", got, want)
	}
}
