package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"entropipe/models/plainfile"
)

// Set holds the tensors of one or several open files. It is safe for concurrent use.
type Set struct {
	files   []*File
	tensors []Tensor // by name
}

// OpenSet opens a file, or all files that an index (*.index.json) names, in the folder
// of the index. OpenSet fails unless every file holds exactly the tensors that the
// index assigns to it. The caller closes the Set after the last read of a tensor.
func OpenSet(path string) (*Set, error) {
	if !strings.HasSuffix(path, ".index.json") {
		f, err := Open(path)
		if err != nil {
			return nil, err
		}
		return newSet([]*File{f}), nil
	}
	index, err := readIndex(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &Set{}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		f, err := Open(filepath.Join(filepath.Dir(path), name))
		if err == nil {
			s.files = append(s.files, f)
			err = compare(f, index[name])
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), s.Close())
		}
	}
	return newSet(s.files), nil
}

func newSet(files []*File) *Set {
	s := &Set{files: files}
	for _, f := range files {
		s.tensors = append(s.tensors, f.tensors...)
	}
	slices.SortFunc(s.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// compare returns an error unless a file holds exactly the tensors that the index
// assigns to it. want is sorted.
func compare(f *File, want []string) error {
	for _, name := range want {
		if _, ok := f.Lookup(name); !ok {
			return fmt.Errorf("%s does not hold tensor %q", f.name, name)
		}
	}
	for _, t := range f.tensors {
		if _, ok := slices.BinarySearch(want, t.Name); !ok {
			return fmt.Errorf("%s holds tensor %q, which the index does not give it", f.name, t.Name)
		}
	}
	return nil
}

// Close closes all files.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Metadata returns the metadata of a single file, and an empty map for several files,
// whose metadata differ. The caller must not change the map.
func (s *Set) Metadata() map[string]string {
	if len(s.files) == 1 {
		return s.files[0].metadata
	}
	return map[string]string{}
}

// WriteTo writes the bytes of all files in the order of their names, as for a checksum
// of all weights. It implements io.WriterTo.
func (s *Set) WriteTo(w io.Writer) (written int64, err error) {
	for _, f := range s.files {
		n, err := io.Copy(w, io.NewSectionReader(f.r, 0, f.size))
		written += n
		if err == nil && n < f.size {
			err = io.ErrUnexpectedEOF // it was longer when it was opened
		}
		if err != nil {
			return written, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return written, nil
}

// Tensors returns the tensors in the order of their names. The caller must not change
// the slice.
func (s *Set) Tensors() []Tensor { return s.tensors }

// Lookup returns the tensor with the name, and false if there is none.
func (s *Set) Lookup(name string) (Tensor, bool) {
	i, ok := slices.BinarySearchFunc(s.tensors, name,
		func(t Tensor, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return Tensor{}, false
	}
	return s.tensors[i], true
}

// readIndex returns the names of each file's tensors.
func readIndex(path string) (map[string][]string, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is named by the caller
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHeader+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxHeader:
		return nil, fmt.Errorf("is longer than %d bytes", maxHeader)
	case !utf8.Valid(text):
		return nil, errors.New("is not UTF-8")
	}
	return parseIndex(text)
}

func parseIndex(text []byte) (map[string][]string, error) {
	s := scanner{what: "index", text: text}
	where := map[string]string(nil)
	err := s.object("the index", func(key string) error {
		if key != "weight_map" {
			return s.skip(1)
		}
		where = map[string]string{}
		return s.strings(key, where)
	})
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
		return nil, err
	case len(where) == 0:
		return nil, errors.New("has no weight_map, or an empty one")
	}
	files := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(where)) {
		file := where[name]
		if !filepath.IsLocal(file) || filepath.Base(file) != file || strings.ContainsAny(file, `/\`) {
			return nil, fmt.Errorf("tensor %q is in %q, which is no name of a file beside it", name, file)
		}
		files[file] = append(files[file], name)
	}
	return files, nil
}
