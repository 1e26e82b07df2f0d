package pipeline

import (
	"testing"

	"entropipe/algos/geom"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// Scratch memory goes back after a giant, and only when it is out of use for
// good: neither between large frames nor where nothing is large.
func TestOutgrownScratch(t *testing.T) {
	frames := func(n int) []schemas.Frame {
		cloud := geom.Cloud[float32]{X: make([]float32, n), Y: make([]float32, n)}
		return []schemas.Frame{{Points: codec.Points{Cloud32: cloud}}, {}}
	}
	giant, middle, small := frames(8*largeFrame), frames(largeFrame), frames(100)
	var o outgrown
	for range 3 * patience {
		if o.after(small) || o.after(nil) {
			t.Fatal("given back though nothing was large")
		}
	}
	for range 3 * patience {
		if o.after(giant) || o.after(small) || o.after(small) {
			t.Fatal("given back though a large frame comes every third time")
		}
	}
	for range 3 * patience {
		if o.after(middle) {
			t.Fatal("given back though an eighth is in use")
		}
	}
	for i := range 3 * patience {
		if got := o.after(small); got != (i == patience-1) {
			t.Fatalf("message %d after the last large one: given back %v", i, got)
		}
	}
}

// What is given back is the operators and the decoder, and results are the same
// before and after.
func TestAWorkerShrinks(t *testing.T) {
	f := NewFrames(FrameConfig{})
	m := message(points32(t, geom.Cloud[float32]{X: []float32{0, 4, 4, 0, 1}, Y: []float32{0, 0, 3, 3, 1}}))
	before, _ := f.Process(m)
	worn := f.f32
	f.scratch = outgrown{grown: 8 * largeFrame, small: patience - 2}
	if f.Process(m); f.f32 != worn {
		t.Fatal("operators given back too early")
	}
	after, _ := f.Process(m)
	if f.f32 == worn {
		t.Fatal("operators of a giant were kept")
	}
	again, _ := f.Process(m)
	for _, r := range [][]schemas.Result{after, again} {
		if len(r) != 1 || r[0].Hull.Area != 12 || len(r[0].Triangles) != len(before[0].Triangles) {
			t.Errorf("rows changed: %+v, before %+v", r, before)
		}
	}
}
