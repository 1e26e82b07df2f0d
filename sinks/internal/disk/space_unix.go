//go:build linux || darwin

package disk

import "syscall"

// Space returns the bytes that a process without privileges may still write to the
// file system of the folder, and its size. ok is false if the folder cannot be opened.
func (d Folder) Space() (free, size int64, ok bool) {
	f, err := d.root.Open(".")
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil {
		return 0, 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize), true
}
