package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// errMismatch is the end of an error that has no other cause than numbers that
// do not agree.
var errMismatch = errors.New("the numbers do not agree")

func orMismatch(err error) error { return cmp.Or(err, errMismatch) }

// tableFiles returns the files of a table in the order of their names, which is
// that of dataset, topic, partition and offset for up to ten partitions.
func tableFiles(out, table string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(filepath.Join(out, table), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".parquet" {
			files = append(files, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(files)
	return files, err
}

// tableFile is an open Parquet file.
type tableFile struct {
	*parquet.File
	file *os.File
}

func openTable(path string) (*tableFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		var file *parquet.File
		if file, err = parquet.OpenFile(f, st.Size(), parquet.SkipPageIndex(true),
			parquet.SkipBloomFilters(true)); err == nil {
			return &tableFile{file, f}, nil
		}
	}
	f.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}

func (t *tableFile) close() { t.file.Close() }

// countRows adds up what the footers of a table say. A table without a file has
// none.
func countRows(out, table string) (int64, error) {
	files, err := tableFiles(out, table)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, path := range files {
		f, err := openTable(path)
		if err != nil {
			return 0, err
		}
		n += f.NumRows()
		f.close()
	}
	return n, nil
}
