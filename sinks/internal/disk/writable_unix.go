//go:build unix

package disk

import (
	"path/filepath"
	"syscall"
)

// writable asks the system whether this process may make names in a folder.
func (d Folder) Writable(folder string) error {
	const writeAndSearch = 2 | 1
	return syscall.Access(filepath.Join(d.root.Name(), filepath.FromSlash(folder)), writeAndSearch)
}
