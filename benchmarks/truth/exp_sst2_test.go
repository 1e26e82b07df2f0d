package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// Every mask of keys is sound and reads its budget, the query's own key and the first among
// them, so that methods can be compared.
func TestMasksOfKeysReadTheirBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, longestPhrase).Draw(t, "tokens")
		sparsity := rapid.SampledFrom([]float64{.5, .75, .9}).Draw(t, "sparsity")
		j := newLatencyJob(latencyShape{keys: n, dim: 16, heads: 2})
		table := &massTable{sums: map[[2]int][]float64{}, seen: make([]float64, longestPhrase),
			score: make([]float64, longestPhrase)}
		for head := range 2 {
			table.add(0, head, &j)
		}
		anchors := &support.Set{Facts: support.Facts{KVHeads: 2, Dim: 16}, Anchors: &support.Anchors{K: 3}}
		for k := range 6 {
			anchors.Anchors.Data = append(anchors.Anchors.Data, j.K.Row(k * (n - 1) / 5)[:16]...)
		}
		budget := support.Budget(sparsity, 0, n, false)
		for name, m := range map[string]phraseMask{"window": nearKeys, "lot": lotKeys(7, sparsity, false),
			"bigbird": lotKeys(7, sparsity, true), "oracle": ownMass, "mass": table.keys,
			"affinity": (&clusteredKeys{set: anchors}).keys,
			"entropy":  (&clusteredKeys{set: anchors, routed: true}).keys} {
			with := j
			m.hook(sparsity)(0, 0, &with)
			for head, l := range with.Layouts {
				if err := l.Validate(false); err != nil {
					t.Fatalf("%s, head %d: %v", name, head, err)
				}
				for q := range n {
					keys := l.AppendKeys(nil, q, n, false)
					slices.Sort(keys)
					if len(slices.Compact(keys)) != budget || !slices.Contains(keys, int32(q)) ||
						budget > 1 && !slices.Contains(keys, 0) {
						t.Fatalf("%s, head %d, query %d of %d: %v, want %d keys", name, head, q, n, keys, budget)
					}
				}
			}
		}
	})
}

// The oracle's keys have the most weight: no key that is left out has more than one that is
// read, but for the first and the query's own.
func TestOracleReadsTheMostWeight(t *testing.T) {
	j := newLatencyJob(latencyShape{keys: 40, dim: 16, heads: 2})
	phraseMask(ownMass).hook(.75)(0, 0, &j)
	weights := make([]float64, 40)
	for head, l := range j.Layouts {
		for q := range 40 {
			attentionRow(weights, &j, head, q)
			keys := l.AppendKeys(nil, q, 40, false)
			least, most := math.Inf(1), 0.0
			for k, w := range weights {
				switch {
				case k == 0 || k == q:
				case slices.Contains(keys, int32(k)):
					least = min(least, w)
				default:
					most = max(most, w)
				}
			}
			if most > least {
				t.Errorf("head %d, query %d: a key of weight %v is left out, one of %v is read", head, q, most, least)
			}
		}
	}
}

// A mask of keys gives attention over the keys that it lists, and nothing else.
func TestMaskOfKeysIsAttention(t *testing.T) {
	for _, n := range []int{12, 25, 70} {
		j := newLatencyJob(latencyShape{keys: n, dim: 32, heads: 2})
		lotKeys(3, .75, false).hook(.75)(0, 0, &j)
		new(kern.Scratch).Attend([]kern.Job{j}, 1)
		want := make([]float64, 32)
		for h := range 2 {
			for i := range n {
				referenceRow(want, &j, h, i)
				for c, x := range want {
					if got := float64(j.Out.Row(i)[h*32+c]); math.Abs(got-x) > 1e-5 {
						t.Fatalf("%d tokens, head %d, query %d: %v, want %v", n, h, i, got, x)
					}
				}
			}
		}
	}
}

// At the fit the gradient vanishes, and classes that a plane separates are told apart.
func TestProbeIsAtItsOptimum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, penalty := range []float64{.1, 1, 30} {
		var inputs [][]float32
		var labels []bool
		x := []float64{}
		for range 200 {
			in := []float32{float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64())}
			inputs, labels = append(inputs, in), append(labels, in[0]+in[1] > .3)
			x = append(x, float64(in[0]), float64(in[1]), float64(in[2]), 1)
		}
		w, slope := fitProbe(inputs, labels, penalty), make([]float64, 4)
		w.slope(slope, x, labels, penalty)
		for c, g := range slope {
			if math.Abs(g) > 1e-3*float64(len(inputs)) {
				t.Errorf("penalty %v: component %d of the gradient is %v", penalty, c, g)
			}
		}
		right := 0
		for i, in := range inputs {
			if w.says(in) == labels[i] {
				right++
			}
		}
		if penalty == .1 && right < 196 {
			t.Errorf("%d of 200 are right", right)
		}
	}
	if w := fitProbe(nil, nil, 1); w.says(nil) {
		t.Error("a fit of nothing says true")
	}
}

