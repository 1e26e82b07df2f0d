package sinks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// deniedDisk refuses to make names in one folder, in the way of a mode or of a
// mount.
type deniedDisk struct {
	*memDisk
	folder string
	err    error
	asked  []string
}

func (d *deniedDisk) create(name string) (diskFile, error) {
	if path.Dir(name) == d.folder {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: d.err}
	}
	return d.memDisk.create(name)
}

func (d *deniedDisk) writable(folder string) error {
	d.asked = append(d.asked, folder)
	if folder == d.folder {
		return d.err
	}
	return nil
}

// Law: wherever in an output a commit would fail, it is said before one is tried,
// by the folder's name; the look leaves nothing behind and reads no list of files.
func TestFolderThatCannotBeWrittenIsFound(t *testing.T) {
	d := &deniedDisk{memDisk: newMemDisk()}
	w := writer{store: memStore(d), end: 40, roll: roll(10), cfg: Config{Tables: []string{tableHulls}}}
	if err := w.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.ErrInvalid; d.mkdir("mine") != nil || d.mkdir("mine/deep") != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	for name := range d.live.files {
		before[name] = true
	}
	if err := memStore(d).CheckWritable(); err != nil {
		t.Fatalf("an output that can be written: %v", err)
	}
	folders := append([]string{stagingFolder}, d.asked...)
	for _, want := range []string{".", "_commits", "_commits/topics"} {
		if !strings.Contains(" "+strings.Join(folders, " ")+" ", " "+want+" ") {
			t.Errorf("nobody asked about %s, but about %q", want, folders)
		}
	}
	tables := 0
	for _, folder := range folders {
		if strings.HasPrefix(folder, "mine") {
			t.Errorf("%s is no part of the output", folder)
		}
		if strings.HasPrefix(folder, "hulls/") || strings.HasPrefix(folder, "frames/") {
			tables++
		}
	}
	if tables < 4 {
		t.Errorf("%d folders of tables were asked about: %q", tables, folders)
	}
	for _, cause := range []error{syscall.EACCES, syscall.EROFS} {
		for _, folder := range folders {
			d.folder, d.err = folder, cause
			err := memStore(d).CheckWritable()
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), path.Join("mem", folder)+" cannot be written") {
				t.Errorf("%s with %v: %v", folder, cause, err)
			}
		}
	}
	d.folder = ""
	for name := range d.live.files {
		if !before[name] {
			t.Errorf("%s was left behind", name)
		}
	}
	// What a crash leaves of the look, the next one takes away.
	if _, err := d.create(stagingFolder + "/" + aside + "store.json-" + newUUID()); err != nil {
		t.Fatal(err)
	}
	if err := memStore(d).CheckWritable(); err != nil || len(d.live.files) != len(before) {
		t.Errorf("%d files after a crash during the look, want %d; %v", len(d.live.files), len(before), err)
	}
}

// The same with the modes of real folders, which mean nothing to root.
func TestFolderWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere: modes of folders mean nothing")
	}
	out := filepath.Join(t.TempDir(), "out")
	s, err := OpenLocal(out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := writer{store: s, end: 40, roll: roll(10), cfg: Config{Tables: []string{tableHulls}}}
	if err := w.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(out, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || strings.HasPrefix(name, filepath.Join(out, stagingFolder)+"/") {
			return err
		}
		if err := os.Chmod(name, 0o555); err != nil {
			return err
		}
		if err := s.CheckWritable(); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), name+" cannot be written") {
			t.Errorf("%s: %v", name, err)
		}
		return os.Chmod(name, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckWritable(); err != nil {
		t.Errorf("with the permission back: %v", err)
	}
}
