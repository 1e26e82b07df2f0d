package main

import (
	"maps"
	"path/filepath"
	"strings"

	"entropipe/benchmarks/rig"
)

// results appends the figures of one command to its file.
type results struct {
	journal rig.Journal[map[string]any]
	common  map[string]any // figures that all records of this run share
}

// openResults returns the file of a command: dir/name.jsonl.
func (b *bench) openResults(dir, name string) (*results, error) {
	_, version, err := b.program.Run(b.ctx, "version")
	if err != nil {
		return nil, err
	}
	r := &results{
		journal: rig.Journal[map[string]any]{Bench: "e2e " + name},
		common:  map[string]any{"broker": b.broker.Kind, "version": strings.TrimSpace(version)},
	}
	folder, err := rig.ResultsFolder(dir, rig.FullRun)
	if folder != "" {
		r.journal.Path = filepath.Join(folder, name+".jsonl")
	}
	return r, err
}

// add appends one record. A figure replaces a common one of the same name.
func (r *results) add(figure map[string]any) error {
	record := maps.Clone(r.common)
	maps.Copy(record, figure)
	return r.journal.Add(record)
}
