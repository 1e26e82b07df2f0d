// Package atomicfile writes files that are whole or absent: a reader, also
// after a crash, finds the old content or the new one.
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

// Write makes path hold what write writes. The bytes are written aside, in the
// same folder, fsynced, and renamed; then the folder is fsynced. After an error
// path is as it was, unless the error is that of the last fsync.
func Write(path string, write func(w io.Writer) error) (err error) {
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:8])
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			at.Path = path // the name aside tells nobody anything
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

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
