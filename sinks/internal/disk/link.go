package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// unlinkable are the answers of systems that do not link a file although it is there:
// it is on another file system or mount, belongs to another user (Linux with
// protected_hardlinks), has the largest number of names, or the file system has no
// hard links. A copy may succeed.
var unlinkable = []syscall.Errno{syscall.EXDEV, syscall.EPERM, syscall.EACCES, syscall.EMLINK, syscall.ENOTSUP,
	syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.ENOENT, syscall.EINVAL}

// LinkFrom gives a file of another disk, which is open as object, a name in this one.
// An error that wraps errors.ErrUnsupported: the file cannot have a name here, and
// nothing was done. The new name stands for the opened file, also if another file
// takes its old name meanwhile, or if that is a symbolic link.
func (d Folder) LinkFrom(from Disk, object Object, name, to string) error {
	other, ok := from.(Folder)
	opened, isFile := object.(osObject)
	if !ok || !isFile {
		return errors.ErrUnsupported
	}
	full := func(d Folder, name string) string { return filepath.Join(d.root.Name(), filepath.FromSlash(name)) }
	if err := os.Link(full(other, name), full(d, to)); err != nil {
		if slices.ContainsFunc(unlinkable, func(e syscall.Errno) bool { return errors.Is(err, e) }) {
			return errors.Join(errors.ErrUnsupported, err)
		}
		return err
	}
	same, err := d.same(opened.File, to)
	if same || err != nil {
		return err
	}
	if err := d.root.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.ErrUnsupported
}

// same tells whether name, not followed if it is a symbolic link, is the open file f.
func (d Folder) same(f *os.File, name string) (bool, error) {
	want, err := f.Stat()
	if err != nil {
		return false, err
	}
	got, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // the folder was moved, and its path leads elsewhere
		return false, nil
	}
	return err == nil && os.SameFile(want, got), err
}
