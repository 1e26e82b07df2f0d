package filesys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/ingest/bucket"
)

// buckets is how this process reaches buckets, and what it has seen there.
type buckets struct {
	ctx    context.Context
	config bucket.Config

	mu      sync.Mutex
	clients map[string]*bucket.Client
	seen    map[string]entry // objects, by address
	faults  map[string]error // reads that have failed since the last Check
	memory  int64            // bytes that may still be read ahead
}

// current is set by Use: names of files reach the readers of all formats without anything beside
// them.
var current atomic.Pointer[buckets]

// mostSeen bounds the objects that are remembered, which take some 200 bytes each. What is
// forgotten is asked for again.
const mostSeen = 1 << 16

// Use says how buckets are reached until end is called: by the Endpoint and what follows it in
// config. Requests end with ctx. memory bounds the bytes that are read ahead of all readers; each
// open object may have smallRead more.
func Use(ctx context.Context, config bucket.Config, memory int64) (end func()) {
	b := &buckets{ctx: ctx, config: config, clients: map[string]*bucket.Client{}, seen: map[string]entry{},
		faults: map[string]error{}, memory: memory}
	before := current.Swap(b)
	return func() {
		current.CompareAndSwap(b, before)
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.clients {
			c.Close()
		}
	}
}

// at returns what reaches the bucket of an address, and the key.
func at(name string) (b *buckets, c *bucket.Client, key string, err error) {
	rest, _ := inBucket(Clean(name))
	of, key, _ := strings.Cut(rest, "/")
	if b = current.Load(); b == nil {
		return nil, nil, "", fmt.Errorf("%s: nobody has said how buckets are reached", name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c = b.clients[of]; c == nil {
		config := b.config
		if config.Address, err = bucket.ParseAddress(bucket.Scheme + of); err != nil {
			return nil, nil, "", err
		}
		if c, err = bucket.New(config); err != nil {
			return nil, nil, "", err
		}
		b.clients[of] = c
	}
	return b, c, key, nil
}

// note remembers an object as it is.
func (b *buckets) note(name string, e entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) >= mostSeen {
		clear(b.seen)
	}
	b.seen[name] = e
}

// failed forgets how an object was that could not be read, and remembers why, unless it is
// another one now.
func (b *buckets) failed(name string, err error) {
	f := (*bucket.Fault)(nil)
	broken := errors.As(err, &f) && !f.Missing() && !f.Refused()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, name)
	if broken && len(b.faults) < mostSeen {
		b.faults[name] = err
	}
}

// take returns as much of size as may be read ahead, at least smallRead, and what of it release
// gives back.
func (b *buckets) take(size int64) (may, held int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; size > smallRead; size /= 4 {
		if size <= b.memory {
			b.memory -= size
			return size, size
		}
	}
	return min(size, smallRead), 0
}

func (b *buckets) release(held int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory += held
}

// entry is an object or a folder. It implements fs.FileInfo and fs.DirEntry.
type entry struct {
	name   string
	size   int64
	etag   string
	folder bool
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return e.size }
func (e entry) IsDir() bool                { return e.folder }
func (e entry) ModTime() time.Time         { return time.Time{} } // ETags tell objects apart
func (e entry) Sys() any                   { return nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }

// Mode implements fs.FileInfo.
func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// notThere is the error for a name that no object begins with.
func notThere(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// isMissing tells whether there is no such object.
func isMissing(err error) bool {
	f := (*bucket.Fault)(nil)
	return errors.As(err, &f) && f.Missing()
}

// statObject returns an object as this process has seen it first, or a folder.
func statObject(name string) (fs.FileInfo, error) {
	b, c, key, err := at(name)
	if err != nil {
		return nil, err
	}
	name = Clean(name)
	if key == "" {
		return entry{name: Base(name), folder: true}, isThere(b, c, name, "")
	}
	b.mu.Lock()
	e, known := b.seen[name]
	b.mu.Unlock()
	if known {
		return e, nil
	}
	info, err := c.Stat(b.ctx, key)
	switch {
	case err == nil:
		e = entry{name: path.Base(key), size: info.Size, etag: info.ETag}
		b.note(name, e)
		return e, nil
	case !isMissing(err):
		return nil, err
	}
	return entry{name: path.Base(key), folder: true}, isThere(b, c, name, key)
}

// errEnough ends a listing.
var errEnough = errors.New("this is enough")

// isThere returns an error unless an object lies below a key, or if that is empty, if there is
// no bucket.
func isThere(b *buckets, c *bucket.Client, name, key string) error {
	some, err := c.Any(b.ctx, folderOf(key))
	switch {
	case err != nil:
		return err
	case !some && key != "":
		return notThere("stat", name)
	}
	return nil
}

// folderOf returns what bucket.Client.List calls the folder of a key.
func folderOf(key string) string {
	if key == "" {
		return "."
	}
	return key
}

// listObjects calls f with what is in a folder, until f returns false, and notes the objects. A
// key whose element is empty or of dots has no name here, and is left out.
func listObjects(name string, f func(fs.DirEntry) bool) error {
	b, c, key, err := at(name)
	if err != nil {
		return err
	}
	name = Clean(name)
	some := key == ""
	err = c.List(b.ctx, folderOf(key), false, func(found bucket.Entry) error {
		some = true
		e := entry{name: strings.TrimPrefix(found.Name, key+"/"), size: found.Size, etag: found.ETag,
			folder: found.Folder}
		if e.name == "" || e.name == "." || e.name == ".." || strings.HasPrefix(e.name, "/") {
			return nil
		}
		if !e.folder {
			b.note(Join(name, e.name), e)
		}
		if !f(e) {
			return errEnough
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case !some:
		return notThere("open", name)
	}
	return nil
}

// Check returns the fault of a read of an object that has failed since the last Check. Then the
// next Stat asks the bucket again. Local files have no such faults.
func Check(name string) error {
	b := current.Load()
	if b == nil || !IsBucket(name) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.faults[Clean(name)]
	delete(b.faults, Clean(name))
	return err
}
