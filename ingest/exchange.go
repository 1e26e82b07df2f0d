package ingest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"

	"entropipe/schemas"
)

const (
	// callTimeout is for requests that a broker answers at once, and for the
	// silence in the middle of a longer answer.
	callTimeout = 5 * time.Second

	minFetchVersion = 4 // Kafka 0.11: batches, transactions
	readCommitted   = 1

	readBuffer = 64 << 10
)

// answer is what one fetch brought.
type answer struct {
	code      int16 // Kafka's error
	throttled bool
	stable    int64 // last stable offset; -1: unknown
	wire      int64 // bytes of the record set
	err       error // what was wrong with the first batch that could not be used

	messages []schemas.Message
	next     int64 // where to go on
	used     int64 // cost of the messages
	extra    int64 // memory beside the arena
	full     bool  // the budget or the limit was reached
	need     int64 // size of a first batch that did not fit into the answer; 0: it did
}

// ApiKey makes an answer pass through kafka-go's Transport.
func (*answer) ApiKey() protocol.ApiKey { return protocol.Fetch }

// fetchCall is a fetch request for one partition. kafka-go routes it to the
// leader and lends a connection; the exchange is done here.
type fetchCall struct {
	*fetch.Request
	ctx      context.Context
	clientID string
	wait     time.Duration
	version  int16
	dec      *decoder
	br       *bufio.Reader

	state atomic.Int32
	done  chan struct{}
	ans   *answer
	err   error
}

const (
	callWaiting = iota
	callBegun
	callAbandoned
)

var errAbandoned = errors.New("the caller is gone")

// Required tells kafka-go to leave the exchange to RawExchange.
func (f *fetchCall) Required(versions map[protocol.ApiKey]int16) bool {
	f.version = versions[protocol.Fetch]
	return true
}

// RawExchange sends the request and reads the answer. It runs in a goroutine of
// the connection; an error closes the connection.
func (f *fetchCall) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if !f.state.CompareAndSwap(callWaiting, callBegun) {
		return nil, errAbandoned
	}
	defer close(f.done)
	f.err = f.exchange(rw)
	return f.ans, f.err
}

func (f *fetchCall) exchange(rw io.ReadWriter) error {
	if f.version < minFetchVersion {
		return fmt.Errorf("the broker is older than Kafka 0.11 (fetch version %d)", f.version)
	}
	conn, release := guard(f.ctx, rw, f.wait+callTimeout)
	defer release()
	if err := protocol.WriteRequest(conn, f.version, correlation, f.clientID, f.Request); err != nil {
		return err
	}
	return f.read(conn)
}

// correlation numbers every request: a connection carries one at a time.
const correlation = 1

// read reads the whole answer. What is wrong with a batch is noted in the
// answer; the error is the connection's.
func (f *fetchCall) read(conn *guarded) error {
	var size [8]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	body := int64(int32(binary.BigEndian.Uint32(size[:])))
	if id := binary.BigEndian.Uint32(size[4:]); id != correlation || body < 4 {
		return fmt.Errorf("a fetch answer of %d bytes to request %d", body, id)
	}
	conn.each = callTimeout // from here on the broker has begun to send
	f.br.Reset(io.LimitReader(conn, body-4))
	defer f.br.Reset(nil)
	h := header{r: f.br, version: f.version}
	h.read(f.ans, f.dec)
	if h.err != nil {
		return fmt.Errorf("a fetch answer that cannot be read: %w", h.err)
	}
	f.ans.wire = f.dec.left
	err := f.dec.run(f.br)
	if conn.err != nil { // whatever the decoder makes of a cut batch
		return conn.err
	}
	f.ans.err = err
	_, err = io.Copy(io.Discard, f.br)
	return err
}

// header reads the fields before the record set.
type header struct {
	r       io.Reader
	version int16
	err     error
}

