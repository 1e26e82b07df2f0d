package bucket

import (
	"io"
	"net/http"
	"sync/atomic"
)

// Requests counts requests by what stores charge for.
type Requests struct {
	Put    int64 // objects, records among them, and parts, begins and ends of uploads
	Copy   int64
	Get    int64 // with ranges and without
	Head   int64
	List   int64
	Delete int64 // many objects or one
	Other  int64

	Sent     int64 // bytes of objects and parts
	Received int64 // bytes of answers
	Retries  int64 // tries after the first one; they are among the requests
}

// Sub returns the requests of r that are not among those of earlier.
func (r Requests) Sub(earlier Requests) Requests {
	return Requests{Put: r.Put - earlier.Put, Copy: r.Copy - earlier.Copy, Get: r.Get - earlier.Get,
		Head: r.Head - earlier.Head, List: r.List - earlier.List, Delete: r.Delete - earlier.Delete,
		Other: r.Other - earlier.Other, Sent: r.Sent - earlier.Sent, Received: r.Received - earlier.Received,
		Retries: r.Retries - earlier.Retries}
}

// Kinds returns the requests by kind.
func (r Requests) Kinds() map[string]int64 {
	return map[string]int64{"put": r.Put, "copy": r.Copy, "get": r.Get, "head": r.Head, "list": r.List,
		"delete": r.Delete, "other": r.Other}
}

// counter is a transport that counts.
type counter struct {
	next                                        http.RoundTripper
	put, copied, get, head, list, delete, other atomic.Int64
	sent, received, retries                     atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		c.copied.Add(1)
	case r.Method == http.MethodPut, r.Method == http.MethodPost && (query.Has("uploads") || query.Has("uploadId")):
		c.put.Add(1)
		c.sent.Add(max(r.ContentLength, 0))
	case r.Method == http.MethodGet && (query.Has("list-type") || query.Has("uploads")):
		c.list.Add(1)
	case r.Method == http.MethodGet && len(query) == 0:
		c.get.Add(1)
	case r.Method == http.MethodHead:
		c.head.Add(1)
	case r.Method == http.MethodDelete, r.Method == http.MethodPost && query.Has("delete"):
		c.delete.Add(1)
	default:
		c.other.Add(1)
	}
	answer, err := c.next.RoundTrip(r)
	if err == nil && answer.Body != nil {
		answer.Body = &countedBody{answer.Body, &c.received}
	}
	return answer, err
}

// countedBody counts the bytes that are read from the body of an answer.
type countedBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}

func (c *counter) read() Requests {
	return Requests{Put: c.put.Load(), Copy: c.copied.Load(), Get: c.get.Load(), Head: c.head.Load(),
		List: c.list.Load(), Delete: c.delete.Load(), Other: c.other.Load(),
		Sent: c.sent.Load(), Received: c.received.Load(), Retries: c.retries.Load()}
}
