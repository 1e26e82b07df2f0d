//go:build unix

package replay

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe would wait for somebody who writes into it.
func TestPipeIsNoScan(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "0.bin"), 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	s := open(t, KITTI{Dir: dir})
	var it Item
	failsWith(t, s.Next(&it), "0.bin: not a regular file")
}
