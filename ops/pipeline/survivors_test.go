package pipeline

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/schemas"
)

// consumed is what another pipeline makes of a published record.
func consumed(t interface{ Fatalf(string, ...any) }, f *Frames, r *schemas.Record) schemas.Result {
	if r == nil {
		t.Fatalf("nothing is published")
	}
	m := message(r.Value)
	m.Key, m.Headers = r.Key, r.Headers
	results, rejects := f.Process(m)
	if len(results) != 1 {
		t.Fatalf("rejects %+v", rejects)
	}
	return timeless(results[0])
}

// Law: whatever runs here, a consumer of what is published gets the rows of the
// whole frame for the operators that it is published for; and of what it
// publishes in turn, another one does.
func TestPublishedFramesHaveTheRowsOfWholeOnes(t *testing.T) {
	reader := NewFrames(FrameConfig{Ops: all, Points: true})
	workers := map[string]*Frames{}
	worker := func(ops []schemas.Op, publish schemas.OpSet) *Frames {
		name := publish.String()
		for _, op := range ops {
			name += " " + op.String()
		}
		if workers[name] == nil {
			workers[name] = NewFrames(FrameConfig{Ops: ops, Publish: publish})
		}
		return workers[name]
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(rt, "n")
		c := geomtest.Lidar[float64](n, rapid.Uint64Range(0, 1000).Draw(rt, "seed"))
		for i := range c.X {
			switch rapid.IntRange(0, 9).Draw(rt, "change") {
			case 0:
				c.X[i], c.Y[i], c.Z[i] = c.X[i/2], c.Y[i/2], c.Z[i/2]
			case 1:
				c.Z[i] = math.Inf(1)
			}
		}
		if rapid.Bool().Draw(rt, "flat") {
			c.Z = nil
		}
		m := message(points64(t, c))
		results, _ := reader.Process(m)
		whole := timeless(results[0])
		ops := rapid.SampledFrom([][]schemas.Op{{}, {schemas.Hull2D, schemas.Maxima3D}, all}).Draw(rt, "ops")
		publish := schemas.OpSet(rapid.IntRange(1, 15).Draw(rt, "publish"))
		results, _ = worker(ops, publish).Process(m)
		first := consumed(rt, reader, results[0].Publish)
		if diff := cmp.Diff(rowsOf(whole, publish), first); diff != "" {
			rt.Fatalf("published for %s beside %v (-whole +published):\n%s", publish, ops, diff)
		}

		m.Value, m.Headers = results[0].Publish.Value, results[0].Publish.Headers
		again := schemas.OpSet(rapid.IntRange(1, 15).Draw(rt, "again"))
		results, _ = worker(ops, again).Process(m)
		second := consumed(rt, reader, results[0].Publish)
		want := rowsOf(whole, publish&again)
		if publish&again == 0 {
			want = first // it goes on as it is
		}
		if diff := cmp.Diff(want, second); diff != "" {
			rt.Fatalf("published for %s, then %s (-whole +published):\n%s", publish, again, diff)
		}
	})
}

// rowsOf is what the row of a whole frame becomes when it is pruned for ops;
// points are those that the operators found.
func rowsOf(whole schemas.Result, ops schemas.OpSet) schemas.Result {
	keep := []int32{}
	for op := range schemas.NumOps {
		if ops.Has(op) && whole.Ops[op].Status != schemas.StatusNotRun {
			keep = append(keep, found(op, &whole)...)
		}
	}
	slices.Sort(keep)
	r := schemas.Result{FrameKey: whole.FrameKey, NPoints: whole.NPoints, NDropped: whole.NDropped,
		Points: &schemas.Points{Idx: slices.Compact(keep)}}
	for op := range schemas.NumOps {
		switch status := whole.Ops[op].Status; {
		case status != schemas.StatusNotRun && !ops.Has(op):
			r.Ops[op].Status = schemas.StatusPrunedInput
			continue
		default:
			r.Ops[op] = whole.Ops[op]
		}
		switch op {
		case schemas.Hull2D:
			r.Hull = whole.Hull
		case schemas.Hull3D:
			r.Hull3 = whole.Hull3
		default:
			for _, m := range whole.Maxima {
				if m.Directions == maximaDirections[op] {
					r.Maxima = append(r.Maxima, m)
				}
			}
		}
	}
	return r
}

