package sinks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// What a folder of another output can be in the way of links: the files are then copied,
// or, where they are not in that folder at all, computed.
func TestAdoptFromRealFolders(t *testing.T) {
	for name, c := range map[string]struct {
		shm    bool // the other output is on another file system
		harm   func(t *testing.T, dir string)
		linked bool
		copied bool
		why    string
	}{
		"as it is":            {harm: func(*testing.T, string) {}, linked: true},
		"another file system": {shm: true, harm: func(*testing.T, string) {}, copied: true},
		"a table linked within the output": {harm: func(t *testing.T, dir string) {
			moved(t, filepath.Join(dir, tables.Hulls), filepath.Join(dir, "elsewhere"))
		}, linked: true},
		"a file linked within the output": {harm: func(t *testing.T, dir string) {
			moved(t, firstFile(t, dir, tables.Hulls), filepath.Join(dir, "elsewhere"))
		}, linked: true, copied: true},
		"a table linked out of the output": {harm: func(t *testing.T, dir string) {
			moved(t, filepath.Join(dir, tables.Hulls), filepath.Join(filepath.Dir(dir), "outside"))
		}, why: "escapes"},
		"a folder in a file's place": {harm: func(t *testing.T, dir string) {
			file := firstFile(t, dir, tables.Hulls)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(file, 0o755); err != nil {
				t.Fatal(err)
			}
		}, why: "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			if c.shm {
				parent = otherFileSystem(t)
			}
			from, err := sinks.OpenLocal(filepath.Join(parent, "old"))
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			former(t, from)
			c.harm(t, from.String())
			to, err := sinks.OpenLocal(filepath.Join(t.TempDir(), "new"))
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			w := adopter(to, from)
			if err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a := w.Adopted[0]; a.Linked > 0 != c.linked || a.Copied > 0 != c.copied ||
				(a.Why == "") != (c.why == "") || !strings.Contains(a.Why, c.why) {
				t.Errorf("%+v, want linked %t, copied %t, %q", a, c.linked, c.copied, c.why)
			}
			sinktest.MustBeWhole(t, to, 0, adoptEnd)
			for _, name := range namesIn(t, to, ".") {
				if info, err := os.Lstat(filepath.Join(to.String(), name)); err != nil || !info.Mode().IsRegular() {
					t.Errorf("%s is no regular file (%v)", name, err)
				}
			}
			if err := os.RemoveAll(parent); err != nil {
				t.Fatal(err)
			}
			sinktest.MustBeWhole(t, to, 0, adoptEnd)
		})
	}
}

// moved moves a file or folder and leaves a symbolic link in its place.
func moved(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	target, err := filepath.Rel(filepath.Dir(from), to)
	if err == nil {
		err = os.Symlink(target, from)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// firstFile returns a file of a table.
func firstFile(t *testing.T, dir, table string) string {
	t.Helper()
	s, err := sinks.OpenExisting(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range namesIn(t, s, table) {
		if strings.HasSuffix(name, record.DataSuffix) {
			return filepath.Join(dir, name)
		}
	}
	t.Fatalf("no file of %s", table)
	return ""
}

// otherFileSystem returns a folder on another file system than temporary files.
func otherFileSystem(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "entropipe-test-")
	if err != nil {
		t.Skipf("there is no memory file system: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	probe := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Link(probe, filepath.Join(dir, "probe")) == nil {
		t.Skip("temporary files are on the same file system")
	}
	return dir
}
