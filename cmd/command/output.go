package command

import (
	"context"
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
	"entropipe/ingest/bucket"
	"entropipe/sinks"
)

// Store is the store of an output that a command has opened by its address.
type Store interface {
	sinks.Store
	sinks.Remover

	// CheckWritable returns an error that says why a commit would fail, as far as that can
	// be found out without one. tables are the names of all tables.
	CheckWritable(ctx context.Context, tables []string) error

	// Space returns the bytes that this process may still write, and the size of what it
	// writes to. ok is false where nobody knows or nothing bounds them.
	Space() (free, size int64, ok bool)

	// Close releases the store.
	Close() error
}

// MakeOutput opens a store to write to, and makes it where there is none.
func MakeOutput(_ context.Context, out string, b *Bucket) (Store, error) {
	if IsBucket(out) {
		return b.open(out)
	}
	store, err := sinks.OpenLocal(out)
	if err != nil {
		return nil, err
	}
	return store, nil
}

// FindOutput opens a store that is there, whether or not it is an output. Whether a bucket is
// there shows at the first call of the store.
func FindOutput(_ context.Context, out string, b *Bucket) (Store, error) {
	if IsBucket(out) {
		return b.open(out)
	}
	store, err := sinks.OpenExisting(out)
	if err != nil {
		return nil, err
	}
	return store, nil
}

// OpenOutput opens the store of an output for reading. If a folder is no output, the error
// names an output above or below it, where there is one. A damaged output is another error
// than a folder that never was one.
func OpenOutput(ctx context.Context, out string, b *Bucket) (Store, error) {
	if IsBucket(out) {
		return b.openOutput(ctx, out)
	}
	if err := checkFolder(out); err != nil {
		return nil, err
	}
	return FindOutput(ctx, out, b)
}

// checkFolder returns an error that helps if dir is no output.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", config.ShownPath(dir), reason(err))
	case !info.IsDir():
		return fmt.Errorf("%s is a file; an output is a folder", config.ShownPath(dir))
	}
	if !isOutput(dir) {
		return notAnOutput(dir)
	}
	return nil
}

// WholeOutput returns the address of an output that is good in another folder, too.
func WholeOutput(out string) string {
	if at, err := bucket.ParseAddress(out); err == nil {
		return at.String()
	}
	if whole, err := filepath.Abs(out); err == nil {
		return whole
	}
	return out
}

// reason returns err without the path that the os package puts before it.
func reason(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// identityFile is the file that every output has, and no other folder.
const identityFile = "_commits/store.json"

// isOutput reports whether dir has the identity file, readable or not.
func isOutput(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(identityFile)))
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// notAnOutput returns the error for a folder without an identity file, with the output
// that was probably meant.
func notAnOutput(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "_commits", "topics")); err == nil {
		return fmt.Errorf("%s has commit records, but not %s, which names the output: it is damaged, or a copy of a "+
			"part", config.ShownPath(dir), identityFile)
	}
	text := fmt.Sprintf("%s is not an output: it has no %s, which run makes", config.ShownPath(dir), identityFile)
	if near := outputNear(dir); near != "" {
		text += "; the output " + config.ShownPath(near) + " is near"
	}
	return errors.New(text)
}

// outputNear returns the output in which dir lies, or else an output in dir; "" if there
// is neither.
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
	names, _ := f.Readdirnames(manyFolders) // on an error fewer names are looked at
	slices.Sort(names)
	for _, name := range names {
		if below := filepath.Join(dir, name); isOutput(below) {
			return below
		}
	}
	return ""
}

// manyFolders bounds the names of a folder that outputNear looks at.
const manyFolders = 1000

// PrintResult writes v as one indented JSON document, or as its String.
func PrintResult(w io.Writer, asJSON bool, v fmt.Stringer) error {
	if !asJSON {
		_, err := io.WriteString(w, v.String())
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