// Drawings go on as they are, once a message; rejects do not.
func TestDrawingsAreForwarded(t *testing.T) {
	var e schemas.Encoder
	var sketches []schemas.Sketch
	for i := range 3 {
		sketches = append(sketches, schemas.Sketch{Drawing: schemas.Drawing{ID: int64(i)},
			Strokes: []schemas.Stroke{{X: []float64{1, 2}, Y: []float64{3, float64(i)}}}})
	}
	v, err := e.AppendSketches(nil, sketches)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFrames(FrameConfig{Publish: schemas.Prunable})
	results, _ := f.Process(message(v))
	if len(results) != 3 || results[0].Publish == nil || results[1].Publish != nil || results[2].Publish != nil ||
		!slices.Equal(results[0].Publish.Value, v) {
		t.Fatalf("results %+v", results)
	}
	again, _ := NewFrames(FrameConfig{}).Process(schemas.Message{Value: results[0].Publish.Value,
		Headers: results[0].Publish.Headers, Key: results[0].Publish.Key})
	for i := range again {
		if diff := cmp.Diff(results[i].Hull, again[i].Hull); diff != "" || again[i].FrameID != results[i].FrameID ||
			again[i].Sequence != results[i].Sequence {
			t.Errorf("drawing %d: %s", i, diff)
		}
	}
	if results, rejects := f.Process(message([]byte("no frame"))); len(results) != 0 || len(rejects) != 1 {
		t.Errorf("results %+v of what is no frame", results)
	}
}

// Without operators and without a stage, a frame still goes on, small.
func TestPurePruner(t *testing.T) {
	c := geomtest.Lidar[float32](120_000, 1)
	f := NewFrames(FrameConfig{Ops: []schemas.Op{},
		Publish: schemas.OpSet(0).With(schemas.Hull2D).With(schemas.Maxima3D)})
	m := message(points32(t, c))
	results, rejects := f.Process(m)
	if len(results) != 1 || len(rejects) != 0 || results[0].Hull != nil ||
		results[0].Ops != [schemas.NumOps]schemas.OpResult{} {
		t.Fatalf("results %+v, rejects %+v", results, rejects)
	}
	r := results[0].Publish
	if ratio := float64(len(m.Value)) / float64(len(r.Value)); ratio < 20 || r.Points < 4 {
		t.Errorf("%d bytes become %d, of %d points", len(m.Value), len(r.Value), r.Points)
	}
	for _, h := range r.Headers {
		if h.Key == schemas.HeaderPrunedFor && string(h.Value) != "hull2d,maxima3d" ||
			strings.HasPrefix(h.Key, "n-") && len(h.Value) == 0 {
			t.Errorf("header %s: %s", h.Key, h.Value)
		}
	}
	if f.Process(message(points32(t, geom.Cloud[float32]{}))); results[0].Publish.Points != r.Points {
		t.Error("a record changed with the next frame")
	}
}

// Real frames become a twentieth of their size at most, and a consumer's rows
// are those of the whole frames.
func TestSurvivorsOfRealFrames(t *testing.T) {
	publish := schemas.OpSet(0).With(schemas.Hull2D).With(schemas.Maxima3D)
	f := NewFrames(FrameConfig{Ops: []schemas.Op{schemas.Hull2D, schemas.Maxima3D}, Points: true, Publish: publish})
	reader := NewFrames(FrameConfig{Ops: all, Points: true})
	whole, part := 0, 0
	for _, fr := range geomtest.RealFrames(t) {
		m := message(points32(t, fr.Cloud))
		results, rejects := f.Process(m)
		if len(results) != 1 {
			t.Fatalf("%s: rejects %+v", fr.Name, rejects)
		}
		r := consumed(t, reader, results[0].Publish)
		if diff := cmp.Diff(results[0].Hull, r.Hull) + cmp.Diff(results[0].Maxima, r.Maxima); diff != "" {
			t.Errorf("%s (-whole +survivors):\n%s", fr.Name, diff)
		}
		whole, part = whole+len(m.Value), part+len(results[0].Publish.Value)
	}
	t.Logf("%d bytes of frames become %d: %.0f times fewer", whole, part, float64(whole)/float64(part))
	if whole < 20*part {
		t.Errorf("%d bytes become %d", whole, part)
	}
}
