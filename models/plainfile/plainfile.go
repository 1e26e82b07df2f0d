// Package plainfile opens files by names that users give. Opening a pipe waits
// for its other end, a device may have no end, and neither has a size by which a
// reader could bound what it takes; signals do not interrupt such a wait. So a
// name must be a regular file's, or a link's to one.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Open opens a regular file. What else the name is of, is an *fs.PathError that
// says so; it is found out without waiting.
func Open(path string) (*os.File, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	// The file may have been replaced since: a pipe is opened without a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = check(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read returns the bytes of a regular file of at most so many; its size is known
// before memory is taken.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &TooLongError{path, most}
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("%s: became shorter while it was read: %w", path, err)
	}
	return data, nil
}

// ReadText returns the bytes of a small file that may also be a pipe, as shells
// make for <(…): at most so many. A pipe that nobody writes to is an error
// instead of a wait.
func ReadText(path string, most int64) ([]byte, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	pipe := info.Mode()&fs.ModeNamedPipe != 0
	if err := check(path, info); err != nil && !pipe {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, &TooLongError{path, most}
	case pipe && len(data) == 0:
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is a pipe that nobody writes to")}
	}
	return data, nil
}

// FS is os.DirFS for regular files and folders: what is neither cannot be opened.
func FS(dir string) fs.FS { return plainFS{os.DirFS(dir), dir} }

type plainFS struct {
	fs.FS
	dir string
}

func (p plainFS) Open(name string) (fs.File, error) {
	if info, err := fs.Stat(p.FS, name); err != nil || info.IsDir() {
		return p.FS.Open(name)
	}
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return Open(filepath.Join(p.dir, filepath.FromSlash(name)))
}

// Stat implements fs.StatFS: nothing is opened.
func (p plainFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(p.FS, name) }

// ReadDir implements fs.ReadDirFS.
func (p plainFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(p.FS, name) }

// stat is os.Stat in the words of who wanted to open the file.
func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = &fs.PathError{Op: "open", Path: path, Err: failed.Err}
	}
	return info, err
}

func check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	kind := "a device"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return &fs.PathError{Op: "open", Path: path, Err: NotRegularError(kind)}
}

// NotRegularError is the reason why a file is not opened: what it is instead of
// a regular file.
type NotRegularError string

func (e NotRegularError) Error() string { return "is " + string(e) + ", not a regular file" }

// TooLongError says that a file has more bytes than its reader takes.
type TooLongError struct {
	Path string
	Most int64
}

func (e *TooLongError) Error() string { return fmt.Sprintf("%s: more than %d bytes", e.Path, e.Most) }
