package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"entropipe/sinks/internal/disk"
	"entropipe/sinks/record"
)

// Local is a Store in a folder of this machine, or of a file system that it
// has mounted: one with hard links, atomic renames and an honest fsync.
type Local struct {
	disk  disk.Disk
	name  string
	close func() error

	mu      sync.Mutex
	durable map[string]bool // folders whose names are fsynced in their parents
	swept   map[string]bool // folders of records from which was removed what crashes left
}

// OpenLocal opens a folder as a store. The folder is made if it is not there.
func OpenLocal(dir string) (*Local, error) {
	changed := namedIn(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	for _, name := range changed {
		if f, err := os.Open(name); err == nil { // not ours, so its fsync may fail
			f.Sync()
			f.Close()
		}
	}
	return OpenExisting(dir)
}

// namedIn returns the folders that get a name when dir is made: its parent, which
// counts also when dir is there, since its maker may have died, and those of the
// folders above dir that are not there.
func namedIn(dir string) []string {
	dir = filepath.Clean(dir)
	folders := []string{filepath.Dir(dir)}
	for {
		up := filepath.Dir(dir)
		if _, err := os.Stat(up); up == dir || !errors.Is(err, fs.ErrNotExist) {
			return folders
		}
		dir = up
		folders = append(folders, filepath.Dir(dir))
	}
}

// OpenExisting opens a folder as a store, for reading it: nothing is made.
func OpenExisting(dir string) (*Local, error) {
	d, err := disk.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	l := LocalOn(d, dir)
	l.close = d.Close
	return l, nil
}

// LocalOn returns a store on a disk of this module: tests have disks that fail and
// disks that forget what was not fsynced. name stands for it in error texts.
func LocalOn(d disk.Disk, name string) *Local {
	return &Local{disk: d, name: name, close: func() error { return nil }, durable: map[string]bool{".": true}, swept: map[string]bool{}}
}

// Close releases the folder.
func (l *Local) Close() error { return l.close() }

// String is the folder as it was given.
func (l *Local) String() string { return l.name }

// Create implements Records: the bytes are written aside and fsynced, then
// linked to their name, which fails if the name is taken, then the folder is
// fsynced.
func (l *Local) Create(_ context.Context, name string, data []byte) error {
	dir := path.Dir(name)
	if len(data) > record.MaxSize {
		return fmt.Errorf("%w: %d bytes are too many for a commit record (at most %d)", ErrNotCreated, len(data), record.MaxSize)
	}
	if err := l.makeFolder(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCreated, err)
	}
	tmp := dir + "/" + record.NewPrefix + path.Base(name) + "-" + record.NewUUID()
	if err := l.writeFile(tmp, data); err != nil {
		l.disk.Remove(tmp)
		return fmt.Errorf("%w: %w", ErrNotCreated, err)
	}
	err := l.disk.Link(tmp, name)
	switch {
	case errors.Is(err, fs.ErrExist):
		err = ErrExists
	case isOneOf(err, syscall.ENOTSUP, syscall.EPERM, syscall.ENOSYS):
		l.disk.Remove(tmp)
		return fmt.Errorf("%w: %w (the file system of %s has no hard links, which exactly-once output needs; choose another)", ErrNotCreated, err, l.name)
	case isOneOf(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EMFILE, syscall.ENFILE):
		l.disk.Remove(tmp)
		return fmt.Errorf("%w: %w", ErrNotCreated, err) // refused: nothing has begun
	}
	if syncErr := l.disk.SyncDir(dir); err == nil || errors.Is(err, ErrExists) && syncErr != nil {
		err = syncErr
	}
	l.disk.Remove(tmp)
	return err
}

