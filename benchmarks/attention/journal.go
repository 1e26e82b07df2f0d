package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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

func (r *journal[C]) read() error {
	f, err := os.Open(r.path("jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c C
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("%s: %w", r.path("jsonl"), err)
		}
		r.cells = append(r.cells, &c)
	}
	return lines.Err()
}
