package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packed is a file of an archive.
type packed struct {
	content []byte
	program bool // may be executed
}

func (p packed) mode() fs.FileMode {
	if p.program {
		return 0o755
	}
	return 0o644
}

// writeTar writes a tar in gzip. Its bytes depend on the files and the time alone: names
// are sorted, all files belong to root, gzip has no name.
func writeTar(name string, files map[string]packed, at time.Time) error {
	return create(name, func(f io.Writer) error {
		z := gzip.NewWriter(f)
		w := tar.NewWriter(z)
		for _, place := range slices.Sorted(maps.Keys(files)) {
			file := files[place]
			err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: place, Size: int64(len(file.content)),
				Mode: int64(file.mode()), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatUSTAR})
			if err != nil {
				return err
			}
			if _, err := w.Write(file.content); err != nil {
				return err
			}
		}
		return errors.Join(w.Close(), z.Close())
	})
}

// writeZip is writeTar for the zip format.
func writeZip(name string, files map[string]packed, at time.Time) error {
	return create(name, func(f io.Writer) error {
		w := zip.NewWriter(f)
		for _, place := range slices.Sorted(maps.Keys(files)) {
			header := &zip.FileHeader{Name: place, Method: zip.Deflate, Modified: at}
			header.SetMode(files[place].mode())
			file, err := w.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := file.Write(files[place].content); err != nil {
				return err
			}
		}
		return w.Close()
	})
}

func create(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// writeSums writes the SHA-256 of every file of a folder, as sha256sum prints them.
func writeSums(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), filepath.Base(name))
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o666)
}
