package flags

import (
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/sinks"
	"entropipe/sinks/tables"
)

// The operators that write a table are those whose results, committed, have rows
// in it.
func TestTableOps(t *testing.T) {
	selectable := []string{"hulls", "hulls3d", "maxima", "triangles", "points", "entropy"}
	var e schemas.Encoder
	cube := geom.Cloud[float32]{X: []float32{0, 1, 0, 0, 1}, Y: []float32{0, 0, 1, 0, 1}, Z: []float32{0, 0, 0, 1, 1}}
	value, err := e.AppendPoints(nil, schemas.PointCloud{Points: codec.Points{Cloud32: cube}})
	if err != nil {
		t.Fatal(err)
	}
	for op := range schemas.NumOps {
		results, rejects := pipeline.NewFrames(
			pipeline.FrameConfig{Ops: []schemas.Op{op}, EntropyEvery: 1}).Process(
			schemas.Message{Topic: "points", Value: value})
		if len(results) != 1 || len(rejects) > 0 || results[0].Ops[op].Status != schemas.StatusOK {
			t.Fatalf("%v: %+v, %+v", op, results, rejects)
		}
		store, err := sinks.OpenLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		encoder, err := tables.New(tables.Config{Tables: selectable})
		if err != nil {
			t.Fatal(err)
		}
		out, err := sinks.Open(t.Context(), store, encoder, sinks.Config{})
		if err == nil {
			err = out.Base(t.Context(), "points", schemas.TopicID{}, nil)
		}
		if err == nil {
			_, err = out.Resume(t.Context(), "points", 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		done, err := out.Commit(t.Context(), &schemas.Batch{Topic: "points", End: 1, Messages: 1,
			Last: &schemas.RecordID{}, Results: results})
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range selectable {
			written := slices.ContainsFunc(done.Tables,
				func(f schemas.TableFiles) bool { return f.Table == table && f.Rows > 0 })
			if said := slices.Contains(TableOps[table], op); said != written {
				t.Errorf("%v writes table %s: %t, tableOps says %t", op, table, written, said)
			}
		}
		store.Close()
	}
}
