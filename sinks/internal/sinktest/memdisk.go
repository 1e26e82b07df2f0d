package sinktest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"entropipe/sinks/internal/disk"
)

// MemDisk is a file system that forgets in a crash what was not fsynced: the
// bytes of files, and separately every change of a name, each of which survives
// or not on its own. Real ones lose less; a protocol that is right here is
// right there.
//
// A change of names (create, link, rename, remove, mkdir) is durable once one
// of the folders it touches has been fsynced. A rename is never half done.
type MemDisk struct {
	mu      sync.Mutex
	Live    names
	durable names
	pending []change // changes of live that durable lacks
}

type names struct {
	Files map[string]*Inode
	Dirs  map[string]bool
}

type Inode struct {
	Data   []byte
	synced int // so many bytes survive
}

type change struct {
	kind     string
	from, to string
	node     *Inode
}

func NewMemDisk() *MemDisk {
	empty := func() names { return names{map[string]*Inode{}, map[string]bool{".": true}} }
	return &MemDisk{Live: empty(), durable: empty()}
}

func (c *change) touches(dir string) bool {
	return path.Dir(c.to) == dir || c.from != "" && path.Dir(c.from) == dir
}

// apply makes a change if it can be made.
func (n *names) apply(c change) {
	if !n.Dirs[path.Dir(c.to)] {
		return // the folder is lost, and what was in it
	}
	switch c.kind {
	case "create", "link":
		if n.Files[c.to] == nil {
			n.Files[c.to] = c.node
		}
	case "rename":
		n.Files[c.to] = c.node
		if n.Files[c.from] == c.node {
			delete(n.Files, c.from)
		}
	case "remove":
		delete(n.Files, c.to)
		delete(n.Dirs, c.to)
	case "mkdir":
		n.Dirs[c.to] = true
	}
}

func (d *MemDisk) change(c change) {
	d.Live.apply(c)
	d.pending = append(d.pending, c)
}

// Crash returns the disk as it is found afterwards. keep decides for each
// change of names, and for each file's bytes, whether what was not fsynced
// survives.
func (d *MemDisk) Crash(keep func() bool) *MemDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewMemDisk()
	state := d.durable
	for _, c := range d.pending {
		if keep() {
			state.apply(c)
		}
	}
	copies := map[*Inode]*Inode{}
	for name, node := range state.Files {
		if copies[node] == nil {
			n := node.synced
			if keep() {
				n = len(node.Data)
			}
			copies[node] = &Inode{Data: bytes.Clone(node.Data[:n]), synced: n}
		}
		after.Live.Files[name] = copies[node]
		after.durable.Files[name] = copies[node]
	}
	for dir := range state.Dirs {
		after.Live.Dirs[dir], after.durable.Dirs[dir] = true, true
	}
	return after
}

func PathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func (d *MemDisk) Create(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.Live.Dirs[path.Dir(name)] {
		return nil, PathError("create", name, fs.ErrNotExist)
	}
	if d.Live.Files[name] != nil {
		return nil, PathError("create", name, fs.ErrExist)
	}
	f := &memFile{d: d, node: &Inode{}}
	d.change(change{kind: "create", to: name, node: f.node})
	return f, nil
}

type memFile struct {
	d    *MemDisk
	node *Inode
}

func (f *memFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.node.Data = append(f.node.Data, p...)
	return len(p), nil
}

func (f *memFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.node.synced = len(f.node.Data)
	return nil
}

func (f *memFile) Close() error { return nil }

type memObject struct{ *bytes.Reader }

func (memObject) Close() error { return nil }

func (d *MemDisk) Open(name string) (disk.Object, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.Live.Files[name]
	if node == nil {
		return nil, PathError("open", name, fs.ErrNotExist)
	}
	return memObject{bytes.NewReader(bytes.Clone(node.Data))}, nil
}

func (d *MemDisk) Size(name string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.Live.Files[name]
	if node == nil {
		return 0, PathError("stat", name, fs.ErrNotExist)
	}
	return int64(len(node.Data)), nil
}

func (d *MemDisk) Link(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.Live.Files[from]
	switch {
	case node == nil || !d.Live.Dirs[path.Dir(to)]:
		return PathError("link", from, fs.ErrNotExist)
	case d.Live.Files[to] != nil:
		return PathError("link", to, fs.ErrExist)
	}
	d.change(change{kind: "link", from: from, to: to, node: node})
	return nil
}

