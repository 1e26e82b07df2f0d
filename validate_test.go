package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/algos/geom"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/sinks"
)

// The operators that write a table are those whose results, committed, have rows
// in it.
func TestTableOps(t *testing.T) {
	selectable := []string{"hulls", "hulls3d", "maxima", "triangles", "points", "entropy"}
	var e schemas.Encoder
	cube := geom.Cloud[float32]{X: []float32{0, 1, 0, 0, 1}, Y: []float32{0, 0, 1, 0, 1}, Z: []float32{0, 0, 0, 1, 1}}
	value, err := e.AppendPoints(nil, schemas.PointCloud{Cloud32: cube})
	if err != nil {
		t.Fatal(err)
	}
	for op := range schemas.NumOps {
		results, rejects := pipeline.NewFrames(pipeline.FrameConfig{Ops: []schemas.Op{op}}).Process(schemas.Message{Topic: "points", Value: value})
		if len(results) != 1 || len(rejects) > 0 || results[0].Ops[op].Status != schemas.StatusOK {
			t.Fatalf("%v: %+v, %+v", op, results, rejects)
		}
		store, err := sinks.OpenLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		out, err := sinks.Open(t.Context(), store, sinks.Config{Tables: selectable})
		if err == nil {
			err = out.Base(t.Context(), "points", schemas.TopicID{}, nil)
		}
		if err == nil {
			_, err = out.Resume(t.Context(), "points", 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		done, err := out.Commit(t.Context(), &schemas.Batch{Topic: "points", End: 1, Messages: 1, Last: &schemas.RecordID{}, Results: results})
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range selectable {
			written := slices.ContainsFunc(done.Tables, func(f schemas.TableFiles) bool { return f.Table == table && f.Rows > 0 })
			if said := slices.Contains(tableOps[table], op); said != written {
				t.Errorf("%v writes table %s: %t, tableOps says %t", op, table, written, said)
			}
		}
		store.Close()
	}
}

// A topic must take the frames that are sent, and run too; that the topic would
// take larger ones is worth a word, but no mistake.
func TestSizesOfFramesAndTopics(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir() // its topics take 16 MiB
	must(t, dir, "produce", "synthetic", "--frames", "3", "--points", "100", "--rate", "max", "--brokers", brokers)
	config := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(config, []byte("brokers: "+brokers+"\nout: "+filepath.Join(dir, "out")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		max, frames string
		status      int
		want        string
	}{
		{"16MiB", "16MiB", 0, "3 records, messages of up to 16 MiB\n"},
		{"4MiB", "2MiB", 0, "messages of up to 16 MiB, of which those above --max-frame-bytes 4MiB become rejects\n"},
		{"4MiB", "5MiB", exitRuntime, "frames of 5MiB would become rejects: --max-frame-bytes is 4MiB"},
		{"64MiB", "17MiB", exitRuntime, "max.message.bytes"},
	} {
		var stdout, stderr bytes.Buffer
		status := Main([]string{"validate", config, "--connect", "--max-frame-bytes", c.max, "--frame-bytes", c.frames}, &stdout, &stderr)
		if all := stdout.String() + stderr.String(); status != c.status || !strings.Contains(all, c.want) {
			t.Errorf("row %d: exit status %d, want %d and %q:\n%s", i, status, c.status, c.want, all)
		}
	}
}
