package bucket

import (
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
	Delete int64 // of many objects or of one
	Other  int64
	Sent   int64 // bytes of objects and parts
}

// counter is a transport that counts.
type counter struct {
	next                                              http.RoundTripper
	put, copied, get, head, list, delete, other, sent atomic.Int64
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
	return c.next.RoundTrip(r)
}

func (c *counter) read() Requests {
	return Requests{Put: c.put.Load(), Copy: c.copied.Load(), Get: c.get.Load(), Head: c.head.Load(),
		List: c.list.Load(), Delete: c.delete.Load(), Other: c.other.Load(), Sent: c.sent.Load()}
}
