package filesys

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/models/plainfile"
)

// File is an open file of a folder or an open object.
type File interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
}

// Open is plainfile.Open.
func Open(name string) (File, error) {
	if IsBucket(name) {
		return openObject(name)
	}
	f, err := plainfile.Open(name)
	if err != nil {
		return nil, err // without a type
	}
	return f, nil
}

// OpenListed is plainfile.OpenListed.
func OpenListed(name string) (File, fs.FileInfo, error) {
	if IsBucket(name) {
		o, err := openObject(name)
		if err != nil {
			return nil, nil, err
		}
		info, err := o.Stat()
		return o, info, err
	}
	f, info, err := plainfile.OpenListed(name)
	if err != nil {
		return nil, nil, err
	}
	return f, info, nil
}

// Stat is os.Stat. Of an object that this process has seen it sends no request: see Check.
func Stat(name string) (fs.FileInfo, error) {
	if IsBucket(name) {
		return statObject(name)
	}
	return os.Stat(name)
}

// ETag returns the ETag of an object that Stat has found; empty: it is a file, or a folder.
func ETag(info fs.FileInfo) string {
	if e, ok := info.(entry); ok {
		return e.etag
	}
	return ""
}

// ReadDir is os.ReadDir.
func ReadDir(name string) (entries []fs.DirEntry, err error) {
	if !IsBucket(name) {
		return os.ReadDir(name)
	}
	err = listObjects(name, func(e fs.DirEntry) bool {
		entries = append(entries, e)
		return true
	})
	return entries, err
}

// listedAtOnce is how many entries of a folder are read at a time: they take more memory than what
// callers keep of them.
const listedAtOnce = 4096

// Each calls f with the entries of a folder in no order, until f returns false.
func Each(name string, f func(fs.DirEntry) bool) error {
	if IsBucket(name) {
		return listObjects(name, f)
	}
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	for {
		some, err := folder.ReadDir(listedAtOnce)
		for _, e := range some {
			if !f(e) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Glob is filepath.Glob. Of a bucket the folders are listed whose names match so far.
func Glob(pattern string) ([]string, error) {
	if !IsBucket(pattern) {
		return filepath.Glob(pattern)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	above, last := Dir(pattern), Base(pattern)
	if above == Clean(pattern) {
		return nil, nil // the name of a bucket is no pattern
	}
	folders := []string{above}
	if strings.ContainsAny(above, `*?[\`) {
		var err error
		if folders, err = Glob(above); err != nil {
			return nil, err
		}
	}
	var found []string
	for _, folder := range folders {
		entries, err := ReadDir(folder)
		if err != nil {
			continue // as filepath.Glob does
		}
		for _, e := range entries {
			if matched, _ := path.Match(last, e.Name()); matched {
				found = append(found, Join(folder, e.Name()))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}
