package sinks_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// deniedDisk refuses to make names in one folder, in the way of a mode or of a
// mount.
type deniedDisk struct {
	*sinktest.MemDisk
	folder string
	err    error
	asked  []string
}

func (d *deniedDisk) Create(name string) (disk.File, error) {
	if path.Dir(name) == d.folder {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: d.err}
	}
	return d.MemDisk.Create(name)
}

func (d *deniedDisk) Writable(folder string) error {
	d.asked = append(d.asked, folder)
	if folder == d.folder {
		return d.err
	}
	return nil
}

// Law: processes that begin at the same time do not take each other's tries for a file system
// that cannot be trusted.
func TestManyCheckWhetherTheyCanWrite(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		l, err := sinks.OpenLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer l.Close()
			for range 30 {
				if err := l.CheckWritable(t.Context(), tables.Names()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// Law: wherever in an output a commit would fail, it is said before one is tried,
// by the folder's name; the look leaves nothing behind and reads no list of files.
func TestFolderThatCannotBeWrittenIsFound(t *testing.T) {
	d := &deniedDisk{MemDisk: sinktest.NewMemDisk()}
	w := sinktest.Writer{Store: sinktest.MemStore(d), End: 40, Roll: sinktest.Roll(10), Tables: []string{tables.Hulls}}
	if err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.ErrInvalid; d.Mkdir("mine") != nil || d.Mkdir("mine/deep") != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	for name := range d.Live.Files {
		before[name] = true
	}
	if err := sinktest.MemStore(d).CheckWritable(t.Context(), tables.Names()); err != nil {
		t.Fatalf("an output that can be written: %v", err)
	}
	folders := append([]string{record.StagingFolder}, d.asked...)
	for _, want := range []string{".", "_commits", "_commits/topics"} {
		if !strings.Contains(" "+strings.Join(folders, " ")+" ", " "+want+" ") {
			t.Errorf("nobody asked about %s, but about %q", want, folders)
		}
	}
	asked := 0
	for _, folder := range folders {
		if strings.HasPrefix(folder, "mine") {
			t.Errorf("%s is no part of the output", folder)
		}
		if strings.HasPrefix(folder, "hulls/") || strings.HasPrefix(folder, "frames/") {
			asked++
		}
	}
	if asked < 4 {
		t.Errorf("%d folders of tables were asked about: %q", asked, folders)
	}
	for _, cause := range []error{syscall.EACCES, syscall.EROFS} {
		for _, folder := range folders {
			d.folder, d.err = folder, cause
			err := sinktest.MemStore(d).CheckWritable(t.Context(), tables.Names())
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), path.Join("mem", folder)+" cannot be written") {
				t.Errorf("%s with %v: %v", folder, cause, err)
			}
		}
	}
	d.folder = ""
	for name := range d.Live.Files {
		if !before[name] {
			t.Errorf("%s was left behind", name)
		}
	}
	// What a crash leaves of the look, the next one takes away.
	if _, err := d.Create(record.StagingFolder + "/" + record.NewPrefix + "store.json-" +
		record.NewUUID()); err != nil {
		t.Fatal(err)
	}
	if err := sinktest.MemStore(d).CheckWritable(t.Context(), tables.Names()); err != nil ||
		len(d.Live.Files) != len(before) {
		t.Errorf("%d files after a crash during the look, want %d; %v", len(d.Live.Files), len(before), err)
	}
}

// The same with the modes of real folders, which mean nothing to root.
func TestFolderWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere: modes of folders mean nothing")
	}
	out := filepath.Join(t.TempDir(), "out")
	s, err := sinks.OpenLocal(out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := sinktest.Writer{Store: s, End: 40, Roll: sinktest.Roll(10), Tables: []string{tables.Hulls}}
	if err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(out, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || strings.HasPrefix(name, filepath.Join(out, record.StagingFolder)+"/") {
			return err
		}
		if err := os.Chmod(name, 0o555); err != nil {
			return err
		}
		if err := s.CheckWritable(t.Context(), tables.Names()); !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(err.Error(), name+" cannot be written") {
			t.Errorf("%s: %v", name, err)
		}
		return os.Chmod(name, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckWritable(t.Context(), tables.Names()); err != nil {
		t.Errorf("with the permission back: %v", err)
	}
}