func isOneOf(err error, errs ...syscall.Errno) bool {
	return slices.ContainsFunc(errs, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// writeFile creates a file that survives a crash, but for its name.
func (l *Local) writeFile(name string, data []byte) error {
	f, err := l.disk.Create(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Read implements Records.
func (l *Local) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := ReadRecord(ctx, l, name)
	if err != nil {
		return nil, err
	}
	// Its creator may have died, or may still be busy, before the fsync.
	dir := path.Dir(name)
	if err := l.makeFolder(dir); err != nil {
		return nil, err
	}
	l.sweep(dir)
	return data, l.disk.SyncDir(dir)
}

// sweep removes what crashes have left aside in a folder of records, which may
// hold a hundred thousand: once nothing is left, it looks there no more. Only for
// a name that is taken, so that nobody can need the file any more; what fails here
// is left for the next time.
func (l *Local) sweep(dir string) {
	l.mu.Lock()
	clean := l.swept[dir]
	l.mu.Unlock()
	if clean {
		return
	}
	names, err := l.disk.Names(dir)
	clean = err == nil
	for _, name := range names {
		target, ok := strings.CutPrefix(name, record.NewPrefix)
		if !ok {
			continue
		}
		target = target[:max(0, len(target)-record.UUIDSize-1)]
		if _, err := l.disk.Size(dir + "/" + target); err != nil || target == "" || l.disk.Remove(dir+"/"+name) != nil {
			clean = false
		}
	}
	l.mu.Lock()
	l.swept[dir] = clean
	l.mu.Unlock()
}

// makeFolder makes a folder with all above it, each fsynced in its parent. A
// folder made by another is fsynced too, once: its maker may have died.
func (l *Local) makeFolder(dir string) error {
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if err := l.makeOne(dir[:i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Local) makeOne(dir string) error {
	l.mu.Lock()
	known := l.durable[dir]
	l.mu.Unlock()
	if known {
		return nil
	}
	passing := strings.HasPrefix(dir, record.StagingFolder+"/") // belongs to one attempt, and goes with it
	err := l.disk.Mkdir(dir)
	switch {
	case errors.Is(err, fs.ErrExist) && passing:
		return nil
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := l.disk.SyncDir(path.Dir(dir)); err != nil || passing {
		return err
	}
	l.mu.Lock()
	l.durable[dir] = true
	l.mu.Unlock()
	return nil
}

// Stage implements Stager.
func (l *Local) Stage(_ context.Context, name string) (io.WriteCloser, error) {
	if err := l.makeFolder(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := l.disk.Create(name)
	if err != nil {
		return nil, err
	}
	return &stagedFile{File: f, l: l, dir: path.Dir(name)}, nil
}

// stagedFile is a file whose Close makes it durable.
type stagedFile struct {
	disk.File
	l   *Local
	dir string
}

func (f *stagedFile) Close() error {
	err := f.Sync()
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = f.l.disk.SyncDir(f.dir)
	}
	return err
}

// Publish implements Stager: files are renamed in their order, and a folder that
// got some is fsynced before the next folder gets one, so that a crash keeps the
// order, too.
func (l *Local) Publish(ctx context.Context, moves []Move) error {
	if err := l.compare(ctx, moves); err != nil {
		return err
	}
	for i, m := range moves {
		if err := l.move(m); err != nil {
			return err
		}
		if dir := path.Dir(m.To); i == len(moves)-1 || path.Dir(moves[i+1].To) != dir {
			if err := l.disk.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// move renames one file, unless that has been done.
//
// The destination is looked at first: a rename replaces it, and a stranger's
// file there (or another's, on a file system that takes two names for one) is
// not ours to replace. Another process may make the same move meanwhile; then
// the source vanishes as the destination appears.
func (l *Local) move(m Move) error {
	if err := l.makeFolder(path.Dir(m.To)); err != nil {
		return err
	}
	done, err := l.moved(m)
	if done || err != nil {
		return err
	}
	err = l.disk.Rename(m.From, m.To)
	if errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("%w (all of %s must be on one file system: undo the mount, and what is committed will be moved)", err, l.name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, sourceErr := l.disk.Size(m.From); sourceErr == nil {
		return err // the folder has been removed under us
	}
	if done, err = l.moved(m); err == nil && !done {
		err = &LostFileError{m, "its commit is recorded, but the file is neither here nor in " + m.From + "; nothing in this output explains it"}
	}
	return err
}

// moved tells whether the destination of m is there and the source is not.
func (l *Local) moved(m Move) (bool, error) {
	size, err := l.disk.Size(m.To)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := l.disk.Size(m.From); err == nil {
		return false, &LostFileError{m, "another file has this name; the one of the commit is still in " + m.From}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if size != m.Bytes {
		return false, &LostFileError{m, fmt.Sprintf("the file has %d bytes, its manifest says %d", size, m.Bytes)}
	}
	return true, nil
}

// Discard implements Stager. Nothing is fsynced: what comes back after a crash
// is an empty folder, or an attempt that is discarded again.
func (l *Local) Discard(_ context.Context, folder string) error {
	names, err := l.disk.Names(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.disk.Remove(folder + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err = l.disk.Remove(folder)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) || errors.Is(err, fs.ErrNotExist) {
		return nil // not empty: a lost attempt that is still staging; it removes the rest when it learns that
	}
	return err
}
