//go:build unix

package disk

import (
	"strconv"
	"syscall"
)

// Inode returns the inode number of a file in decimal; "": its file system may change it.
func (d Folder) Inode(name string) (string, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !lastingInodes(f) {
		return "", nil
	}
	return strconv.FormatUint(uint64(stat.Ino), 10), nil
}
