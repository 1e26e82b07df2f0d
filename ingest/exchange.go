package ingest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync/atomic"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"

	"entropipe/schemas"
)

const (
	// callTimeout is for requests that a broker answers at once, and for the
	// silence in the middle of a longer answer.
	callTimeout = 5 * time.Second

	minFetchVersion  = 4  // Kafka 0.11: batches, transactions
	fetchByIDVersion = 13 // Kafka 3.1: names the topic by its id
	readCommitted    = 1

	readBuffer = 64 << 10
)

// answer is what one fetch brought.
type answer struct {
	code      int16 // Kafka's error
	throttled bool
	stable    int64 // last stable offset; -1: unknown
	high      int64 // high watermark; 0: unknown
	wire      int64 // bytes of the record set
	err       error // the fault of the first batch that could not be used

	messages []schemas.Message
	next     int64 // where to go on
	used     int64 // cost of the messages
	extra    int64 // memory beside the arena
	full     bool  // the budget or the limit was reached
	need     int64 // size of a first batch that did not fit into the answer; 0: it did

	fenced bool            // the records certainly are of the topic with the id that was asked for
	other  schemas.TopicID // the topic had this id after the fetch, not the one asked for; zero: not so
}

// ApiKey makes an answer pass through kafka-go's Transport.
func (*answer) ApiKey() protocol.ApiKey { return protocol.Fetch }

// fetchCall is a fetch request for one partition. kafka-go routes it to the
// leader and lends a connection; the exchange is done here.
//
// Where the topic has an id, the request names the topic by it, in a version of
// Fetch that kafka-go does not know: a topic that was created again under the
// same name can then never answer, whenever that was. A broker that is too old
// for it is asked for the id behind each fetch that brought something, on the
// same connection: ids never come back, so an id that holds then held before.
type fetchCall struct {
	*fetch.Request
	topicID  schemas.TopicID // zero: by name
	buf      []byte          // for the request
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
	f.err = from(rw.(net.Conn), f.exchange(rw))
	return f.ans, f.err
}

func (f *fetchCall) exchange(rw io.ReadWriter) error {
	if f.version < minFetchVersion {
		return fmt.Errorf("the broker is older than Kafka 0.11 (fetch version %d)", f.version)
	}
	conn, release := guard(f.ctx, rw, f.wait+callTimeout)
	defer release()
	offered := versionRange{0, -1}
	if !f.topicID.IsZero() {
		var err error
		if offered, err = linkOf(conn).offers(conn, f.br, protocol.Fetch, f.clientID); err != nil {
			return err
		}
	}
	if f.ans.fenced = offered.has(fetchByIDVersion); f.ans.fenced {
		f.version = fetchByIDVersion
		f.buf = f.appendByID(f.buf[:0])
		if _, err := conn.Write(f.buf); err != nil {
			return err
		}
	} else if err := protocol.WriteRequest(conn, f.version, correlation, f.clientID, f.Request); err != nil {
		return err
	}
	if err := f.read(conn); err != nil || f.ans.fenced || f.topicID.IsZero() || f.ans.next <= f.dec.from {
		return err
	}
	return f.compare(conn)
}

// compare asks for the topic's id behind a fetch by name.
func (f *fetchCall) compare(conn *guarded) error {
	a, err := askTopic(conn, f.br, f.Topics[0].Topic, f.clientID)
	if err != nil || !a.withIDs || a.code == 0 && a.id.IsZero() {
		return err
	}
	if f.ans.fenced = a.code == 0 && a.id == f.topicID; !f.ans.fenced {
		f.ans.code, f.ans.other = int16(kafka.UnknownTopicID), a.id
	}
	return nil
}

// appendByID appends the request in version 13.
func (f *fetchCall) appendByID(b []byte) []byte {
	r, p := f.Request, &f.Topics[0].Partitions[0]
	be := binary.BigEndian
	b = appendHead(b, protocol.Fetch, fetchByIDVersion, correlation, f.clientID)
	b = append(b, 0) // tags of the head
	b = be.AppendUint32(b, uint32(r.ReplicaID))
	b = be.AppendUint32(b, uint32(r.MaxWaitTime))
	b = be.AppendUint32(b, uint32(r.MinBytes))
	b = be.AppendUint32(b, uint32(r.MaxBytes))
	b = append(b, byte(r.IsolationLevel))
	b = be.AppendUint32(b, uint32(r.SessionID))
	b = be.AppendUint32(b, uint32(r.SessionEpoch))
	b = append(b, 2) // one topic
	b = append(b, f.topicID[:]...)
	b = append(b, 2) // one partition
	b = be.AppendUint32(b, uint32(p.Partition))
	b = be.AppendUint32(b, uint32(p.CurrentLeaderEpoch))
	b = be.AppendUint64(b, uint64(p.FetchOffset))
	b = be.AppendUint32(b, 0xffffffff) // epoch of the last record fetched: not told
	b = be.AppendUint64(b, uint64(p.LogStartOffset))
	b = be.AppendUint32(b, uint32(p.PartitionMaxBytes))
	b = append(b, 0, 0)    // tags of the partition and of the topic
	b = append(b, 1, 1, 0) // no topic to forget, no rack, no tags
	return sized(b)
}

