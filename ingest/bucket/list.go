package bucket

import (
	"context"
	"errors"
	"strings"

	"github.com/minio/minio-go/v7"
)

// stopped is an error of the function that a listing calls.
type stopped struct{ err error }

func (e *stopped) Error() string { return e.err.Error() }

// Entry is an object of a listing, or a folder.
type Entry struct {
	Name   string
	Size   int64
	ETag   string
	Folder bool // there are objects below it; only where a listing is not deep
}

// List calls f for the objects below a folder, by name, or for what is directly in it. It
// takes one request for 1,000 of them. After a fault it goes on behind the last key. An error
// of f ends the listing and is returned.
func (c *Client) List(ctx context.Context, folder string, deep bool, f func(Entry) error) error {
	return c.ListPart(ctx, Part{Folder: folder, Deep: deep}, f)
}

// Part is a part of a listing.
type Part struct {
	Folder string
	Deep   bool   // folders below it, too
	Begin  string // beginning of the names in Folder that are listed
	After  string // names in Folder up to this one are passed over; empty: none
}

// ListPart is List for a part of the names. A store may have old software that lists the names
// up to After, too.
func (c *Client) ListPart(ctx context.Context, part Part, f func(Entry) error) error {
	folder, deep, prefix, after := part.Folder, part.Deep, c.prefix(part.Folder)+part.Begin, ""
	if part.After != "" {
		after = c.prefix(folder) + part.After
	}
	for try := 0; ; try++ {
		seen, err := c.page(ctx, prefix, &after, deep, f)
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
		if fault := c.Fault(OpList, folder, err); try == Tries-1 || !fault.Passing() {
			return fault
		}
		if err := c.Pause(ctx, try); err != nil {
			return err
		}
	}
}

// page lists from after on, and moves after forward.
func (c *Client) page(ctx context.Context, prefix string, after *string, deep bool,
	f func(Entry) error) (seen bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	owner, from := false, *after
	for o := range c.Core.ListObjectsIter(ctx, c.at.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: deep,
		StartAfter: *after, FetchOwner: &owner}) {
		if o.Err != nil {
			return seen, o.Err
		}
		if o.Key <= from && from != "" {
			continue // keys that begin with the last one
		}
		*after, seen = max(*after, o.Key), true // folders come behind the objects of their page
		folder := strings.HasSuffix(o.Key, "/")
		if o.Key == prefix || folder && deep {
			continue // a console's sign for a folder
		}
		err := f(Entry{Name: c.name(strings.TrimSuffix(o.Key, "/")), Size: o.Size, ETag: o.ETag, Folder: folder})
		if err != nil {
			return seen, &stopped{err}
		}
	}
	return seen, nil
}

// Any tells whether an object lies below a folder. It takes one request.
func (c *Client) Any(ctx context.Context, folder string) (some bool, err error) {
	err = c.Do(ctx, OpList, folder, 0, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range c.Core.ListObjectsIter(ctx, c.at.Bucket, minio.ListObjectsOptions{Prefix: c.prefix(folder),
			Recursive: true, MaxKeys: 1}) {
			some = o.Err == nil
			return o.Err
		}
		return nil
	})
	return some, err
}
