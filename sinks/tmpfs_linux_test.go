package sinks_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// A real disk that runs full: the run stops with an error that says so, leaves
// no staging behind, and goes on when there is room again.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer syscall.Unmount(dir, 0)
	s, err := sinks.OpenLocal(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const end = 1000
	var full error
	w := sinktest.Writer{Store: s, End: end, Roll: sinktest.Roll(40), Tables: []string{tables.Hulls},
		Fail: func(err error) error {
			if full = err; !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%v, want ENOSPC", err)
			}
			if left := namesIn(t, s, record.StagingFolder); len(left) > 0 {
				t.Errorf("%q is left in staging", left)
			}
			if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=64m"); err != nil {
				return err
			}
			return nil
		}}
	if err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if full == nil {
		t.Error("the file system never ran full")
	}
	sinktest.MustBeWhole(t, s, 0, end)
}

// A table on a disk of its own, mounted or linked, is one clear error; when that
// is undone what was committed is there.
func TestTableOnARealOtherFileSystem(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(frames string) error
		undo func(frames string) error
		says string
	}{
		"mounted": {
			func(frames string) error {
				if err := os.Mkdir(frames, 0o755); err != nil {
					return err
				}
				return syscall.Mount("tmpfs", frames, "tmpfs", 0, "size=256k")
			},
			func(frames string) error { return syscall.Unmount(frames, 0) },
			"on one file system",
		},
		"linked": {
			func(frames string) error { return os.Symlink(filepath.Dir(filepath.Dir(frames)), frames) },
			os.Remove,
			"escapes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			s, err := sinks.OpenLocal(out)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			frames := filepath.Join(out, tables.Frames)
			if err := c.put(frames); errors.Is(err, os.ErrPermission) {
				t.Skipf("nothing can be mounted here: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			undone := false
			defer func() {
				if !undone {
					c.undo(frames)
				}
			}()
			w := sinktest.Writer{Store: s, End: 10, Roll: sinktest.Roll(5), Fail: sinktest.IsCrash}
			if err := w.Run(context.Background()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want one that says %q", err, c.says)
			}
			if undone = true; c.undo(frames) != nil {
				t.Fatal("it cannot be undone")
			}
			again, err := sinks.OpenExisting(out)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			sinktest.TakeOver(t, again, 0, 10, 5)
			sinktest.MustBeWhole(t, again, 0, 10)
		})
	}
}
