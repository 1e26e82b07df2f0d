package main

import (
	"errors"
	"io"

	"entropipe/benchmarks/rig"
)

// renderCmd writes the four pages again from their records.
type renderCmd struct {
	Results string `placeholder:"DIR" help:"Folder of the records and pages (benchmarks/results)."`
}

// Run is the subcommand.
func (c *renderCmd) Run() error {
	var dense denseReport
	var block sparseReport
	var rows ladderReport
	var short bf16Report
	return errors.Join(
		render(&dense.journal, "dense", c.Results, dense.markdown),
		render(&block.journal, "sparse", c.Results, block.markdown),
		render(&rows.journal, "ladder", c.Results, rows.markdown),
		render(&short.journal, "bf16", c.Results, short.markdown))
}

// render reads the records of a benchmark and writes its page.
func render[C any](r *journal[C], name, results string, markdown func() string) error {
	if err := r.open(name, results, rig.FullRun, kept); err != nil {
		return err
	}
	return r.publish(io.Discard, markdown())
}
