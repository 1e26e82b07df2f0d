package pipeline

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

var all = []schemas.Op{schemas.Hull2D, schemas.Hull3D, schemas.Maxima2D, schemas.Maxima3D, schemas.Delaunay2D}

// Law: rows of what is left of a frame are those of the whole frame, for the
// operators that it was pruned for; the others find nothing. What is left may
// hold more than it must.
func TestPrunedFramesHaveTheRowsOfWholeOnes(t *testing.T) {
	var d schemas.Decoder
	var s schemas.Survivors
	f := NewFrames(FrameConfig{Ops: all, Points: true})
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(rt, "n")
		c := geomtest.Lidar[float32](n, rapid.Uint64Range(0, 1000).Draw(rt, "seed"))
		for i := range c.X { // ties and points that are dropped
			switch rapid.IntRange(0, 9).Draw(rt, "change") {
			case 0:
				c.X[i], c.Y[i], c.Z[i] = c.X[i/2], c.Y[i/2], c.Z[i/2]
			case 1:
				c.Y[i] = float32(math.NaN())
			}
		}
		m := message(points32(t, c))
		results, _ := f.Process(m)
		whole := results[0]
		frames, err := d.Decode(m)
		if err != nil {
			rt.Fatal(err)
		}
		p := &schemas.Pruned{NPoints: whole.NPoints, NDropped: whole.NDropped}
		needed := map[schemas.Op][]int32{schemas.Hull2D: whole.Hull.Idx, schemas.Hull3D: whole.Hull3.Idx,
			schemas.Maxima2D: whole.Maxima[0].Idx, schemas.Maxima3D: whole.Maxima[1].Idx}
		var keep []int32
		for _, op := range []schemas.Op{schemas.Hull2D, schemas.Hull3D, schemas.Maxima2D, schemas.Maxima3D} {
			if rapid.Bool().Draw(rt, op.String()) {
				p.For = p.For.With(op)
				keep = append(keep, needed[op]...)
			}
		}
		if p.For == 0 {
			return
		}
		for k := range whole.Points.Len() {
			i := int32(k)
			if whole.Points.Idx != nil {
				i = whole.Points.Idx[k]
			}
			if rapid.IntRange(0, 4).Draw(rt, "more") == 0 {
				keep = append(keep, i)
			}
		}
		slices.Sort(keep)
		keep = slices.Compact(keep)
		var e schemas.Encoder
		v, err := e.AppendPoints(nil, s.Of(&frames[0], keep))
		if err != nil {
			rt.Fatal(err)
		}
		r := schemas.PrunedRecord(&m, frames[0].FrameKey, p, v)
		m.Value, m.Headers = r.Value, r.Headers
		results, rejects := f.Process(m)
		if len(results) != 1 {
			rt.Fatalf("rejects %+v", rejects)
		}
		if diff := cmp.Diff(expected(whole, p.For, keep), timeless(results[0])); diff != "" {
			rt.Fatalf("for %s, %d of %d points (-whole +pruned):\n%s", p.For, len(keep), n, diff)
		}
	})
}

// timeless is r without times.
func timeless(r schemas.Result) schemas.Result {
	r.LatencyNs, r.Points = 0, &schemas.Points{Idx: r.Points.Idx}
	for op := range r.Ops {
		r.Ops[op].Ns = 0
	}
	return r
}

// expected is what the row of a whole frame becomes for one pruned to keep.
func expected(whole schemas.Result, ops schemas.OpSet, keep []int32) schemas.Result {
	r := timeless(whole)
	r.Points = &schemas.Points{Idx: keep}
	if keep == nil {
		r.Points.Idx = []int32{}
	}
	for op := range schemas.NumOps {
		if !ops.Has(op) {
			r.Ops[op] = schemas.OpResult{Status: schemas.StatusPrunedInput}
		}
	}
	r.Triangles, r.Maxima = nil, nil
	if !ops.Has(schemas.Hull2D) {
		r.Hull = nil
	}
	if !ops.Has(schemas.Hull3D) {
		r.Hull3 = nil
	}
	for i, op := range []schemas.Op{schemas.Maxima2D, schemas.Maxima3D} {
		if ops.Has(op) {
			r.Maxima = append(r.Maxima, whole.Maxima[i])
		}
	}
	return r
}

// Without z, a frame that was pruned for operators in space is like a whole one.
func TestPrunedFramesWithoutZ(t *testing.T) {
	var e schemas.Encoder
	v, err := e.AppendPoints(
		nil,
		schemas.PointCloud{
			Index:  []int32{4},
			Points: codec.Points{Cloud32: geom.Cloud[float32]{X: []float32{1}, Y: []float32{2}}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	m := message(v)
	m.Headers = (&schemas.Pruned{For: schemas.Prunable, NPoints: 5}).Headers()
	results, _ := NewFrames(FrameConfig{Ops: all}).Process(m)
	for op, want := range map[schemas.Op]schemas.Status{schemas.Hull2D: "degenerate_point", schemas.Maxima2D: "ok",
		schemas.Hull3D: "not_run", schemas.Maxima3D: "not_run", schemas.Delaunay2D: "pruned_input"} {
		if got := results[0].Ops[op].Status; got != want {
			t.Errorf("%s: %q, want %q", op, got, want)
		}
	}
	if !slices.Equal(results[0].Hull.Idx, []int32{4}) {
		t.Errorf("hull %v, want the point's number in the whole frame", results[0].Hull.Idx)
	}
}
