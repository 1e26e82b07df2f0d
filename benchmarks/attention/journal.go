package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"entropipe/benchmarks/rig"
)

// journal keeps the cells of one benchmark in a file, each as soon as it is
// measured, and writes the page that shows them.
type journal[C any] struct {
	rig.Journal[C]
	page string // path of the page; empty: nothing is kept
}

// open finds the folder and reads the cells that it has. Without resume they are
// removed.
func (r *journal[C]) open(name, results string, kind rig.RunKind, earlier earlierCells) error {
	folder, err := rig.ResultsFolder(results, kind)
	if err != nil {
		return err
	}
	bench, path := "attention "+name, ""
	if folder != "" {
		path = filepath.Join(folder, "attention-"+name+".jsonl")
		r.page = filepath.Join(folder, "attention-"+name+".md")
	}
	if earlier == removed {
		r.Journal = rig.Journal[C]{Bench: bench, Path: path}
		return r.Forget()
	}
	read, err := rig.ReadJournal[C](bench, path)
	if err != nil {
		return err
	}
	r.Journal = *read
	return nil
}

// earlierCells says what becomes of the cells that a file holds already.
type earlierCells int

const (
	removed earlierCells = iota
	kept
)

// resumed returns kept for the flag --resume.
func resumed(flag bool) earlierCells {
	if flag {
		return kept
	}
	return removed
}

// cells returns the figures of the records that keep accepts; nil accepts all.
func (r *journal[C]) cells(keep func(*C) bool) (cells []*C) {
	for i := range r.Records {
		if c := &r.Records[i].Figures; keep == nil || keep(c) {
			cells = append(cells, c)
		}
	}
	return cells
}

// has reports whether a cell is there already.
func (r *journal[C]) has(is func(*C) bool) bool { return len(r.cells(is)) > 0 }

// keep adds a cell, and says so on standard error by its line of the page.
func (r *journal[C]) keep(c *C, line string) error {
	fmt.Fprint(os.Stderr, line)
	return r.Add(*c)
}

// publish writes the page to out, and into the folder of results.
func (r *journal[C]) publish(out io.Writer, page string) error {
	if _, err := io.WriteString(out, page); err != nil || r.page == "" {
		return err
	}
	return rig.WritePage(r.page, page)
}
