package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// Manifests returns the manifests of an output by their names. An output that does not exist
// has none.
func Manifests(out string) (map[string]*record.Manifest, error) {
	found := map[string]*record.Manifest{}
	err := eachFile(filepath.Join(out, record.TopicsFolder), func(path string) error {
		if _, ok := record.ManifestStart(filepath.Base(path)); !ok {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(out, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		found[name], err = record.ParseManifest(name, data)
		return err
	})
	return found, err
}

// SameManifests compares the manifests of two outputs whose lanes have the same names: their
// ranges, counts, last records, contents and files, and of all tables but frames, which has
// times, the bytes of the files. What names a writer and its time may differ. The error names
// the first difference.
func SameManifests(got, want string) error {
	a, errA := Manifests(got)
	b, errB := Manifests(want)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if len(b) == 0 {
		return fmt.Errorf("%s has no manifests", want)
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if a[name] == nil {
			return fmt.Errorf("%s has no manifest %s", got, name)
		}
		if diff := cmp.Diff(meaning(b[name]), meaning(a[name])); diff != "" {
			return fmt.Errorf("%s of %s and %s (-want +got):\n%s", name, want, got, diff)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if b[name] == nil {
			return fmt.Errorf("%s has a manifest %s that %s has not", got, name, want)
		}
	}
	return nil
}

// meaning returns what two manifests of the same rows have in common.
func meaning(m *record.Manifest) record.Manifest {
	same := record.Manifest{Format: m.Format, Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition,
		Start: m.Start, End: m.End, Gap: m.Gap, Counts: m.Counts, Chunks: m.Chunks, Last: m.Last,
		ContentHash: m.ContentHash}
	for _, f := range m.Files {
		f.Staged = ""
		if f.Table == tables.Frames {
			f.Bytes, f.SHA256 = 0, ""
		}
		same.Files = append(same.Files, f)
	}
	return same
}

// Strays returns the files of an output that nobody wants: files of tables that no manifest
// names, and staged files. It is for outputs that nobody writes to. Records that a kill left
// without their names are no strays: whoever reads in their folder next removes them.
func Strays(out string) (names []string, err error) {
	manifests, err := Manifests(out)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, m := range manifests {
		for _, f := range m.Files {
			wanted[f.Path] = true
		}
	}
	err = eachFile(out, func(path string) error {
		name, err := filepath.Rel(out, path)
		name = filepath.ToSlash(name)
		if !strings.HasPrefix(name, record.CommitsFolder+"/") && !wanted[name] {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// eachFile calls f with the path of each file below a folder, which need not exist.
func eachFile(folder string, f func(path string) error) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == folder {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		return f(path)
	})
}
