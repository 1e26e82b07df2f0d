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
	"time"

	"entropipe/sinks/internal/disk"
	"entropipe/sinks/record"
)

// Local is a Store in a folder. Its file system needs hard links, atomic renames and
// an fsync that makes files and names durable. Local and remote ones may be mounted
// there. CheckWritable tries what it needs.
type Local struct {
	disk  disk.Disk
	name  string
	close func() error
	looks int // how often it looks again before it says that a file is lost

	mu      sync.Mutex
	durable map[string]bool // folders whose names are fsynced in their parents
	swept   map[string]bool // folders of records without files that crashes left
}

// OpenLocal opens a folder as a store, and makes the folder if it does not exist.
func OpenLocal(dir string) (*Local, error) {
	changed := namedIn(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	for _, name := range changed {
		if f, err := os.Open(name); err == nil { // it may belong to another user, so a failed fsync is no error
			f.Sync()
			f.Close()
		}
	}
	return OpenExisting(dir)
}

// namedIn returns the folders that get a new name when dir is made: the parents of
// dir and of all missing folders above it. The parent of dir is included even if dir
// exists, since its maker may have died before the fsync.
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

// OpenExisting opens an existing folder as a store and creates nothing.
func OpenExisting(dir string) (*Local, error) {
	d, err := disk.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	l := LocalOn(d, dir)
	l.close = d.Close
	return l, nil
}

// LocalOn returns a store on a disk of this module: tests have disks whose calls fail
// and disks that lose unsynced data. Error texts call it name.
func LocalOn(d disk.Disk, name string) *Local {
	l := &Local{disk: d, name: name, close: func() error { return nil }, looks: 2,
		durable: map[string]bool{".": true}, swept: map[string]bool{}}
	if r, ok := d.(interface{ Remote() bool }); ok && r.Remote() {
		l.looks = hiddenTries
	}
	return l
}

// Close releases the folder.
func (l *Local) Close() error { return l.close() }

// String returns the folder as it was given to OpenLocal or OpenExisting.
func (l *Local) String() string { return l.name }

// Create implements Records. It writes and fsyncs the bytes under a temporary name,
// links that to name, which fails if name is taken, and fsyncs the folder.
func (l *Local) Create(_ context.Context, name string, data []byte) error {
	dir := path.Dir(name)
	if len(data) > record.MaxSize {
		return fmt.Errorf("%w: %d bytes are too many for a commit record (at most %d)", ErrNotCreated,
			len(data), record.MaxSize)
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
	case isOneOf(err, unlinked...):
		l.disk.Remove(tmp)
		return fmt.Errorf("%w: %w", ErrNotCreated, &noLinksError{err, l.name})
	case isOneOf(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EMFILE, syscall.ENFILE):
		l.disk.Remove(tmp)
		return fmt.Errorf("%w: %w", ErrNotCreated, err) // the call was refused before any change
	}
	if syncErr := l.disk.SyncDir(dir); err == nil || errors.Is(err, ErrExists) && syncErr != nil {
		err = syncErr
	}
	l.disk.Remove(tmp)
	return err
}

// unlinked are the answers of file systems without hard links.
var unlinked = []syscall.Errno{syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.EPERM, syscall.ENOSYS, syscall.EMLINK}

// noLinksError is the error of a folder whose file system has no hard links.
type noLinksError struct {
	err  error
	name string // of the folder
}

func (e *noLinksError) Unwrap() error { return e.err }

func (e *noLinksError) Error() string {
	return fmt.Sprintf("%v (the file system of %s has no hard links, which exactly-once output needs; choose another)",
		e.err, e.name)
}

// create creates a file that nobody else makes, since its name has a uuid of the caller.
// Where it exists, a network file system has made it, lost the answer and tried once more.
func (l *Local) create(name string) (f disk.File, err error) {
	for range 5 {
		if f, err = l.disk.Create(name); !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		if err := l.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return f, err
}

func isOneOf(err error, errs ...syscall.Errno) bool {
	return slices.ContainsFunc(errs, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// writeFile creates a file whose bytes are durable; its name is not until the folder is fsynced.
func (l *Local) writeFile(name string, data []byte) error {
	f, err := l.create(name)
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

// Read implements Records. It fsyncs the record's folder.
func (l *Local) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := ReadRecord(ctx, l, name)
	if err != nil {
		return nil, err
	}
	// The record's creator may not have fsynced the folder yet, or may have died before.
	dir := path.Dir(name)
	if err := l.makeFolder(dir); err != nil {
		return nil, err
	}
	l.sweep(dir)
	return data, l.disk.SyncDir(dir)
}

// sweep removes temporary files that crashes have left in a folder of records. It
// removes only files whose record exists, since no writer needs them any more. A
// folder may hold a hundred thousand records, so a clean folder is not listed again.
// Errors leave files for the next sweep.
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

// abandoned is the age from which a temporary file belongs to a dead writer, which made it within
// moments before it was to link it. Clocks of machines may be apart by hours.
const abandoned = 48 * time.Hour

// Sweep removes temporary files that crashes have left in a folder of records: those whose
// record exists, and old ones. A planner that died may have left parts of a plan that nobody
// makes again. Errors leave files for the next sweep.
func (l *Local) Sweep(folder string) {
	l.mu.Lock()
	l.swept[folder] = false
	l.mu.Unlock()
	l.sweep(folder)
	names, err := l.disk.Names(folder)
	if err != nil || !slices.ContainsFunc(names, isTemporary) {
		return
	}
	entries, err := l.disk.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !isTemporary(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && !info.ModTime().IsZero() && time.Since(info.ModTime()) > abandoned {
			l.disk.Remove(folder + "/" + e.Name())
		}
	}
}

func isTemporary(name string) bool { return strings.HasPrefix(name, record.NewPrefix) }

// makeFolder makes a folder and all folders above it, and fsyncs each name in its
// parent. The name of an existing folder is fsynced once, too: its maker may have died.
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
	passing := strings.HasPrefix(dir, record.StagingFolder+"/") // the folder of one attempt, removed with it
	if known && !passing {
		return nil
	}
	// That the folder exists does not say that its name is durable: its maker may have died,
	// and a network file system may say so of the folder that it has just made.
	err := l.disk.Mkdir(dir)
	switch {
	case errors.Is(err, fs.ErrExist) && known:
		return nil
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := l.disk.SyncDir(path.Dir(dir)); err != nil {
		return err
	}
	l.mu.Lock()
	l.durable[dir] = true
	l.mu.Unlock()
	return nil
}

// Stage implements Stager.
func (l *Local) Stage(_ context.Context, name string) (io.WriteCloser, error) {
	f, err := l.stage(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// StageLarge does what Stage does. A large file passes by the page cache, where the file system
// allows that: see disk.Large.
func (l *Local) StageLarge(_ context.Context, name string) (io.WriteCloser, error) {
	f, err := l.stage(name)
	if err != nil {
		return nil, err
	}
	f.File = disk.Large(f.File)
	return f, nil
}

func (l *Local) stage(name string) (*stagedFile, error) {
	if err := l.makeFolder(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := l.create(name)
	if err != nil {
		return nil, err
	}
	return &stagedFile{File: f, l: l, dir: path.Dir(name)}, nil
}

// stagedFile is a file that Close makes durable.
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

// Publish implements Stager. It renames the files in order, and fsyncs a folder that
// has received files before the next folder receives one, so that a crash keeps the
// order.
func (l *Local) Publish(ctx context.Context, moves []Move) error {
	if err := l.compare(ctx, moves); err != nil {
		return err
	}
	for i, m := range moves {
		if err := l.move(ctx, m); err != nil {
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

// move renames one file, unless it has been renamed before.
//
// A network file system may show for a while names that other machines have moved away,
// hide those that they have made, and answer for a second try of a rename whose first
// answer was lost. So a file is lost only if it is at neither place for some time.
func (l *Local) move(ctx context.Context, m Move) error {
	if err := l.makeFolder(path.Dir(m.To)); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := l.tryMove(m)
		if lost := (*LostFileError)(nil); try == l.looks || !errors.As(err, &lost) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := l.refresh(ctx, try, path.Dir(m.From), path.Dir(m.To)); err != nil {
			return err
		}
	}
}

// refresh waits, the longer the later the try, and lists folders, so that a network file
// system asks its server about their names.
func (l *Local) refresh(ctx context.Context, try int, folders ...string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(createWait << try):
	}
	for _, folder := range folders {
		if _, err := l.disk.Names(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// tryMove renames one file, unless it has been renamed before.
//
// It looks at the destination first, because a rename replaces it: a file there that
// is not the commit's must stay (a case-insensitive file system may take two names
// for one). Another process may make the same move meanwhile; then the source
// vanishes as the destination appears.
func (l *Local) tryMove(m Move) error {
	done, err := l.moved(m)
	if done || err != nil {
		return err
	}
	err = l.disk.Rename(m.From, m.To)
	if errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("%w (all of %s must be on one file system: undo the mount, and what is committed will be "+
			"moved)", err, l.name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, sourceErr := l.disk.Size(m.From); sourceErr == nil {
		return err // the destination's folder was removed meanwhile
	}
	if done, err = l.moved(m); err == nil && !done {
		err = &LostFileError{m, "its commit is recorded, but the file is neither here nor in " + m.From +
			"; nothing in this output explains it"}
	}
	return err
}

// moved tells whether the destination of m exists and its source does not.
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

// Discard implements Stager. It fsyncs nothing: after a crash an empty folder may be
// back, or an attempt that is discarded again.
//
// A file that a process of this machine has open stays on NFS under a name that begins with
// ".nfs" until it is closed. Then NFS removes it.
func (l *Local) Discard(_ context.Context, folder string) error {
	l.mu.Lock()
	delete(l.durable, folder)
	l.mu.Unlock()
	names, err := l.disk.Names(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if isSilly(name) {
			continue
		}
		if err := l.disk.Remove(folder + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err = l.disk.Remove(folder)
	if isOneOf(err, syscall.ENOTEMPTY, syscall.EEXIST, syscall.EBUSY) || errors.Is(err, fs.ErrNotExist) {
		return nil // not empty: the attempt is still staging, and discards the rest when it loses
	}
	return err
}
