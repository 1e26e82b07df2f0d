// Package disk is the file system under a local store, in the calls on whose order
// and durability the commit protocol depends.
//
// It is not a store: it knows no records, staging or tables. Package sinktest has other
// disks: one in memory that loses unsynced data in a crash, and one whose calls fail
// when a test asks for it.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Disk is the file system under a local store. Names are slash-separated and relative
// to its root. All methods may be called concurrently.
type Disk interface {
	fileCalls
	nameCalls
	folderCalls
	listCalls
}

type fileCalls interface {
	Create(name string) (File, error) // fails with fs.ErrExist
	Open(name string) (Object, error)
	Size(name string) (int64, error)
}

type nameCalls interface {
	Link(from, to string) error // fails with fs.ErrExist
	Rename(from, to string) error
	Remove(name string) error // removes a file or an empty folder
}

type folderCalls interface {
	Mkdir(name string) error // fails with fs.ErrExist
	SyncDir(name string) error
}

type listCalls interface {
	ReadDir(name string) ([]fs.DirEntry, error) // sorted by name
	Names(name string) ([]string, error)        // unordered; much faster than ReadDir for large folders
}

// Object is a file that is open for reading.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// File is a file being written.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Folder is a Disk in a folder of the operating system. No name leads out of the
// folder, not even through a symbolic link.
type Folder struct {
	root *os.Root
	self *os.File // the folder of root, for calls that os.Root does not have
}

// Open opens a folder, which must exist.
func Open(dir string) (Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Folder{}, err
	}
	self, err := root.Open(".")
	if err != nil {
		root.Close()
		return Folder{}, err
	}
	return Folder{root, self}, nil
}

// Close releases the folder.
func (d Folder) Close() error { return errors.Join(d.root.Close(), d.self.Close()) }

func (d Folder) Create(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d Folder) Open(name string) (Object, error) {
	f, err := d.open(name)
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

// open opens a file for reading, if it can with one call of the system.
func (d Folder) open(name string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK // a pipe in a file's place is not waited for
	if f := openBeneath(d.self, name, flags); f != nil {
		return f, nil
	}
	return d.root.OpenFile(name, flags, 0)
}

type osObject struct {
	*os.File
	size int64
}

func (o osObject) Size() int64 { return o.size }

func (d Folder) Size(name string) (int64, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (d Folder) Link(from, to string) error   { return d.root.Link(from, to) }
func (d Folder) Rename(from, to string) error { return d.root.Rename(from, to) }
func (d Folder) Remove(name string) error     { return d.root.Remove(name) }
func (d Folder) Mkdir(name string) error      { return d.root.Mkdir(name, 0o755) }

func (d Folder) SyncDir(name string) error {
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

func (d Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(d.root.FS(), name)
}

func (d Folder) Names(name string) ([]string, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in a file's place is not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
