package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"
)

// Sizes of reads. The first one tells the size of the object, too, and is all of a commit
// record; who reads on gets twice as much each time.
const (
	firstRead = 64 << 10
	largeRead = 4 << 20
)

// Stat asks for an object without its bytes, and for the checksum that the store has of it. If
// there is none, the error is a *Fault that is Missing.
func (c *Client) Stat(ctx context.Context, name string) (info minio.ObjectInfo, err error) {
	err = c.Do(ctx, OpGet, name, 0, func(ctx context.Context) (err error) {
		info, err = c.Core.StatObject(ctx, c.at.Bucket, c.Key(name),
			minio.StatObjectOptions{Checksum: true})
		return err
	})
	if err != nil {
		return minio.ObjectInfo{}, err
	}
	return info, nil
}

// Open opens an object. It costs one request, which brings the first bytes, too. Reads fail if
// the object is replaced meanwhile, and when ctx ends. If there is no such object, the error
// is a *Fault that is Missing.
func (c *Client) Open(ctx context.Context, name string) (*Object, error) {
	o := &Object{c: c, ctx: ctx, name: name, next: firstRead}
	err := c.Do(ctx, OpGet, name, 0, func(ctx context.Context) error { return o.begin(ctx) })
	if f := (*Fault)(nil); errors.As(err, &f) && f.Code == "InvalidRange" { // an empty object has no range
		var info minio.ObjectInfo
		info, err = c.Stat(ctx, name)
		o.etag, o.size = info.ETag, info.Size
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Object is an open object. It holds the bytes of one read. Its methods may be called from
// several goroutines.
type Object struct {
	c    *Client
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
func (o *Object) begin(ctx context.Context) error {
	var opts minio.GetObjectOptions
	if err := opts.SetRange(0, firstRead-1); err != nil {
		return err
	}
	body, info, header, err := o.c.Core.GetObject(ctx, o.c.at.Bucket, o.c.Key(o.name), opts)
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

// Size returns the bytes of the object when it was opened.
func (o *Object) Size() int64 { return o.size }

// ETag returns what tells the object from others of its name.
func (o *Object) ETag() string { return o.etag }

// Close gives the memory back.
func (o *Object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data = nil
	return nil
}

// ReadAt implements io.ReaderAt.
func (o *Object) ReadAt(p []byte, at int64) (n int, err error) {
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
func (o *Object) piece(p []byte, at int64) (int, error) {
	if at < o.at || at >= o.at+int64(len(o.data)) {
		if err := o.fill(at, int64(len(p))); err != nil {
			return 0, err
		}
	}
	return copy(p, o.data[at-o.at:]), nil
}

// fill reads want bytes from at on, and more where that is cheap: reads in order get longer,
// and a read near the end begins before it, since readers of Parquet go backwards there.
func (o *Object) fill(at, want int64) error {
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
	err := o.c.Range(o.ctx, o.name, o.etag, at, buffer)
	if err != nil {
		return err
	}
	o.data, o.at = buffer, at
	return nil
}

// Range reads the bytes of an object from at on into all of p. The error is a *Fault if the
// object has another ETag, or is shorter; then the bytes of p are of no use.
func (c *Client) Range(ctx context.Context, name, etag string, at int64, p []byte) error {
	if etag == "" { // a file that was put behind the back of a gateway
		return c.Refusal(OpGet, name, "the store gives the object no ETag, which tells its versions apart: store it "+
			"through the protocol of S3")
	}
	size := int64(len(p))
	err := c.Do(ctx, OpGet, name, size, func(ctx context.Context) error {
		var opts minio.GetObjectOptions
		err := errors.Join(opts.SetRange(at, at+size-1), opts.SetMatchETag(etag))
		if err != nil {
			return err
		}
		body, info, _, err := c.Core.GetObject(ctx, c.at.Bucket, c.Key(name), opts)
		if err != nil {
			return err
		}
		defer body.Close()
		switch {
		case info.ETag != etag: // a server that does not know the condition
			return c.Refusal(OpGet, name, replaced)
		case info.Size != size:
			return c.Refusal(OpGet, name, fmt.Sprintf("the answer has %d bytes, and %d were asked for", info.Size,
				size))
		}
		_, err = io.ReadFull(body, p)
		return err
	})
	if f := (*Fault)(nil); errors.As(err, &f) && f.Changed() {
		return c.Refusal(OpGet, name, replaced)
	}
	return err
}

const replaced = "the object was replaced while it was read"
