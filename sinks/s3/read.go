package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Sizes of reads. The first one tells the size of the object, too, and is all of a commit
// record; who reads on gets twice as much each time.
const (
	firstRead = 64 << 10
	largeRead = 4 << 20
)

// Open implements sinks.Reader. It costs one request, which brings the first bytes, too.
// Reads fail if the object is replaced meanwhile.
func (s *Store) Open(ctx context.Context, name string) (sinks.Object, error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (s *Store) open(ctx context.Context, name string) (*object, error) {
	o := &object{s: s, ctx: ctx, name: name, next: firstRead}
	err := s.do(ctx, opGet, name, 0, func(ctx context.Context) error { return o.begin(ctx) })
	if f := (*Fault)(nil); errors.As(err, &f) && f.Code == "InvalidRange" { // an empty object has no range
		var info found
		var there bool
		if info, there, err = s.head(ctx, name); err == nil && !there {
			err = f
		}
		o.etag, o.size = info.etag, info.size
	}
	if err != nil {
		return nil, notFound(name, err)
	}
	return o, nil
}

// object is an open object. It holds the bytes of one read.
type object struct {
	s    *Store
	ctx  context.Context
	name string
	etag string
	size int64

	mu   sync.Mutex
	data []byte // bytes from at on
	at   int64
	next int64 // size of the next read, if it continues this one
}

// begin reads the first bytes.
func (o *object) begin(ctx context.Context) error {
	var opts minio.GetObjectOptions
	if err := opts.SetRange(0, firstRead-1); err != nil {
		return err
	}
	body, info, header, err := o.s.core.GetObject(ctx, o.s.at.Bucket, o.s.key(o.name), opts)
	if err != nil {
		return err
	}
	defer body.Close()
	o.etag, o.size = info.ETag, info.Size
	if _, total, ok := strings.Cut(header.Get("Content-Range"), "/"); ok {
		if o.size, err = strconv.ParseInt(total, 10, 64); err != nil {
			return fmt.Errorf("a range of an unknown size: %q", short(header.Get("Content-Range")))
		}
	}
	o.data = make([]byte, min(o.size, firstRead))
	_, err = io.ReadFull(body, o.data)
	return err
}

// Size implements sinks.Object.
func (o *object) Size() int64 { return o.size }

// Close implements sinks.Object.
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data = nil
	return nil
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("a read before the begin of a file")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for n < len(p) {
		if at+int64(n) >= o.size {
			return n, io.EOF
		}
		k, err := o.piece(p[n:], at+int64(n))
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// piece copies bytes from at on, after a read if they are not held.
func (o *object) piece(p []byte, at int64) (int, error) {
	if at < o.at || at >= o.at+int64(len(o.data)) {
		if err := o.fill(at, int64(len(p))); err != nil {
			return 0, err
		}
	}
	return copy(p, o.data[at-o.at:]), nil
}

// fill reads want bytes from at on, and more where that is cheap: reads in order get longer,
// and a read near the end begins before it, since readers of Parquet go backwards there.
func (o *object) fill(at, want int64) error {
	if at == o.at+int64(len(o.data)) {
		o.next = min(2*o.next, largeRead)
	} else {
		o.next = firstRead
	}
	size := min(max(want, o.next), largeRead)
	if o.size-at < size {
		at = max(0, o.size-max(size, want))
		size = o.size - at
	}
	buffer := o.data[:0]
	if int64(cap(buffer)) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:size]
	o.data = nil
	err := o.s.do(o.ctx, opGet, o.name, size, func(ctx context.Context) error {
		var opts minio.GetObjectOptions
		err := errors.Join(opts.SetRange(at, at+size-1), opts.SetMatchETag(o.etag))
		if err != nil {
			return err
		}
		body, info, _, err := o.s.core.GetObject(ctx, o.s.at.Bucket, o.s.key(o.name), opts)
		if err != nil {
			return err
		}
		defer body.Close()
		if info.ETag != o.etag || info.Size != size {
			return o.s.refusal(opGet, o.name, fmt.Sprintf("the answer has %d bytes of ETag %s, and %d of %s were "+
				"asked for", info.Size, info.ETag, size, o.etag))
		}
		_, err = io.ReadFull(body, buffer)
		return err
	})
	if f := (*Fault)(nil); errors.As(err, &f) && f.changed() {
		err = o.s.refusal(opGet, o.name, "the object was replaced while it was read")
	}
	if err != nil {
		return notFound(o.name, err)
	}
	o.data, o.at = buffer, at
	return nil
}

// List implements sinks.Reader: one request for 1,000 files.
func (s *Store) List(ctx context.Context, folder string, f func(sinks.Entry) error) error {
	var staged []string
	err := s.each(ctx, folder, true, func(name string, size int64) error {
		if folder == record.StagingFolder {
			staged = append(staged, name)
		}
		return f(sinks.Entry{Name: name, Size: size})
	})
	if err == nil && folder == record.StagingFolder {
		s.noteListed(staged)
	}
	return err
}

// Names implements sinks.Reader: one request for 1,000 names.
func (s *Store) Names(ctx context.Context, folder string) (names []string, err error) {
	err = s.each(ctx, folder, false, func(name string, _ int64) error {
		names = append(names, path.Base(name))
		return nil
	})
	return names, err
}

// stopped is an error of the function that a listing calls.
type stopped struct{ err error }

func (e *stopped) Error() string { return e.err.Error() }

// each calls f for the objects below a folder, or for what is directly in it. After a fault
// it goes on behind the last key.
func (s *Store) each(ctx context.Context, folder string, deep bool, f func(name string, size int64) error) error {
	after, prefix := "", s.prefix(folder)
	for try := 0; ; try++ {
		seen, err := s.page(ctx, prefix, &after, deep, f)
		stop := (*stopped)(nil)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &stop):
			return stop.err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if seen {
			try = 0
		}
		if fault := s.fault(opList, folder, err); try == tries-1 || !fault.Passing() {
			return fault
		}
		if err := s.pause(ctx, try); err != nil {
			return err
		}
	}
}

// page lists from after on, and moves after forward.
func (s *Store) page(ctx context.Context, prefix string, after *string, deep bool,
	f func(name string, size int64) error) (seen bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	owner := false
	for o := range s.core.ListObjectsIter(ctx, s.at.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: deep,
		StartAfter: *after, FetchOwner: &owner}) {
		if o.Err != nil {
			return seen, o.Err
		}
		*after, seen = o.Key, true
		folder := strings.HasSuffix(o.Key, "/")
		if o.Key == prefix || folder && deep {
			continue // what consoles make for folders
		}
		if err := f(s.name(strings.TrimSuffix(o.Key, "/")), o.Size); err != nil {
			return seen, &stopped{err}
		}
	}
	return seen, nil
}
