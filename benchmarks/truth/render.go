package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

// value returns a column of one of a record's values.
func value(head, name, format string) column {
	return rig.Number(head, format, rig.Default, func(r *record) (float64, bool) {
		v, ok := r.Values[name]
		return v, ok
	})
}

// text returns a column of one of a record's texts.
func text(head, name string) column {
	return column{Head: head, Text: func(r *record) string { return r.Text[name] }}
}

// render writes the table of an experiment.
func (e *experiment) render(folder string, l *log, cells []cell) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", e.title, e.claim)
	fmt.Fprintf(&b, "Command: `go run ./benchmarks/truth --only %s`. %s; records in `%s.jsonl`.", e.name,
		l.origin(), e.name)
	if left := l.left(cells); left > 0 {
		fmt.Fprintf(&b, " **%d of %d cells are done.**", len(cells)-left, len(cells))
	}
	if timed, sum := l.took(); timed > 0 {
		word := "cells"
		if timed == 1 {
			word = "cell"
		}
		fmt.Fprintf(&b, " %d %s took %v.", timed, word, sum.Round(time.Second))
	}
	figures := e.overSeeds(l.figures())
	lines := e.lines(figures)
	b.WriteString("\n\n" + e.columns.Markdown(pointers(lines)))
	if err := e.pictures(folder, figures, &b); err != nil {
		return err
	}
	if len(l.records) > 0 {
		fmt.Fprintf(&b, "\n%s\n", e.verdict(figures))
	}
	return os.WriteFile(filepath.Join(folder, e.name+".md"), []byte(b.String()), 0o666)
}

// pictures writes the pictures that records hold, text svg, and links them.
func (e *experiment) pictures(folder string, records []record, b *strings.Builder) error {
	for k, r := range records {
		svg := r.Text["svg"]
		if svg == "" {
			continue
		}
		name := fmt.Sprintf("%s-%d.svg", e.name, k+1)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(svg), 0o666); err != nil {
			return err
		}
		fmt.Fprintf(b, "\n![%s](%s)\n", r.Cell, name)
	}
	return nil
}

// pointers returns the addresses of records, as columns take them.
func pointers(records []record) []*record {
	p := make([]*record, len(records))
	for k := range records {
		p[k] = &records[k]
	}
	return p
}

// lines returns the records of the table's lines.
func (e *experiment) lines(records []record) []record {
	if e.rows == nil || len(records) == 0 {
		return records
	}
	return e.rows(records)
}

// writeIndex lists the tables that there are.
func writeIndex(folder string) error {
	var b strings.Builder
	b.WriteString("# The paper's experiments, repeated\n\nOne page a table: the claim, what was measured, and why " +
		"they differ. `go run ./benchmarks/truth` goes on where it was interrupted.\n\n")
	for _, e := range experiments {
		if _, err := os.Stat(filepath.Join(folder, e.name+".md")); err == nil {
			fmt.Fprintf(&b, "* [%s](%s.md)\n", e.title, e.name)
		}
	}
	return os.WriteFile(filepath.Join(folder, "README.md"), []byte(b.String()), 0o666)
}

// sortedBy returns the records in the order of a value, for verdicts.
func sortedBy(records []record, name string) []record {
	s := slices.Clone(records)
	slices.SortStableFunc(s, func(a, b record) int { return cmp.Compare(a.Values[name], b.Values[name]) })
	return s
}
