package ingest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

// link is a connection to a broker that remembers what the broker speaks.
// kafka-go tells an exchange only the versions that it knows itself, and these
// end before topics have ids; so the broker is asked once more, once a
// connection, since brokers of one cluster may differ while it is upgraded.
//
// kafka-go wraps the connection in its own and in TLS. The one thing that comes
// through both is the local address, so a link is its own.
type link struct {
	net.Conn
	asked    bool
	versions []versionRange // by key, up to the highest key that is used here
}

// versionRange are the versions of one request that a broker takes.
type versionRange struct{ least, most int16 }

func (r versionRange) has(v int16) bool { return r.least <= v && v <= r.most }

// LocalAddr returns the link itself.
func (l *link) LocalAddr() net.Addr { return l }

// Network and String are those of the connection's local address.
func (l *link) Network() string { return l.Conn.LocalAddr().Network() }
func (l *link) String() string  { return l.Conn.LocalAddr().String() }

// dialer makes links.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) link(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &link{Conn: conn}, nil
}

// linkOf returns the link below a connection of kafka-go's.
func linkOf(conn *guarded) *link {
	if l, ok := conn.LocalAddr().(*link); ok {
		return l
	}
	return new(link) // not one of ours: asked each time
}

// Requests on one connection are answered in order, one at a time. The numbers
// tell answers of different requests apart all the same.
const (
	correlation         = 1
	correlationVersions = 2
	correlationTopic    = 3
)

// maxKey is the highest key of a request whose versions are remembered.
const maxKey = protocol.Metadata

// offers returns the versions of a request that the broker at the other end
// takes. The first call asks the broker. It belongs to the exchange that has
// the connection.
func (l *link) offers(conn *guarded, br *bufio.Reader, key protocol.ApiKey, clientID string) (versionRange, error) {
	if !l.asked {
		if err := l.ask(conn, br, clientID); err != nil {
			return versionRange{}, err
		}
		l.asked = true
	}
	return l.versions[key], nil
}

// ask sends ApiVersions in its first version, which every broker knows.
func (l *link) ask(conn *guarded, br *bufio.Reader, clientID string) error {
	defer conn.patience(callTimeout)()
	if _, err := conn.Write(sized(appendHead(nil, protocol.ApiVersions, 0, correlationVersions,
		clientID))); err != nil {
		return err
	}
	h, err := receive(conn, br, correlationVersions)
	if err != nil {
		return err
	}
	if code := h.int(2); code != 0 && h.err == nil {
		return fmt.Errorf("the broker does not tell what it speaks: error %d", code)
	}
	l.versions = make([]versionRange, maxKey+1)
	for i := range l.versions {
		l.versions[i] = versionRange{0, -1}
	}
	for range h.count(1 << 15) {
		key, r := h.int(2), versionRange{int16(h.int(2)), int16(h.int(2))}
		if h.err == nil && key >= 0 && key <= int64(maxKey) {
			l.versions[key] = r
		}
	}
	if h.err != nil {
		return fmt.Errorf("what the broker speaks cannot be read: %w", h.err)
	}
	return h.end()
}

// appendHead begins a request, with room for its size. From the first flexible
// version of a request on, a tag buffer follows, which is the caller's.
func appendHead(b []byte, key protocol.ApiKey, version int16, correlation uint32, clientID string) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, correlation)
	b = binary.BigEndian.AppendUint16(b, uint16(len(clientID)))
	return append(b, clientID...)
}

// sized puts the size of a request before it.
func sized(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// receive begins an answer, whose fields h then reads from br. The caller ends it
// with h.end; after an error the connection cannot be used again.
func receive(conn *guarded, br *bufio.Reader, id uint32) (h header, err error) {
	var size [8]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return h, err
	}
	body := int64(int32(binary.BigEndian.Uint32(size[:])))
	if got := binary.BigEndian.Uint32(size[4:]); got != id || body < 4 {
		return h, fmt.Errorf("an answer of %d bytes to request %d, not to %d", body, got, id)
	}
	rest := &io.LimitedReader{R: conn, N: body - 4}
	br.Reset(rest)
	return header{r: br, rest: rest}, nil
}

// header reads fields of an answer. What it reads is bounded by the answer and
// is not kept, so lengths need no limit of their own. After an error every
// field is zero.
type header struct {
	r       *bufio.Reader
	rest    *io.LimitedReader // bytes that r has not read yet
	version int16
	err     error
}

// end reads what is left of the answer, and lets go of the connection.
func (h *header) end() error {
	_, err := io.Copy(io.Discard, h.r)
	h.r.Reset(nil)
	if err == nil && h.rest.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// int reads an integer of n bytes.
func (h *header) int(n int) int64 {
	var v int64
	if b := h.peek(n); b != nil {
		for _, c := range b {
			v = v<<8 | int64(c)
		}
		h.r.Discard(n)
	}
	return v << (64 - 8*n) >> (64 - 8*n)
}

// peek returns the next n bytes, which are at most a few, or nil.
func (h *header) peek(n int) []byte {
	if h.err != nil {
		return nil
	}
	b, err := h.r.Peek(n)
	if err != nil {
		if h.err = err; err == io.EOF {
			h.err = io.ErrUnexpectedEOF
		}
		return nil
	}
	return b
}

// uvarint reads an unsigned integer of at most 32 bits, as flexible versions
// write lengths.
func (h *header) uvarint() int64 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := h.peek(1)
		if b == nil {
			return 0
		}
		c := b[0]
		h.r.Discard(1)
		if v |= uint64(c&0x7f) << shift; c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return int64(v)
		}
	}
	h.err = errors.New("an integer of more than 32 bits")
	return 0
}

// count reads the length of an array.
func (h *header) count(limit int64) int64 { return h.limited(h.int(4), limit) }

// compact reads the length of an array, a string or bytes of a flexible
// version; -1 is a null.
func (h *header) compact(limit int64) int64 {
	n := h.uvarint() - 1
	if h.err != nil {
		return 0
	}
	return h.limited(n, limit)
}

func (h *header) limited(n, limit int64) int64 {
	if h.err == nil && n > limit {
		h.err = fmt.Errorf("%d entries", n)
	}
	if h.err != nil {
		return 0
	}
	return n
}

// skip leaves out n bytes.
func (h *header) skip(n int64) {
	for n > 0 && h.err == nil {
		m, err := h.r.Discard(int(min(n, 1<<30)))
		if n -= int64(m); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		h.err = err
	}
}

// tags leaves out the tagged fields that end a structure of a flexible version.
func (h *header) tags() {
	for range h.uvarint() {
		if h.err != nil {
			return
		}
		h.uvarint()
		h.skip(h.uvarint())
	}
}

// text reads a string of at most limit bytes in a flexible version; a null is
// empty.
func (h *header) text(limit int64) string {
	n := h.compact(limit)
	if n <= 0 {
		return ""
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(h.r, b); err != nil {
		h.err = io.ErrUnexpectedEOF
		return ""
	}
	return string(b)
}

// patience changes how long a read may last; the returned function changes it
// back.
func (g *guarded) patience(each time.Duration) (back func()) {
	before := g.each
	g.each = each
	return func() { g.each = before }
}
