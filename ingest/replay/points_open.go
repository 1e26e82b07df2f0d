package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/ingest/filesys"
)

// openGrouped returns a Source of groups of points, or nil with the files that are a cloud each.
func (t Table) openGrouped() (src Source, files []string, err error) {
	if err := checkKeys(t.GroupBy); err != nil {
		return nil, nil, err
	}
	for _, path := range t.Paths {
		found, err := findParquet(path)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, found...)
	}
	var all tableChain
	var alone []string
	for _, folder := range byParent(files) {
		if src := t.grouped(folder); src != nil {
			all.sources = append(all.sources, src)
			continue
		}
		alone = append(alone, folder...)
	}
	switch {
	case len(all.sources) == 0:
		return nil, files, nil
	case len(alone) > 0:
		all.Close()
		return nil, nil, fmt.Errorf("parquet: some tables hold points of an output, and others, such as %s, a cloud "+
			"in each "+
			"file; read them one after the other, or name columns to group by", alone[0])
	case len(all.sources) == 1:
		return all.sources[0], nil, nil
	}
	return &all, nil, nil
}

// byParent groups files by their folders, in the order in which these come first.
func byParent(files []string) (folders [][]string) {
	at := map[string]int{}
	for _, path := range files {
		dir := filesys.Dir(path)
		i, ok := at[dir]
		if !ok {
			i = len(folders)
			at[dir] = i
			folders = append(folders, nil)
		}
		folders[i] = append(folders[i], path)
	}
	return folders
}

// findParquet returns the Parquet files at a path: a file; the files in a folder, and in folders
// below it that are named KEY=VALUE; of an output, its table points.
func findParquet(path string) (files []string, err error) {
	info, err := filesys.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := filesys.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	names := listing{}
	for _, e := range entries { // in order
		names = append(names, folderEntry{name: e.Name(), mode: e.Type()})
	}
	if isOutput(path, names) {
		if !names.has("points") {
			return nil, noPoints(path)
		}
		return findParquet(filesys.Join(path, "points"))
	}
	if files, err = parquetBelow(path, entries, 0); err == nil && len(files) == 0 {
		err = fmt.Errorf("parquet: no file in %s that ends with .parquet, nor in a folder KEY=VALUE below it", path)
	}
	return files, err
}

// noPoints is the error for an output without points.
func noPoints(path string) *BadInputError {
	return &BadInputError{File: path, Detail: "it is an output without table points; run with --tables points " +
		"writes it"}
}

// parquetBelow returns the Parquet files in a folder, then those in its folders KEY=VALUE.
func parquetBelow(dir string, entries []fs.DirEntry, depth int) (files []string, err error) {
	if depth > deepest {
		return nil, nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return naturally(a.Name(), b.Name()) })
	for _, e := range entries {
		if !isFolder(dir, e) && !strings.HasPrefix(e.Name(), ".") &&
			strings.EqualFold(filepath.Ext(e.Name()), ".parquet") {
			files = append(files, filesys.Join(dir, e.Name()))
		}
	}
	for _, e := range entries {
		if !strings.Contains(e.Name(), "=") || !isFolder(dir, e) {
			continue
		}
		below := filesys.Join(dir, e.Name())
		inside, err := filesys.ReadDir(below)
		if err != nil {
			return nil, fmt.Errorf("parquet: %w", err)
		}
		found, err := parquetBelow(below, inside, depth+1)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// isFolder reports whether an entry is a folder, or a link to one.
func isFolder(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := filesys.Stat(filesys.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}

// tableChain is a Source of the tables of several folders, one after the other.
type tableChain struct {
	sources []Source
	at      int
}

// Next implements Source.
func (c *tableChain) Next(it *Item) error {
	for ; c.at < len(c.sources); c.at++ {
		if err := c.sources[c.at].Next(it); err != io.EOF {
			return err
		}
	}
	return io.EOF
}

// Skipped returns the number of bad inputs that were left out so far.
func (c *tableChain) Skipped() (n int64) {
	for _, s := range c.sources {
		n += skippedBy(s)
	}
	return n
}

// Rewind implements Source.
func (c *tableChain) Rewind() error {
	c.at = 0
	var all []error
	for _, s := range c.sources {
		all = append(all, s.Rewind())
	}
	return errors.Join(all...)
}

// Close implements Source.
func (c *tableChain) Close() error {
	var all []error
	for _, s := range c.sources {
		all = append(all, s.Close())
	}
	return errors.Join(all...)
}

// counts returns the number of items and frames, which it finds in columns of keys, or in table
// frames, alone.
func (s *pointSource) counts(ctx context.Context) (items, frames int64, err error) {
	index, err := s.by.count(ctx)
	if err != nil {
		return 0, 0, err
	}
	return index.items, index.frames, nil
}

// common implements filed: every item has files of its own.
func (s *pointSource) common() []string { return nil }

// sequenceName returns the name of a folder that names the sequence.
func (s *pointSource) sequenceName() string { return s.by.sequence() }

// FilesOf returns the files of an item; none beyond the end.
func (s *pointSource) FilesOf(position int64) []string {
	index, err := s.by.count(context.Background())
	if err != nil {
		return nil // the reader of the item is told
	}
	files := index.files(position)
	for i, path := range files {
		files[i] = absolute(path)
	}
	return files
}
