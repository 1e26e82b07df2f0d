package sinks

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// A real disk that runs full: the run stops with an error that says so, leaves
// no staging behind, and goes on when there is room again.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer syscall.Unmount(dir, 0)
	s, err := OpenLocal(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const end = 1000
	var full error
	w := writer{store: s, end: end, roll: roll(40), cfg: Config{Tables: []string{tableHulls}}, fail: func(err error) error {
		if full = err; !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v, want ENOSPC", err)
		}
		if left := namesIn(t, s, stagingFolder); len(left) > 0 {
			t.Errorf("%q is left in staging", left)
		}
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=64m"); err != nil {
			return err
		}
		return nil
	}}
	if err := w.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if full == nil {
		t.Error("the file system never ran full")
	}
	mustBeWhole(t, s, 0, end)
}
