// Package atomicfile writes files atomically: a reader finds the old content or the
// new content, also after a crash.
package atomicfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of path by the bytes that write writes. It writes them to
// a temporary file in the same folder, fsyncs and renames the file, and fsyncs the
// folder. After an error path is unchanged, unless the fsync of the folder failed.
func Write(path string, write func(w io.Writer) error) (err error) {
	aside := asideOf(path)
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			at.Path = path // the temporary name would not help the user
		}
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		os.Remove(aside)
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// Make is Write for a library that makes files by name: build makes the file aside, which
// is not there, closes it, and Make moves it to path.
func Make(path string, build func(aside string) error) (err error) {
	aside := asideOf(path)
	defer func() {
		if err != nil {
			os.Remove(aside)
		}
	}()
	if err := build(aside); err != nil {
		return err
	}
	f, err := os.OpenFile(aside, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(aside, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// asideOf returns a name in the folder of path that no file has.
func asideOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:8])
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
