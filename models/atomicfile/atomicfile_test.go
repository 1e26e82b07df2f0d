package atomicfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// A write that fails in the middle leaves what was there, and no other file.
func TestAFailureLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := Write(path, text("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Write(path, func(w io.Writer) error {
		w.Write(make([]byte, 1<<20))
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("%q, %v", b, err)
	}
	if err := Write(dir, text("a folder's place")); err == nil {
		t.Error("a folder was replaced")
	}
	absent := filepath.Join(dir, "absent", "f")
	if err := Write(absent, text("")); err == nil || !strings.HasPrefix(err.Error(), "open "+absent+": ") {
		t.Errorf("into a folder that is not there: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Readers and other writers meet whole files only.
func TestWritersDoNotMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := Write(path, text("a")); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for c := range byte(4) {
		wait.Go(func() {
			for range 10 {
				err := Write(path, func(w io.Writer) error {
					for range 100_000 {
						if _, err := w.Write([]byte{'a' + c}); err != nil {
							return err
						}
					}
					return nil
				})
				b, failed := os.ReadFile(path)
				if err != nil || failed != nil || len(b) != 100_000 || len(bytes.Trim(b, string(b[:1]))) > 0 {
					t.Errorf("%d bytes, %v, %v", len(b), err, failed)
				}
			}
		})
	}
	wait.Wait()
}

// A file that is made by name comes whole or not at all, and leaves nothing beside it.
func TestMake(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	build := func(text string, err error) func(string) error {
		return func(aside string) error {
			if filepath.Dir(aside) != dir || aside == path {
				t.Errorf("%s is aside of %s", aside, path)
			}
			return errors.Join(os.WriteFile(aside, []byte(text), 0o666), err)
		}
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		text string
		err  error
		want string
	}{{"half", broken, ""}, {"old", nil, "old"}, {"half", broken, "old"}, {"new", nil, "new"}} {
		if err := Make(path, build(c.text, c.err)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.text, err, c.err)
		}
		if got, _ := os.ReadFile(path); string(got) != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
		if entries, err := os.ReadDir(dir); len(entries) != min(1, len(c.want)) || err != nil {
			t.Errorf("%s: %v, %v", c.text, entries, err)
		}
	}
	if err := Make(path, func(string) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was made: %v", err)
	}
}
