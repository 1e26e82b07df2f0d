package ingest

import (
	"bufio"
	"io"
	"math"

	"entropipe/schemas"
)

// source yields the bytes of a batch's records: a slice of memory, or what a
// decompressor puts out.
type source interface {
	io.ByteReader
	// take returns the next n bytes. They stay valid as long as the fetch.
	take(n int) ([]byte, error)
	skip(n int64) error
}

// slice is a source of bytes that stay where they are.
type slice struct {
	b []byte
	i int
}

func (s *slice) ReadByte() (byte, error) {
	if s.i >= len(s.b) {
		return 0, io.ErrUnexpectedEOF
	}
	s.i++
	return s.b[s.i-1], nil
}

func (s *slice) take(n int) ([]byte, error) {
	if n > len(s.b)-s.i {
		return nil, io.ErrUnexpectedEOF
	}
	s.i += n
	return s.b[s.i-n : s.i : s.i], nil
}

func (s *slice) skip(n int64) error {
	if n > int64(len(s.b)-s.i) {
		return io.ErrUnexpectedEOF
	}
	s.i += int(n)
	return nil
}

// stream is a source whose bytes are copied into an arena as they come.
type stream struct {
	r     *bufio.Reader
	arena *arena
	left  int64 // bytes it may still yield
}

func (s *stream) ReadByte() (byte, error) {
	if s.left--; s.left < 0 {
		return 0, corrupt("it inflates to more than %d bytes", int64(maxInflated))
	}
	return s.r.ReadByte()
}

func (s *stream) take(n int) ([]byte, error) {
	if n == 0 {
		return []byte{}, nil
	}
	if s.left -= int64(n); s.left < 0 {
		return nil, corrupt("it inflates to more than %d bytes", int64(maxInflated))
	}
	align := 8
	if n >= largeValue {
		align = valueAlign
	}
	b := s.arena.alloc(n, 0, align)
	_, err := io.ReadFull(s.r, b)
	return b, err
}

func (s *stream) skip(n int64) error {
	if s.left -= n; s.left < 0 {
		return corrupt("it inflates to more than %d bytes", int64(maxInflated))
	}
	_, err := io.CopyN(io.Discard, s.r, n)
	return err
}

// record is one record as it stands in its batch.
type record struct {
	delta, time int64 // relative to the batch
	key, value  []byte
	headers     []schemas.Header
	oversize    int64
	final       bool // the source cannot be read beyond this record
}

// cursor reads one record. It never reads beyond the record's length.
type cursor struct {
	src   source
	left  int64 // bytes of the record not read yet
	err   error
	names map[string]string
	from  int64 // records with a smaller offset delta are skipped
	last  int64 // the batch's last offset delta
}

// record reads the next record. Of one that is longer than limit and some
// slack it takes the beginning.
func (c *cursor) record(limit int64) (rec record, err error) {
	c.left = 10
	size := c.varint()
	if c.err == nil && (size < 0 || size > math.MaxInt32) {
		return rec, corrupt("a record of %d bytes", size)
	}
	c.left = size
	c.byte() // attributes, unused by Kafka
	rec.time, rec.delta = c.varint(), c.varint()
	if c.err == nil && (rec.delta < 0 || rec.delta > c.last) {
		return rec, corrupt("a record at offset +%d of a batch that ends at +%d", rec.delta, c.last)
	}
	switch {
	case rec.delta < c.from:
		c.skip(c.left)
	case size > limit+recordSlack:
		c.cut(&rec, limit)
	default:
		rec.key, rec.value = c.bytes(), c.bytes()
		if n := int64(len(rec.value)); n > limit {
			rec.oversize, rec.value = n, rec.value[:min(n, oversizeKept)]
		}
		c.headers(&rec)
		if c.err == nil && c.left != 0 {
			return rec, corrupt("a record with %d bytes too many", c.left)
		}
	}
	return rec, c.failure()
}

// cut takes the beginning of an oversized record's key and value.
func (c *cursor) cut(rec *record, limit int64) {
	rec.oversize = c.left
	n := c.length()
	rec.key = c.take(min(n, oversizeKept))
	c.skip(max(0, n-oversizeKept))
	if n = c.length(); n > limit {
		rec.oversize = n
	}
	rec.value = c.take(min(n, oversizeKept))
	// What follows the last record of a batch need not be read: a bomb then
	// costs no more than its beginning.
	if rec.final = rec.delta == c.last; !rec.final {
		c.skip(c.left)
	}
}

// length reads the length of what follows; -1 is a null.
func (c *cursor) length() int64 {
	n := c.varint()
	if c.err == nil && (n < -1 || n > c.left) {
		c.err = corrupt("%d bytes in the %d that a record has left", n, c.left)
	}
	return n
}

func (c *cursor) bytes() []byte { return c.take(c.length()) }

func (c *cursor) headers(rec *record) {
	n := c.varint()
	if c.err == nil && (n < 0 || n > c.left/2) { // two lengths each
		c.err = corrupt("%d headers in %d bytes", n, c.left)
	}
	if c.err != nil || n == 0 {
		return
	}
	if n > maxHeaders { // each costs twenty times its bytes
		rec.oversize = max(c.left, int64(len(rec.value)))
		c.skip(c.left)
		return
	}
	rec.headers = make([]schemas.Header, n)
	for i := range rec.headers {
		rec.headers[i] = schemas.Header{Key: c.name(c.bytes()), Value: c.bytes()}
	}
}

func (c *cursor) name(b []byte) string {
	if s, ok := c.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(c.names) < maxNames && len(s) <= 64 && c.names != nil {
		c.names[s] = s
	}
	return s
}

func (c *cursor) byte() (b byte) {
	if c.err != nil {
		return 0
	}
	if c.left--; c.left < 0 {
		c.err = corrupt("a record is longer than it says")
		return 0
	}
	b, c.err = c.src.ReadByte()
	return b
}

// varint reads a zigzag integer of at most ten bytes.
func (c *cursor) varint() int64 {
	var u uint64
	for shift := 0; shift < 64; shift += 7 {
		b := c.byte()
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(u>>1) ^ -int64(u&1)
		}
	}
	if c.err == nil {
		c.err = corrupt("an integer of more than ten bytes")
	}
	return 0
}

// take returns the next n bytes, nil for n < 0.
func (c *cursor) take(n int64) (b []byte) {
	if c.err == nil && n >= 0 {
		c.left -= n
		b, c.err = c.src.take(int(n))
	}
	return b
}

func (c *cursor) skip(n int64) {
	if c.err == nil && n > c.left {
		c.err = corrupt("a record is longer than it says")
	}
	if c.err == nil {
		c.left -= n
		c.err = c.src.skip(n)
	}
}

// failure calls the end of the bytes by what it means for a batch.
func (c *cursor) failure() error {
	if c.err == io.EOF || c.err == io.ErrUnexpectedEOF {
		return corrupt("it ends within a record")
	}
	return c.err
}
