//go:build unix

package disk

import (
	"path/filepath"
	"syscall"
)

// Writable returns an error if this process may not create names in a folder.
func (d Folder) Writable(folder string) error {
	const writeAndSearch = 2 | 1
	return syscall.Access(filepath.Join(d.root.Name(), filepath.FromSlash(folder)), writeAndSearch)
}