// LinkFrom gives a file of another MemDisk a name in this one.
func (d *MemDisk) LinkFrom(from disk.Disk, _ disk.Object, name, to string) error {
	if f, ok := from.(*FaultDisk); ok {
		from = f.Disk
	}
	other, ok := from.(*MemDisk)
	if !ok {
		return errors.ErrUnsupported
	}
	other.mu.Lock()
	node := other.Live.Files[name]
	other.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case node == nil || !d.Live.Dirs[path.Dir(to)]:
		return PathError("link", name, fs.ErrNotExist)
	case d.Live.Files[to] != nil:
		return PathError("link", to, fs.ErrExist)
	}
	d.change(change{kind: "link", to: to, node: node})
	return nil
}

func (d *MemDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.Live.Files[from]
	if node == nil || !d.Live.Dirs[path.Dir(to)] {
		return PathError("rename", from, fs.ErrNotExist)
	}
	d.change(change{kind: "rename", from: from, to: to, node: node})
	return nil
}

func (d *MemDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Live.Files[name] == nil && !d.Live.Dirs[name] {
		return PathError("remove", name, fs.ErrNotExist)
	}
	if d.Live.Dirs[name] && len(d.inside(name)) > 0 {
		return PathError("remove", name, syscall.ENOTEMPTY)
	}
	d.change(change{kind: "remove", to: name})
	return nil
}

func (d *MemDisk) Mkdir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.Live.Dirs[path.Dir(name)] {
		return PathError("mkdir", name, fs.ErrNotExist)
	}
	if d.Live.Dirs[name] {
		return PathError("mkdir", name, fs.ErrExist)
	}
	d.change(change{kind: "mkdir", to: name})
	return nil
}

func (d *MemDisk) SyncDir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.Live.Dirs[name] {
		return PathError("sync", name, fs.ErrNotExist)
	}
	d.pending = slices.DeleteFunc(d.pending, func(c change) bool {
		if c.touches(name) {
			d.durable.apply(c)
			return true
		}
		return false
	})
	return nil
}

func (d *MemDisk) inside(dir string) []fs.DirEntry {
	var entries []fs.DirEntry
	for name, node := range d.Live.Files {
		if path.Dir(name) == dir {
			entries = append(entries, memEntry{path.Base(name), int64(len(node.Data)), false})
		}
	}
	for name := range d.Live.Dirs {
		if path.Dir(name) == dir && name != "." {
			entries = append(entries, memEntry{path.Base(name), 0, true})
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

func (d *MemDisk) ReadDir(name string) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.Live.Dirs[name] {
		return nil, PathError("readdir", name, fs.ErrNotExist)
	}
	return d.inside(name), nil
}

func (d *MemDisk) Names(name string) ([]string, error) {
	entries, err := d.ReadDir(name)
	var names []string
	for _, e := range slices.Backward(entries) {
		names = append(names, e.Name())
	}
	return names, err
}

type memEntry struct {
	name string
	size int64
	dir  bool
}

func (e memEntry) Name() string               { return e.name }
func (e memEntry) IsDir() bool                { return e.dir }
func (e memEntry) Size() int64                { return e.size }
func (e memEntry) Info() (fs.FileInfo, error) { return e, nil }
func (e memEntry) ModTime() time.Time         { return time.Time{} }
func (e memEntry) Sys() any                   { return nil }

func (e memEntry) Type() fs.FileMode {
	if e.dir {
		return fs.ModeDir
	}
	return 0
}

func (e memEntry) Mode() fs.FileMode { return e.Type() }

// Ways to crash.
func KeepAll() bool  { return true }
func KeepNone() bool { return false }

func KeepSome(seed uint64) func() bool {
	rng := rand.New(rand.NewPCG(seed, 7))
	return func() bool { return rng.IntN(2) == 0 }
}

// ContentsOf copies what a disk holds.
func ContentsOf(d *MemDisk) map[string]string {
	all := map[string]string{}
	for name, node := range d.Live.Files {
		all[name] = string(node.Data)
	}
	return all
}

// Settle makes all of a disk durable: a test has changed it behind its back.
func Settle(d *MemDisk) {
	d.pending = nil
	d.durable = names{maps.Clone(d.Live.Files), maps.Clone(d.Live.Dirs)}
	for _, node := range d.Live.Files {
		node.synced = len(node.Data)
	}
}
