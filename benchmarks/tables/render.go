package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// value returns a column of one of a record's values.
func value(head, name, format string) column {
	return column{head, func(r *record) string {
		v, ok := r.Values[name]
		if !ok {
			return ""
		}
		return fmt.Sprintf(format, v)
	}}
}

// text returns a column of one of a record's texts.
func text(head, name string) column {
	return column{head, func(r *record) string { return r.Text[name] }}
}

// render writes the table of an experiment.
func (e *experiment) render(folder string, l *log, cells int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", e.title, e.claim)
	done := 0
	for range l.done {
		done++
	}
	fmt.Fprintf(&b, "Command: `go run ./benchmarks/tables --only %s`. %s, %d cores, %s, %s; records in `%s.jsonl`.", e.name, l.machine.CPU, l.machine.Cores, l.machine.Vector, l.machine.Go, e.name)
	if done < cells {
		fmt.Fprintf(&b, " **%d of %d cells are done.**", done, cells)
	}
	b.WriteString("\n\n|")
	for _, c := range e.columns {
		fmt.Fprintf(&b, " %s |", c.head)
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(e.columns)) + "\n")
	lines := e.lines(l.records)
	for k := range lines {
		b.WriteString("|")
		for _, c := range e.columns {
			fmt.Fprintf(&b, " %s |", c.text(&lines[k]))
		}
		b.WriteString("\n")
	}
	if err := e.pictures(folder, l.records, &b); err != nil {
		return err
	}
	if len(l.records) > 0 {
		fmt.Fprintf(&b, "\n%s\n", e.verdict(l.records))
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

// lines are those of the table.
func (e *experiment) lines(records []record) []record {
	if e.rows == nil || len(records) == 0 {
		return records
	}
	return e.rows(records)
}

// writeIndex lists the tables that there are.
func writeIndex(folder string) error {
	var b strings.Builder
	b.WriteString("# The paper's experiments, repeated\n\nOne page a table: the claim, what was measured, and why they differ. `go run ./benchmarks/tables` goes on where it was interrupted.\n\n")
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