func (h *header) int(n int) int64 {
	var b [8]byte
	if h.err == nil {
		_, h.err = io.ReadFull(h.r, b[8-n:])
	}
	v := int64(binary.BigEndian.Uint64(b[:]))
	return v << (64 - 8*n) >> (64 - 8*n)
}

// count reads the length of an array.
func (h *header) count(limit int64) int64 {
	n := h.int(4)
	if h.err == nil && n > limit {
		h.err = fmt.Errorf("%d entries", n)
	}
	return n
}

// read fills a and prepares d for the record set. An answer without the
// partition is an error, unless the broker gives one for the whole request.
func (h *header) read(a *answer, d *decoder) {
	a.throttled = h.int(4) > 0
	if h.version >= 7 {
		a.code = int16(h.int(2))
		h.int(4) // session
	}
	if h.count(1) < 1 {
		if h.err == nil && a.code == 0 {
			h.err = errors.New("it lacks the topic")
		}
		return
	}
	if n := h.int(2); n > 0 && h.err == nil {
		_, h.err = io.CopyN(io.Discard, h.r, n) // topic
	}
	if h.count(1) < 1 && h.err == nil {
		h.err = errors.New("it lacks the partition")
	}
	h.int(4) // partition
	if code := int16(h.int(2)); code != 0 {
		a.code = code
	}
	h.int(8) // high watermark
	a.stable = h.int(8)
	if h.version >= 5 {
		h.int(8) // log start
	}
	// An aborted transaction has at least a batch in the log; a partition with
	// a million of them in one answer does not exist.
	for range max(0, h.count(1<<20)) {
		if h.err != nil {
			return
		}
		d.abortedL = append(d.abortedL, abortedTx{producer: h.int(8), first: h.int(8)})
	}
	slices.SortFunc(d.abortedL, func(x, y abortedTx) int { return cmp.Compare(x.first, y.first) })
	if h.version >= 11 {
		h.int(4) // preferred replica
	}
	d.left = max(0, h.int(4))
}

// prepare readies d for an answer to a fetch of [from, limit).
func (d *decoder) prepare(out *answer, free *freeList, from, limit, budget int64) {
	if d.names == nil {
		d.names, d.aborted = map[string]string{}, map[int64]bool{}
	}
	clear(d.aborted)
	d.abortedL = d.abortedL[:0]
	d.from, d.limit, d.budget, d.left = from, limit, budget, 0
	d.arena = arena{free: free}
	d.out = out
	*out = answer{next: from, stable: -1}
}

// run reads the record set from r.
func (d *decoder) run(r *bufio.Reader) error {
	d.r = r
	expected := min(d.left, d.budget+d.budget/8, 1<<30)
	d.arena.hint = int(expected + expected/512 + 4<<10) // and what alignment takes
	d.arena.more = int(min(d.budget/4, 1<<20))
	err := d.set()
	d.r = nil
	return err
}

// guarded is a connection that is used until ctx ends.
type guarded struct {
	net.Conn
	ctx  context.Context
	each time.Duration // for every single read
	err  error         // of a read
}

func (g *guarded) Read(p []byte) (int, error) {
	g.Conn.SetReadDeadline(time.Now().Add(g.each))
	if err := g.ctx.Err(); err != nil { // the deadline it set is gone now
		g.err = err
		return 0, err
	}
	n, err := g.Conn.Read(p)
	if err != nil {
		g.err = err
	}
	return n, err
}

// guard lends a connection of kafka-go's to an exchange: reads fail when ctx
// ends, or when one lasts longer than each.
func guard(ctx context.Context, rw io.ReadWriter, each time.Duration) (g *guarded, release func()) {
	conn := rw.(net.Conn) // *protocol.Conn
	g = &guarded{Conn: conn, ctx: ctx, each: each}
	conn.SetWriteDeadline(time.Now().Add(callTimeout))
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		conn.SetDeadline(time.Unix(1, 0))
		close(fired)
	})
	return g, func() {
		if !stop() {
			<-fired // else it could hit the next user of the connection
		}
		conn.SetDeadline(time.Time{})
	}
}
