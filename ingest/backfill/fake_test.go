package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"entropipe/ingest/replay"
	"entropipe/schemas"
	"entropipe/sinks/record"
)

// shelf is an Archive in memory: items and files by number, which need not exist.
type shelf struct {
	root   string
	inputs []shelfInput
	stats  atomic.Int64
	// stat takes the place of the file's own state; may be nil.
	stat func(path string) (replay.File, error, bool)
}

// shelfInput is one input. In each of its files lie perFile items; 0: they lie in one
// file that all of them need.
type shelfInput struct {
	name    string
	items   int64
	perFile int64
	size    int64 // of a file
	listed  bool  // the input has a list of its files
	bad     map[int64]bool
}

func (in *shelfInput) file(root string, i int64) string {
	return filepath.Join(root, in.name, "data", fmt.Sprintf("%06d.bin", i/max(in.perFile, 1)))
}

func (in *shelfInput) files() int64 {
	if in.perFile == 0 {
		return 0
	}
	return (in.items + in.perFile - 1) / in.perFile
}

func (a *shelf) Parts(_ context.Context, f func(*replay.Part) error) error {
	for k := range a.inputs {
		in := &a.inputs[k]
		p := &replay.Part{Items: in.items, Frames: 3 * in.items,
			Input:  replay.Input{Format: "shelf", Path: filepath.Join(a.root, in.name), Sequence: in.name},
			Common: []string{filepath.Join(a.root, in.name, "times.txt")}}
		if in.perFile > 0 {
			one := make([]string, 1)
			p.Of = func(i int64) []string { one[0] = in.file(a.root, i); return one }
			for i := int64(0); in.listed && i < in.files(); i++ {
				p.Input.Files = append(p.Input.Files, fmt.Sprintf("data/%06d.bin", i))
			}
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

func (a *shelf) Counts() replay.Counts { return replay.Counts{Files: a.stats.Load()} }

func (a *shelf) input(path string) *shelfInput {
	for k := range a.inputs {
		if in := &a.inputs[k]; strings.HasPrefix(path, filepath.Join(a.root, in.name)+"/") ||
			path == filepath.Join(a.root, in.name) {
			return in
		}
	}
	return nil
}

func (a *shelf) Stat(_ context.Context, path string, sum bool) (replay.File, error) {
	a.stats.Add(1)
	if a.stat != nil {
		if f, err, ok := a.stat(path); ok {
			return f, err
		}
	}
	in := a.input(path)
	if in == nil {
		return replay.File{}, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
	}
	f := replay.File{Path: path, Size: in.size, ModTime: 1_700_000_000_000_000_000}
	if sum {
		f.SHA256 = record.PartHash([]byte(filepath.Base(path)))
	}
	return f, nil
}

func (a *shelf) Open(_ context.Context, in replay.Input, from int64) (replay.Source, error) {
	of := a.input(in.Path)
	if of == nil {
		return nil, errors.New("no such input")
	}
	if of.listed && int64(len(in.Files)) != of.files() {
		return nil, fmt.Errorf("%d files, not %d", len(in.Files), of.files())
	}
	return &shelfSource{shelf: a, in: of, at: from}, nil
}

// shelfSource yields "<input>/<position>" as value.
type shelfSource struct {
	*shelf
	in      *shelfInput
	at      int64
	skipped int64
	shift   int64 // positions by which its files have moved
}

func (s *shelfSource) Next(*replay.Item) error { return errors.New("unused") }
func (s *shelfSource) Rewind() error           { return errors.New("unused") }
func (s *shelfSource) Close() error            { return nil }
func (s *shelfSource) Skipped() int64          { return s.skipped }

func (s *shelfSource) FilesOf(i int64) []string {
	if s.in.perFile == 0 || i >= s.in.items {
		return nil
	}
	return []string{s.in.file(s.root, i+s.shift)}
}

// shelfMessages makes messages of a shelfSource.
type shelfMessages struct{ *shelfSource }

func (m shelfMessages) Next(buffer []byte) (replay.Sent, error) {
	for m.in.bad[m.at] {
		m.skipped++
		m.at++
	}
	if m.at >= m.in.items {
		return replay.Sent{}, io.EOF
	}
	value := fmt.Appendf(buffer[:0], "%s/%d", m.in.name, m.at)
	r := &schemas.Record{Key: []byte(m.in.name), Value: value,
		Headers: []schemas.Header{{Key: "number", Value: fmt.Append(nil, m.at)}}}
	m.at++
	return replay.Sent{Record: r, Position: m.at - 1, TimeNs: m.at * 100_000_000, Frames: 3}, nil
}

func shelfOpener(a *shelf, p *record.Plan, store *parts) *Opener {
	return &Opener{Plan: p, Store: store, Archive: a, Messages: func(s replay.Source) (Messages, error) {
		return shelfMessages{s.(*shelfSource)}, nil
	}}
}

// planOf builds the plan of a shelf into memory.
func planOf(t testing.TB, a *shelf, opt Options) (*record.Plan, *parts) {
	t.Helper()
	if opt.Roots == nil {
		opt.Roots = []string{a.root}
	}
	store := newParts()
	p, err := Build(t.Context(), a, opt, Into(store))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.ParsePlan(record.PlanName(p.Name), record.Encode(p)); err != nil {
		t.Fatal(err)
	}
	return p, store
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }
