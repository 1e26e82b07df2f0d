package sinks

import (
	"bytes"
	"errors"
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

// faultDisk lets a test have a say before, and after, each call that changes
// the disk below. An error from before stops the call; one from after hides
// that it worked. Calls that only look are asked for with op "look".
type faultDisk struct {
	disk
	before func(op, name string) error
	after  func(op, name string) error
}

func (d *faultDisk) ask(op, name string, do func() error) error {
	if d.before != nil {
		if err := d.before(op, name); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && d.after != nil {
		err = d.after(op, name)
	}
	return err
}

func (d *faultDisk) create(name string) (f diskFile, err error) {
	err = d.ask("create", name, func() error { f, err = d.disk.create(name); return err })
	if err != nil {
		return nil, err
	}
	return &faultFile{f, d, name}, nil
}

type faultFile struct {
	diskFile
	d    *faultDisk
	name string
}

// Write writes the first half where a disk, not a dead process, stops it.
func (f *faultFile) Write(p []byte) (n int, err error) {
	asked := false
	err = f.d.ask("write", f.name, func() error { asked = true; n, err = f.diskFile.Write(p); return err })
	if !asked && !errors.Is(err, errCrashed) {
		n, _ = f.diskFile.Write(p[:len(p)/2])
	}
	return n, err
}

func (f *faultFile) Sync() error { return f.d.ask("sync", f.name, f.diskFile.Sync) }

// Close releases the file in any case, as that of an operating system does.
func (f *faultFile) Close() error {
	asked := false
	err := f.d.ask("close", f.name, func() error { asked = true; return f.diskFile.Close() })
	if !asked {
		f.diskFile.Close()
	}
	return err
}

func (d *faultDisk) link(from, to string) error {
	return d.ask("link", to, func() error { return d.disk.link(from, to) })
}

func (d *faultDisk) rename(from, to string) error {
	return d.ask("rename", to, func() error { return d.disk.rename(from, to) })
}

func (d *faultDisk) remove(name string) error {
	return d.ask("remove", name, func() error { return d.disk.remove(name) })
}

func (d *faultDisk) mkdir(name string) error {
	return d.ask("mkdir", name, func() error { return d.disk.mkdir(name) })
}

func (d *faultDisk) syncDir(name string) error {
	return d.ask("syncdir", name, func() error { return d.disk.syncDir(name) })
}

func (d *faultDisk) open(name string) (o Object, err error) {
	err = d.ask("look", name, func() error { o, err = d.disk.open(name); return err })
	if err != nil && o != nil {
		o.Close()
		return nil, err
	}
	return &faultObject{o, d, name}, err
}

type faultObject struct {
	Object
	d    *faultDisk
	name string
}

func (o *faultObject) ReadAt(p []byte, at int64) (n int, err error) {
	err = o.d.ask("look", o.name, func() error { n, err = o.Object.ReadAt(p, at); return err })
	return n, err
}

func (d *faultDisk) size(name string) (n int64, err error) {
	err = d.ask("look", name, func() error { n, err = d.disk.size(name); return err })
	return n, err
}

func (d *faultDisk) readDir(name string) (es []fs.DirEntry, err error) {
	err = d.ask("look", name, func() error { es, err = d.disk.readDir(name); return err })
	return es, err
}

func (d *faultDisk) names(name string) (names []string, err error) {
	err = d.ask("look", name, func() error { names, err = d.disk.names(name); return err })
	return names, err
}
