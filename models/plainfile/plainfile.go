// Package plainfile opens regular files by names that users give. Opening a pipe
// blocks until its other end is open, and signals do not interrupt it; a device may
// never end; neither has a size that bounds the memory of a reader. So a name must be
// that of a regular file or of a link to one.
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

// Open opens a regular file. For anything else Open returns an *fs.PathError with a
// NotRegularError, without blocking.
func Open(path string) (*os.File, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	f, _, err := OpenListed(path)
	return f, err
}

// OpenListed is Open for a file that was regular a moment ago, as its folder lists it: OpenListed
// asks the file system once less. It returns what the open file is.
func OpenListed(path string) (*os.File, fs.FileInfo, error) {
	// The file may have been replaced since: a pipe is opened without a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Read returns the bytes of a regular file. Read returns a *TooLongError for a file of
// more than most bytes, before allocating memory.
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
		return nil, fmt.Errorf("%s: the file became shorter while it was read: %w", path, err)
	}
	return data, nil
}

// ReadText returns the bytes of a regular file or of a pipe, such as a shell makes for
// <(…). ReadText returns a *TooLongError for more than most bytes, and an error, without
// blocking, for a pipe that has no writer.
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

// FS is os.DirFS for regular files and folders. Opening anything else fails.
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

// Stat implements fs.StatFS without opening the file.
func (p plainFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(p.FS, name) }

// ReadDir implements fs.ReadDirFS.
func (p plainFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(p.FS, name) }

// stat is os.Stat with the error that opening the file would return.
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

// NotRegularError is the kind of a file that is not regular, such as "a pipe".
type NotRegularError string

func (e NotRegularError) Error() string { return "is " + string(e) + ", not a regular file" }

// TooLongError is the error for a file of more than Most bytes.
type TooLongError struct {
	Path string
	Most int64
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%s: more than %d bytes", e.Path, e.Most)
}
