package sinks

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memDisk is a file system that forgets in a crash what was not fsynced: the
// bytes of files, and separately every change of a name, each of which survives
// or not on its own. Real ones lose less; a protocol that is right here is
// right there.
//
// A change of names (create, link, rename, remove, mkdir) is durable once one
// of the folders it touches has been fsynced. A rename is never half done.
type memDisk struct {
	mu      sync.Mutex
	live    names
	durable names
	pending []change // of live, not of durable
}

type names struct {
	files map[string]*inode
	dirs  map[string]bool
}

type inode struct {
	data   []byte
	synced int // so many bytes survive
}

type change struct {
	kind     string
	from, to string
	node     *inode
}

func newMemDisk() *memDisk {
	empty := func() names { return names{map[string]*inode{}, map[string]bool{".": true}} }
	return &memDisk{live: empty(), durable: empty()}
}

func (c *change) touches(dir string) bool {
	return path.Dir(c.to) == dir || c.from != "" && path.Dir(c.from) == dir
}

// apply makes a change if it can be made.
func (n *names) apply(c change) {
	if !n.dirs[path.Dir(c.to)] {
		return // the folder is lost, and what was in it
	}
	switch c.kind {
	case "create", "link":
		if n.files[c.to] == nil {
			n.files[c.to] = c.node
		}
	case "rename":
		n.files[c.to] = c.node
		if n.files[c.from] == c.node {
			delete(n.files, c.from)
		}
	case "remove":
		delete(n.files, c.to)
		delete(n.dirs, c.to)
	case "mkdir":
		n.dirs[c.to] = true
	}
}

func (d *memDisk) change(c change) {
	d.live.apply(c)
	d.pending = append(d.pending, c)
}

// crash returns the disk as it is found afterwards. keep decides for each
// change of names, and for each file's bytes, whether what was not fsynced
// survives.
func (d *memDisk) crash(keep func() bool) *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newMemDisk()
	state := d.durable
	for _, c := range d.pending {
		if keep() {
			state.apply(c)
		}
	}
	copies := map[*inode]*inode{}
	for name, node := range state.files {
		if copies[node] == nil {
			n := node.synced
			if keep() {
				n = len(node.data)
			}
			copies[node] = &inode{data: bytes.Clone(node.data[:n]), synced: n}
		}
		after.live.files[name] = copies[node]
		after.durable.files[name] = copies[node]
	}
	for dir := range state.dirs {
		after.live.dirs[dir], after.durable.dirs[dir] = true, true
	}
	return after
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func (d *memDisk) create(name string) (diskFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live.dirs[path.Dir(name)] {
		return nil, pathError("create", name, fs.ErrNotExist)
	}
	if d.live.files[name] != nil {
		return nil, pathError("create", name, fs.ErrExist)
	}
	f := &memFile{d: d, node: &inode{}}
	d.change(change{kind: "create", to: name, node: f.node})
	return f, nil
}

type memFile struct {
	d    *memDisk
	node *inode
}

func (f *memFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.node.data = append(f.node.data, p...)
	return len(p), nil
}

func (f *memFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.node.synced = len(f.node.data)
	return nil
}

func (f *memFile) Close() error { return nil }

type memObject struct{ *bytes.Reader }

func (memObject) Close() error { return nil }

func (d *memDisk) open(name string) (Object, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.live.files[name]
	if node == nil {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	return memObject{bytes.NewReader(bytes.Clone(node.data))}, nil
}

func (d *memDisk) size(name string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.live.files[name]
	if node == nil {
		return 0, pathError("stat", name, fs.ErrNotExist)
	}
	return int64(len(node.data)), nil
}

func (d *memDisk) link(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.live.files[from]
	switch {
	case node == nil || !d.live.dirs[path.Dir(to)]:
		return pathError("link", from, fs.ErrNotExist)
	case d.live.files[to] != nil:
		return pathError("link", to, fs.ErrExist)
	}
	d.change(change{kind: "link", from: from, to: to, node: node})
	return nil
}

func (d *memDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.live.files[from]
	if node == nil || !d.live.dirs[path.Dir(to)] {
		return pathError("rename", from, fs.ErrNotExist)
	}
	d.change(change{kind: "rename", from: from, to: to, node: node})
	return nil
}

func (d *memDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live.files[name] == nil && !d.live.dirs[name] {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if d.live.dirs[name] && len(d.inside(name)) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	d.change(change{kind: "remove", to: name})
	return nil
}

func (d *memDisk) mkdir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live.dirs[path.Dir(name)] {
		return pathError("mkdir", name, fs.ErrNotExist)
	}
	if d.live.dirs[name] {
		return pathError("mkdir", name, fs.ErrExist)
	}
	d.change(change{kind: "mkdir", to: name})
	return nil
}

func (d *memDisk) syncDir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live.dirs[name] {
		return pathError("sync", name, fs.ErrNotExist)
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

func (d *memDisk) inside(dir string) []fs.DirEntry {
	var entries []fs.DirEntry
	for name, node := range d.live.files {
		if path.Dir(name) == dir {
			entries = append(entries, memEntry{path.Base(name), int64(len(node.data)), false})
		}
	}
	for name := range d.live.dirs {
		if path.Dir(name) == dir && name != "." {
			entries = append(entries, memEntry{path.Base(name), 0, true})
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

func (d *memDisk) readDir(name string) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live.dirs[name] {
		return nil, pathError("readdir", name, fs.ErrNotExist)
	}
	return d.inside(name), nil
}

func (d *memDisk) names(name string) ([]string, error) {
	entries, err := d.readDir(name)
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
func keepAll() bool  { return true }
func keepNone() bool { return false }

func keepSome(seed uint64) func() bool {
	rng := rand.New(rand.NewPCG(seed, 7))
	return func() bool { return rng.IntN(2) == 0 }
}