// read reads the whole answer. What is wrong with a batch is noted in the
// answer; the error is the connection's.
func (f *fetchCall) read(conn *guarded) error {
	h, err := receive(conn, f.br, correlation)
	if err != nil {
		return err
	}
	defer f.br.Reset(nil)
	conn.each = callTimeout // from here on the broker has begun to send
	if h.version = f.version; h.version >= fetchByIDVersion {
		h.fetchedByID(f.ans, f.dec, f.topicID)
	} else {
		h.fetched(f.ans, f.dec)
	}
	if h.err != nil {
		return fmt.Errorf("a fetch answer that cannot be read: %w", h.err)
	}
	f.ans.wire = f.dec.left
	err = f.dec.run(f.br)
	if conn.err != nil { // whatever the decoder makes of a cut batch
		return conn.err
	}
	f.ans.err = err
	return h.end()
}

// maxAborted bounds the aborted transactions of an answer. Each has at least a
// batch in the log; a partition with a million of them in one answer does not
// exist.
const maxAborted = 1 << 20

// fetched reads an answer up to its record set, fills a and prepares d for the
// set. An answer without the partition is an error, unless the broker gives one
// for the whole request.
func (h *header) fetched(a *answer, d *decoder) {
	a.throttled = h.int(4) > 0
	if h.version >= 7 {
		a.code = int16(h.int(2))
		h.int(4) // session
	}
	if h.count(1) < 1 {
		h.lacks("topic", a)
		return
	}
	h.skip(h.int(2)) // topic
	if h.count(1) < 1 {
		h.lacks("partition", nil)
	}
	h.partition(a)
	if h.version >= 5 {
		h.int(8) // log start
	}
	for range h.count(maxAborted) {
		if h.err != nil {
			return
		}
		d.abortedL = append(d.abortedL, abortedTx{producer: h.int(8), first: h.int(8)})
	}
	d.sortAborted()
	if h.version >= 11 {
		h.int(4) // preferred replica
	}
	d.left = max(0, h.int(4))
}

// fetchedByID is fetched for version 13, whose answer must be about the topic
// with this id.
func (h *header) fetchedByID(a *answer, d *decoder, id schemas.TopicID) {
	h.tags()
	a.throttled = h.int(4) > 0
	a.code = int16(h.int(2))
	h.int(4) // session
	if h.compact(1) < 1 {
		h.lacks("topic", a)
		return
	}
	if got := h.topicID(); got != id && h.err == nil {
		h.err = fmt.Errorf("it is about topic %s, not %s", got, id)
	}
	if h.compact(1) < 1 {
		h.lacks("partition", nil)
	}
	h.partition(a)
	h.int(8) // log start
	for range h.compact(maxAborted) {
		if h.err != nil {
			return
		}
		d.abortedL = append(d.abortedL, abortedTx{producer: h.int(8), first: h.int(8)})
		h.tags()
	}
	d.sortAborted()
	h.int(4) // preferred replica
	d.left = max(0, h.compact(math.MaxInt32))
}

// lacks notes that an answer lacks something, unless a has an error of the
// broker's that explains it.
func (h *header) lacks(what string, a *answer) {
	if h.err == nil && (a == nil || a.code == 0) {
		h.err = errors.New("it lacks the " + what)
	}
}

// partition reads the fields that every version has.
func (h *header) partition(a *answer) {
	h.int(4) // partition
	if code := int16(h.int(2)); code != 0 {
		a.code = code
	}
	a.high = h.int(8)
	a.stable = h.int(8)
}

func (d *decoder) sortAborted() {
	slices.SortFunc(d.abortedL, func(x, y abortedTx) int { return cmp.Compare(x.first, y.first) })
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
	err  error         // the error of a read
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
			<-fired // a late deadline would hit the next user of the connection
		}
		conn.SetDeadline(time.Time{})
	}
}
