package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"entropipe/cmd/config"
	"entropipe/sinks"
)

// OpenOutput opens the folder of an output for reading. A folder that holds none is
// an error that names an output near it, where there is one: such a folder is told
// from a damaged output, and nothing else of it is read.
func OpenOutput(dir string) (*sinks.Local, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", config.ShownPath(dir), reason(err))
	case !info.IsDir():
		return nil, fmt.Errorf("%s is a file; an output is a folder", config.ShownPath(dir))
	}
	if !isOutput(dir) {
		return nil, notAnOutput(dir)
	}
	return sinks.OpenExisting(dir)
}

// reason is err without the path that the system puts before it.
func reason(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// identityFile is what makes a folder an output.
const identityFile = "_commits/store.json"

// isOutput tells whether dir has the file that makes it an output, readable or not.
func isOutput(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(identityFile)))
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// notAnOutput says that dir holds no output, and what may have been meant.
func notAnOutput(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "_commits", "topics")); err == nil {
		return fmt.Errorf("%s has commit records, but not %s, which names the output: it is damaged, or a copy of a part", config.ShownPath(dir), identityFile)
	}
	text := fmt.Sprintf("%s is not an output: it has no %s, which run makes", config.ShownPath(dir), identityFile)
	if near := outputNear(dir); near != "" {
		text += "; the output " + config.ShownPath(near) + " is near"
	}
	return errors.New(text)
}

// outputNear returns the output in which dir lies, else one that lies in dir; "" if
// there is neither.
func outputNear(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		for up := filepath.Dir(whole); up != whole; whole, up = up, filepath.Dir(up) {
			if isOutput(up) {
				return up
			}
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer f.Close()
	names, _ := f.Readdirnames(manyFolders) // what cannot be listed has nothing near
	slices.Sort(names)
	for _, name := range names {
		if below := filepath.Join(dir, name); isOutput(below) {
			return below
		}
	}
	return ""
}

// manyFolders is how many names of a folder are looked at for an output.
const manyFolders = 1000

// PrintResult writes v as JSON or as its String.
func PrintResult(w io.Writer, asJSON bool, v fmt.Stringer) error {
	if !asJSON {
		_, err := io.WriteString(w, v.String())
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
