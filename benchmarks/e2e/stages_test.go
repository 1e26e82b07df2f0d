package main

import (
	"maps"
	"strings"
	"testing"
)

// A stack belongs to its innermost function that has a stage, and what the
// kernel, the checksum and the hash do stands apart.
func TestStageOfStacks(t *testing.T) {
	for _, c := range []struct {
		stack string // innermost first
		want  string
	}{
		{"internal/runtime/syscall/linux.Syscall6 syscall.read entropipe/ingest.(*guarded).Read " +
			"entropipe/ingest.(*summing).fill", stageReceive},
		{"hash/crc32.castagnoliSSE42Triple entropipe/ingest.(*summing).fill", stageChecksum},
		{"runtime.memmove entropipe/ingest.(*cursor).bytes", stageFetch},
		{"hash/crc32.archUpdateCastagnoli entropipe/schemas.(*Message).ID entropipe/ops/pipeline.(*Pipeline).work",
			stageIdentity},
		{"entropipe/schemas.(*flat).table entropipe/schemas.(*Decoder).Decode entropipe/ops/pipeline.(*Frames).Process",
			stageDecode},
		{"entropipe/algos/internal/kernel.Finite entropipe/algos/geom.Cloud.Finite entropipe/preprocess.(*Stage).Apply",
			stagePrepare},
		{"entropipe/algos/exact.Orient2D entropipe/algos/hull.(*lane).chain entropipe/ops/pipeline.(*operators).hullOf",
			stageHull},
		{"entropipe/algos/exact.InCircle entropipe/algos/delaunay.(*Triangulator).inside", stageDelaunay},
		{"runtime.mallocgc entropipe/ops/pipeline.(*memory).room", stagePipeline},
		{"runtime.scanobject runtime.gcDrainN runtime.gcAssistAlloc runtime.mallocgc " +
			"entropipe/ops/pipeline.(*memory).room", stageGC},
		{"github.com/parquet-go/parquet-go/encoding/delta.encodeInt32 " +
			"entropipe/sinks/tables.(*tableWriter).flushPage entropipe/sinks/tables.(*Encoder).Encode", stageEncode},
		{"crypto/sha256.block entropipe/sinks.(*summingWriter).Write bufio.(*Writer).Write " +
			"entropipe/sinks/tables.(*Encoder).Encode", stageHash},
		{"syscall.Fsync entropipe/sinks.(*stagedFile).Close entropipe/sinks.(*Output).stageFile", stageCommit},
		{"github.com/prometheus/client_golang/prometheus.(*counter).Add entropipe/ops/metrics.(*Source).Processed " +
			"entropipe/ops/pipeline.(*Pipeline).work", stageMetrics},
		{"runtime.futex runtime.findRunnable runtime.schedule", stageRuntime},
	} {
		if got := stageOf(strings.Fields(c.stack)); got != c.want {
			t.Errorf("%s: %s, want %s", c.stack, got, c.want)
		}
	}
}

const tracesText = `File: entropipe
Type: cpu
Duration: 2s, Total samples = 810ms (40.49%)
-----------+-------------------------------------------------------
      10ms   entropipe/algos/hull.(*lane[go.shape.float32]).scan (inline)
             entropipe/ops/pipeline.(*Frames).Process
-----------+-------------------------------------------------------
   1200.50ms   entropipe/algos/maxima.(*filter[go.shape.float32]).space
             entropipe/ops/pipeline.(*Frames).Process
-----------+-------------------------------------------------------
      20ms   entropipe/algos/hull.push[go.shape.float32]
-----------+-------------------------------------------------------
`

func TestTracesAddUpByStage(t *testing.T) {
	got, err := parseTraces(strings.NewReader(tracesText))
	if want := map[string]float64{stageHull: 30, stageMaxima: 1200.5}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := parseTraces(strings.NewReader("-----\nmany  f\n")); err == nil {
		t.Errorf("got %v of a text without samples", got)
	}
}

// Every stage that a function can have is printed.
func TestEveryStageIsPrinted(t *testing.T) {
	printed := map[string]bool{}
	for _, s := range stages {
		printed[s] = true
	}
	for _, r := range stageOfFunction {
		if !printed[r.stage] {
			t.Errorf("%s is not printed", r.stage)
		}
	}
	for _, s := range []string{stageReceive, stageChecksum, stageEncode, stageRuntime} {
		if !printed[s] {
			t.Errorf("%s is not printed", s)
		}
	}
}