// Lines that share four words in a row are one group, whatever their order.
func TestPhrasesThatShareWords(t *testing.T) {
	lines := []string{"a b c d e", "x y z w", "q c d e f", "a b c", "b c d e f g", "y z w v u"}
	if got := fmt.Sprint(sharing(lines, 4)); got != "[[0 2 4] [1] [3] [5]]" {
		t.Errorf("groups %s", got)
	}
	if got := fmt.Sprint(sharing(lines, 3)); got != "[[0 2 3 4] [1 5]]" {
		t.Errorf("groups of three words: %s", got)
	}
}

// The file's lines become phrases; a broken line is named.
func TestSentencesOf(t *testing.T) {
	s, l, err := sentencesOf("sentence\tlabel\ngood film \t1\r\nbad\t0\nvery bad film\t0\n", 2)
	if err != nil || fmt.Sprint(s, l) != "[good film very bad film] [true false]" || len(s) != 2 {
		t.Errorf("%q %v %v", s, l, err)
	}
	for _, bad := range []string{"sentence\tlabel\nno label", "good\t2", "good\t"} {
		if _, _, err := sentencesOf(bad, 1); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// No group stands in two folds, and what calibrates judges nothing.
func TestPhraseSplitKeepsGroups(t *testing.T) {
	groups := make([][]phrase, 100)
	for g := range groups {
		groups[g] = make([]phrase, 1+g%3)
	}
	split, at, calibrate := phraseSplit(groups, 5, 42), 0, 0
	folds := map[int]bool{}
	for _, g := range groups {
		for k := range g {
			if split[at+k] != split[at] {
				t.Fatalf("a group in folds %d and %d", split[at], split[at+k])
			}
		}
		if folds[split[at]] = true; split[at] < 0 {
			calibrate++
		}
		at += len(g)
	}
	if len(folds) != 6 || calibrate != len(groups)/calibrating {
		t.Errorf("folds %v, %d groups calibrate", folds, calibrate)
	}
	if slices.Equal(split, phraseSplit(groups, 5, 43)) {
		t.Error("another seed gives the same folds")
	}
}

// The gain is that of all phrases that judge, over seeds; its interval moves whole groups.
func TestPhraseGain(t *testing.T) {
	var records []record
	for seed := range 2 {
		for method, right := range map[string]string{"a": "11 1- 10 11 01", "b": "10 0- 10 01 01"} {
			records = append(records, record{Text: map[string]string{"method": method, "sparsity": "75 %",
				"right": right}, Values: map[string]float64{"seed": float64(seed)}})
		}
	}
	if e := phraseGain(records, "75 %", "a", "b"); math.Abs(e.Mid-100*3./9) > 1e-9 || e.Units != 5 || e.Low < 0 ||
		e.High > 100 || e.Low >= e.High {
		t.Errorf("%+v", e)
	}
	if e := phraseGain(records, "75 %", "a", "a"); e.Mid != 0 || e.High != 0 {
		t.Errorf("against itself: %+v", e)
	}
}

// Masks that leave out nothing give dense attention bit for bit.
func TestOpenMasksAreDense(t *testing.T) {
	outputs := 0.0
	for _, r := range openMasks(whole, 42) {
		if outputs += r.Values["outputs"]; r.Values["differ"] > 0 {
			t.Errorf("%v: %v", r.Text, r.Values)
		}
	}
	if outputs < 1e6 {
		t.Errorf("only %v outputs are compared", outputs)
	}
}

// Neighbouring numbers are one ulp apart, across 0 too.
func TestUlps(t *testing.T) {
	for _, c := range []struct {
		a, b float32
		want float64
	}{{1, 1, 0}, {1, math.Nextafter32(1, 2), 1}, {0, math.Float32frombits(1), 1},
		{math.Float32frombits(1), math.Float32frombits(1<<31 | 1), 2}, {-1, math.Nextafter32(-1, 0), 1}} {
		if got := ulps(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %v ulp, want %v", c.a, c.b, got, c.want)
		}
	}
	if !math.IsInf(ulps(float32(math.NaN()), 1), 1) {
		t.Error("NaN is near 1")
	}
}
