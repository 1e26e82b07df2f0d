package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"entropipe/benchmarks/rig"
)

// journal keeps cells in a file, each as soon as it is measured.
type journal[C any] struct {
	folder, name string // folder is empty: nothing is kept
	cells        []*C
}

// open finds the folder, forgets earlier cells unless resume, and reads what is
// left.
func (r *journal[C]) open(name, results string, quick, resume bool) error {
	r.name = name
	switch {
	case results == "-", results == "" && quick:
		return nil
	case results != "":
		r.folder = results
	default:
		root, err := rig.Root()
		if err != nil {
			return err
		}
		r.folder = filepath.Join(root, "benchmarks", "results")
	}
	if err := os.MkdirAll(r.folder, 0o777); err != nil {
		return err
	}
	if !resume {
		if err := os.Remove(r.path("jsonl")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return r.read()
}

func (r *journal[C]) path(ending string) string {
	return filepath.Join(r.folder, r.name+"."+ending)
}

// keep adds a cell, and a line to the file.
func (r *journal[C]) keep(c *C) error {
	r.cells = append(r.cells, c)
	if r.folder == "" {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path("jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// publish writes the table to out, and beside the cells.
func (r *journal[C]) publish(out io.Writer, table string) error {
	if _, err := io.WriteString(out, table); err != nil || r.folder == "" {
		return err
	}
	return os.WriteFile(r.path("md"), []byte(table), 0o666)
}

// read takes the cells of the file. A last line that a kill has cut is dropped,
// in the file too, or the next cell would stand behind it.
func (r *journal[C]) read() error {
	path := r.path("jsonl")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if whole := bytes.LastIndexByte(data, '\n') + 1; whole < len(data) {
		data = data[:whole]
		if err := os.Truncate(path, int64(whole)); err != nil {
			return err
		}
	}
	for line := range bytes.Lines(data) {
		var c C
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.cells = append(r.cells, &c)
	}
	return nil
}
