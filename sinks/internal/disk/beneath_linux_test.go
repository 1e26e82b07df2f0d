package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Law: a name opens what os.Root opens, or fails as that does: links within the folder, out of it,
// absolute ones, in circles, files in the place of folders.
func TestNamesOpenWhatRootOpens(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "out")
	put := func(name string) error {
		return os.WriteFile(filepath.Join(top, name), []byte(name), 0o644)
	}
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o755),
		put("secret"), put("out/a/b/file"), put("out/file"),
		os.Symlink("b", filepath.Join(dir, "a/inner")), os.Symlink("../file", filepath.Join(dir, "a/up")),
		os.Symlink("../../secret", filepath.Join(dir, "a/out")),
		os.Symlink(filepath.Join(top, "secret"), filepath.Join(dir, "absolute")),
		os.Symlink(dir+"/file", filepath.Join(dir, "own")), os.Symlink("..", filepath.Join(dir, "parent")),
		os.Symlink("loop", filepath.Join(dir, "loop")), os.Symlink("nothing", filepath.Join(dir, "dangling")),
		os.Symlink("/proc/self/cwd", filepath.Join(dir, "magic")))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	opened := 0
	for _, name := range []string{"file", "a/b/file", "a/inner/file", "a/up", "a/out", "absolute", "own",
		"parent/secret", "parent/out/file", "loop", "dangling", "magic", "nothing", "a/nothing", "file/file", "a", ".",
		"", "..", "../secret", "/etc/passwd", "a/../file", "a/b/../../file", "a//b/file", "file\x00"} {
		got, err := d.open(name)
		want, wantErr := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%q: %v, os.Root says %v", name, err, wantErr)
		}
		if got != nil && want != nil {
			opened++
			a, aErr := got.Stat()
			b, bErr := want.Stat()
			if aErr != nil || bErr != nil || !os.SameFile(a, b) {
				t.Errorf("%q: %v and %v are two files, %v, %v", name, a, b, aErr, bErr)
			}
		}
		got.Close()
		want.Close()
	}
	if opened < 6 {
		t.Errorf("%d names were opened", opened)
	}
}

// A pipe in a file's place is an error, and not waited for.
func TestPipesAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Skip(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if o, err := d.Open("pipe"); err == nil {
		o.Close()
		t.Error("a pipe was opened")
	}
	if _, err := d.Open("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
