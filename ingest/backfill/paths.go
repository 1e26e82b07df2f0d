package backfill

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"entropipe/ingest/filesys"
	"entropipe/sinks/record"
)

// now is the time of a plan's creation.
func now() time.Time { return time.Now().UTC() }

// Roots returns the folders that the paths of a command line begin at, absolute, each
// once: a folder itself, the folder of a file, and of a pattern the part without wild
// cards. A path that does not exist is taken for a file.
func Roots(paths []string) ([]string, error) {
	var roots []string
	for _, path := range paths {
		root, err := filesys.Abs(path)
		if err != nil {
			return nil, err
		}
		if info, err := filesys.Stat(root); err != nil || !info.IsDir() {
			for root = filesys.Dir(root); strings.ContainsAny(root, "*?["); {
				if info, err := filesys.Stat(root); err == nil && info.IsDir() {
					break // a folder with such a name
				}
				root = filesys.Dir(root)
			}
		}
		if !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

// lastName returns the name of a folder.
func lastName(root string) string { return filesys.Base(root) }

// rootOf returns the index of the longest root that path lies below; 0: below none.
func (b *builder) rootOf(path string) int {
	best, length := 0, -1
	for i, root := range b.opt.Roots {
		rel, err := filesys.Rel(root, path)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) && len(root) > length {
			best, length = i, len(root)
		}
	}
	return best
}

// below returns path relative to root, with slashes.
func below(root, path string) (string, error) {
	path, err := filesys.Abs(path)
	if err != nil {
		return "", err
	}
	rel, err := filesys.Rel(root, path)
	return filepath.ToSlash(rel), err
}

// above returns the path that lies at rel below root.
func above(root, rel string) string { return filesys.Join(root, filepath.FromSlash(rel)) }

// commonFolder returns the folder that all of the paths lie below.
func commonFolder(paths []string) string {
	dir := filesys.Dir(paths[0])
	for _, path := range paths[1:] {
		for !within(dir, path) {
			dir = filesys.Dir(dir)
		}
	}
	return dir
}

// within tells whether path lies below dir.
func within(dir, path string) bool {
	if strings.HasSuffix(dir, string(filepath.Separator)) { // the root of the file system
		return strings.HasPrefix(path, dir)
	}
	return len(path) > len(dir) && path[len(dir)] == filepath.Separator && strings.HasPrefix(path, dir)
}

// utf8Only refuses names that a plan, which is JSON, cannot hold.
func utf8Only(l *record.Lane) error {
	bad := func(s string) error {
		if utf8.ValidString(s) {
			return nil
		}
		return fmt.Errorf("%q: a name that is not UTF-8 cannot be part of a plan; rename the file or its folder", s)
	}
	for _, s := range append([]string{l.Folder, l.Input.Path, l.Input.Sequence}, l.Input.Files...) {
		if err := bad(s); err != nil {
			return err
		}
	}
	for _, files := range [][]record.LaneFile{l.Common, l.Files} {
		for i := range files {
			if err := bad(files[i].Path); err != nil {
				return err
			}
		}
	}
	return nil
}
