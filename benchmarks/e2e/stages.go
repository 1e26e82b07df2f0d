package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// stages are where the program's processor time can go, in the order in which a
// frame meets them.
var stages = []string{stageReceive, stageChecksum, stageFetch, stageDecode, stageIdentity, stagePrepare, stageHull,
	stageMaxima, stageDelaunay,
	stagePipeline, stageEncode, stageHash, stageCommit, stageMetrics, stageGC, stageRuntime}

const (
	stageReceive  = "fetch: receive (kernel)"
	stageChecksum = "fetch: checksum"
	stageFetch    = "fetch: the rest"
	stageDecode   = "decode"
	stageIdentity = "identity of the record"
	stagePrepare  = "preprocess"
	stageHull     = "hull"
	stageMaxima   = "maxima"
	stageDelaunay = "delaunay"
	stagePipeline = "results, order, memory"
	stageEncode   = "encode Parquet"
	stageHash     = "hash and write files"
	stageCommit   = "commit: fsync, rename"
	stageMetrics  = "metrics"
	stageGC       = "garbage collection"
	stageRuntime  = "scheduler, start and end"
)

// stageOfFunction tells stages by the beginning of a function's name. The first
// function of a stack, from the innermost on, that is found here decides.
var stageOfFunction = []struct{ prefix, stage string }{
	{"entropipe/ingest.", stageFetch},
	{"entropipe/schemas.(*Message).ID", stageIdentity},
	{"entropipe/schemas.", stageDecode},
	{"entropipe/preprocess.", stagePrepare},
	{"entropipe/algos/hull.", stageHull},
	{"entropipe/algos/maxima.", stageMaxima},
	{"entropipe/algos/delaunay.", stageDelaunay},
	{"entropipe/sinks.(*summingWriter)", stageHash},
	{"entropipe/sinks/tables.", stageEncode},
	{"entropipe/sinks/internal/disk.", stageCommit},
	{"entropipe/sinks.", stageCommit},
	{"entropipe/ops/metrics.", stageMetrics},
	{"github.com/prometheus/", stageMetrics},
	{"entropipe/ops/pipeline.", stagePipeline},
	{"runtime.gcBgMarkWorker", stageGC},
	{"runtime.gcAssistAlloc", stageGC},
	{"runtime.bgsweep", stageGC},
	{"runtime.bgscavenge", stageGC},
}

// stageOf returns the stage of a stack, innermost function first.
func stageOf(stack []string) string {
	for i, f := range stack {
		k := slices.IndexFunc(stageOfFunction, func(r struct{ prefix, stage string }) bool {
			return strings.HasPrefix(f, r.prefix)
		})
		if k < 0 {
			continue
		}
		inner := func(part string) bool {
			return slices.ContainsFunc(stack[:i], func(f string) bool { return strings.Contains(f, part) })
		}
		switch stage := stageOfFunction[k].stage; {
		case stage == stageFetch && inner("yscall"):
			return stageReceive
		case stage == stageFetch && inner("hash/crc32."):
			return stageChecksum
		default:
			return stage
		}
	}
	return stageRuntime
}

// parseTraces adds up the samples that `go tool pprof -traces -unit=ms` prints,
// by stage, in milliseconds. A sample is a value and a stack, innermost function
// first, one a line, after a line of dashes.
func parseTraces(r io.Reader) (map[string]float64, error) {
	spent := map[string]float64{}
	var ms float64
	var stack []string
	add := func() {
		if len(stack) > 0 {
			spent[stageOf(stack)] += ms
		}
		ms, stack = 0, nil
	}
	inSamples := false
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-----") {
			add()
			inSamples = true
			continue
		}
		words := strings.Fields(line)
		if !inSamples || len(words) == 0 {
			continue
		}
		if len(stack) == 0 {
			value, ok := strings.CutSuffix(words[0], "ms")
			v, err := strconv.ParseFloat(value, 64)
			if !ok || err != nil || len(words) < 2 {
				return nil, fmt.Errorf("no sample: %q", line)
			}
			ms, words = v, words[1:]
		}
		stack = append(stack, words[0])
	}
	add()
	return spent, lines.Err()
}
