package sinks

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// disk is the file system under a Local store: the calls whose order and
// durability the commit protocol depends on. The tests have one that forgets
// what was not fsynced. Names are slash-separated and relative to the root.
type disk interface {
	diskFiles
	diskNames
	diskFolders
	diskLists
}

type diskFiles interface {
	create(name string) (diskFile, error) // fails with fs.ErrExist
	open(name string) (Object, error)
	size(name string) (int64, error)
}

type diskNames interface {
	link(from, to string) error // fails with fs.ErrExist
	rename(from, to string) error
	remove(name string) error // a file or an empty folder
}

type diskFolders interface {
	mkdir(name string) error // fails with fs.ErrExist
	syncDir(name string) error
}

type diskLists interface {
	readDir(name string) ([]fs.DirEntry, error) // sorted by name
	names(name string) ([]string, error)        // in no order: of a large folder in a fraction of the time
}

// diskFile is a file being written.
type diskFile interface {
	io.Writer
	Sync() error
	Close() error
}

// osDisk is a folder of the operating system. No name leads out of it, not
// even through a symbolic link.
type osDisk struct{ root *os.Root }

func (d osDisk) create(name string) (diskFile, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d osDisk) open(name string) (Object, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in a file's place is not waited for
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return osObject{f, info.Size()}, nil
}

type osObject struct {
	*os.File
	size int64
}

func (o osObject) Size() int64 { return o.size }

func (d osDisk) size(name string) (int64, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (d osDisk) link(from, to string) error   { return d.root.Link(from, to) }
func (d osDisk) rename(from, to string) error { return d.root.Rename(from, to) }
func (d osDisk) remove(name string) error     { return d.root.Remove(name) }
func (d osDisk) mkdir(name string) error      { return d.root.Mkdir(name, 0o755) }

func (d osDisk) syncDir(name string) error {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in a file's place is not waited for
	if err != nil {
		return err
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (d osDisk) readDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(d.root.FS(), name)
}

func (d osDisk) names(name string) ([]string, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in a file's place is not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
