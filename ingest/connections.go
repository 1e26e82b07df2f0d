package ingest

import (
	"context"
	"net"
	"sync"
	"time"
)

// connections are those of one outbox. kafka-go leaves a request that was
// given up to its deadline; closing its connection ends it now.
type connections struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 3 * time.Second}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	if c.open == nil {
		c.open = map[net.Conn]struct{}{}
	}
	k := &connection{Conn: conn, of: c}
	c.open[k] = struct{}{}
	return k, nil
}

func (c *connections) close() {
	c.mu.Lock()
	open := c.open
	c.open, c.closed = nil, true
	c.mu.Unlock()
	for conn := range open {
		conn.(*connection).Conn.Close()
	}
}

// connection leaves the list when it is closed.
type connection struct {
	net.Conn
	of *connections
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
