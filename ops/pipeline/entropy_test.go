package pipeline

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/schemas"
)

// Every Nth frame is measured, whoever does it, for all operators that have an
// entropy; and the truth is within the bracket.
func TestEntropyOfEveryNthFrame(t *testing.T) {
	f := NewFrames(FrameConfig{Ops: all, EntropyEvery: 5})
	var at []int64
	for offset := range int64(12) {
		c := geomtest.Lidar[float32](3000, uint64(offset))
		m := message(points32(t, c))
		m.Offset = offset
		results, _ := f.Process(m)
		r := &results[0]
		if len(r.Entropy) == 0 {
			continue
		}
		at = append(at, offset)
		problems := map[schemas.Op][]int32{schemas.Maxima2D: r.Maxima[0].Idx, schemas.Maxima3D: r.Maxima[1].Idx,
			schemas.Hull2D: r.Hull.Idx, schemas.Hull3D: r.Hull3.Idx}
		if len(r.Entropy) != len(problems) {
			t.Fatalf("offset %d: %+v", offset, r.Entropy)
		}
		for _, e := range r.Entropy {
			truth := entropy.GroundTruth(c, problems[e.Op], entropyProblems[e.Op])
			if e.Lower > truth.Upper || e.Upper < truth.Lower || e.Lower > e.Upper || e.Stage != "" ||
				int(e.N) != len(problems[e.Op]) {
				t.Errorf("offset %d: %+v, truth %+v", offset, e, truth)
			}
			if e.F == nil || *e.F < 0 || *e.F > 2*math.Log(entropyPoints) {
				t.Errorf("offset %d, %s: F %v", offset, e.Op, e.F)
			}
		}
	}
	if diff := cmp.Diff([]int64{0, 5, 10}, at); diff != "" {
		t.Errorf("measured offsets (-want +have):\n%s", diff)
	}
}

// F is the whole frame's, though of a sample: a sample of this one misses the
// point that dominates all others. So it is where points were dropped before it.
func TestEntropyKnowsTheOutlier(t *testing.T) {
	c := geomtest.Square[float32](20_000, 1)
	c.X[7777], c.Y[7777] = 2, 2
	c.X[0], c.X[9] = float32(math.NaN()), float32(math.Inf(1))
	m := message(points32(t, c))
	m.Offset = 0
	results, _ := NewFrames(FrameConfig{Ops: []schemas.Op{schemas.Maxima2D}, EntropyEvery: 1}).Process(m)
	e := results[0].Entropy
	if len(e) != 1 || e[0].N != 1 || *e[0].F > 0.01 {
		t.Fatalf("%+v, want F near the entropy, which is 0", e)
	}
}

// Clouds of nothing, of few points and of one place have numbers too; a frame
// that is not there whole has no F; small ones are measured less often.
func TestEntropyOfOddFrames(t *testing.T) {
	odd := map[string]geom.Cloud[float32]{
		"empty":     {X: []float32{}, Y: []float32{}, Z: []float32{}},
		"a point":   {X: []float32{1}, Y: []float32{2}, Z: []float32{3}},
		"one place": {X: make([]float32, 50), Y: make([]float32, 50), Z: make([]float32, 50)},
		"no z":      {X: []float32{1, 2, 3}, Y: []float32{2, 1, 2}},
		"a line":    {X: []float32{1, 2, 3, 4}, Y: []float32{1, 2, 3, 4}, Z: []float32{1, 2, 3, 4}},
	}
	f := NewFrames(FrameConfig{Ops: all, EntropyEvery: 2})
	for name, c := range odd {
		m := message(points32(t, c))
		for _, m.Offset = range []int64{0, 2 * smallEvery, smallEvery} {
			results, _ := f.Process(m)
			want := 4
			if c.Z == nil {
				want = 2
			}
			if m.Offset%(2*smallEvery) != 0 {
				want = 0
			}
			if got := results[0].Entropy; len(got) != want {
				t.Errorf("%s at %d: %+v", name, m.Offset, got)
			}
			for _, e := range results[0].Entropy {
				if e.F == nil || math.IsNaN(*e.F) || !(e.Lower >= 0 && e.Lower <= e.Upper) || e.Upper > 2*math.Log(50) {
					t.Errorf("%s: %+v", name, e)
				}
			}
		}
	}
	m := message(points32(t, geomtest.Lidar[float32](5000, 1)))
	m.Offset = 0
	results, _ := NewFrames(FrameConfig{Ops: []schemas.Op{}, Publish: schemas.OpSet(0).With(schemas.Hull2D)}).Process(m)
	m.Value, m.Headers = results[0].Publish.Value, results[0].Publish.Headers
	results, _ = f.Process(m)
	if e := results[0].Entropy; len(e) != 1 || e[0].Op != schemas.Hull2D || e[0].F != nil || e[0].Upper <= 0 {
		t.Errorf("of a pruned frame: %+v", e)
	}
}
