package ingest

import (
	"bufio"
	"hash/crc32"
	"io"
	"math"
	"unsafe"

	"entropipe/schemas"
)

// Whole batches are read here, with their sums.

const (
	crcStart = 21        // first byte of a batch that its sum covers
	crcChunk = 256 << 10 // bytes that are read and summed at a time, so that they are still in the cache
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// place reads a whole batch into the arena, so that the value of its first
// record is aligned: large values come one a batch. Of such a value it notes
// the sum, which would cost another read of its bytes later.
func (d *decoder) place(b batch) ([]byte, error) {
	at, align, end := 0, 8, 0
	if peek, _ := d.r.Peek(int(min(b.size, batchHeader+1024))); len(peek) > batchHeader {
		if off, n, ok := firstValue(peek[batchHeader:]); ok {
			at = batchHeader + off
			if n >= largeValue {
				align = valueAlign
			}
			if n >= largeValue && n <= b.size-int64(at) {
				end = at + int(n)
			}
		}
	}
	buf := d.arena.alloc(int(b.size), at, align)
	if end == 0 {
		return buf, d.read(b, buf)
	}
	sum := summing{d: d}
	sum.fill(buf[:at], crcStart)
	before := sum.crc
	sum.fill(buf[at:end], 0)
	d.first = firstSum{value: buf[at:end], sum: schemas.ShiftCRC(before, end-at) ^ sum.crc}
	sum.fill(buf[end:], 0)
	return buf, sum.check(b)
}

// firstSum is the value of a batch's first record, if its sum is known.
type firstSum struct {
	value []byte
	sum   uint32
}

// is tells whether v is that value.
func (f *firstSum) is(v []byte) bool {
	return len(f.value) > 0 && len(v) == len(f.value) && unsafe.SliceData(v) == unsafe.SliceData(f.value)
}

// read fills buf with the whole batch b and checks its sum.
func (d *decoder) read(b batch, buf []byte) error {
	sum := summing{d: d}
	sum.fill(buf, crcStart)
	return sum.check(b)
}

// summing reads a batch in parts and sums them up.
type summing struct {
	d   *decoder
	crc uint32
	err error
}

// fill reads buf, without its first skip bytes in the sum. It does nothing
// after an error.
func (s *summing) fill(buf []byte, skip int) {
	for done := 0; done < len(buf) && s.err == nil; {
		piece := buf[done:min(len(buf), done+crcChunk)]
		var n int
		n, s.err = io.ReadFull(s.d.r, piece)
		s.d.left -= int64(n)
		done += n
		s.crc = crc32.Update(s.crc, castagnoli, piece[min(skip, n):n])
		skip = 0
	}
}

// check compares the sum with the one that the batch says it has.
func (s *summing) check(b batch) error {
	if s.err == nil && s.crc != b.crc {
		return corrupt("its checksum is %08x, not %08x", s.crc, b.crc)
	}
	return s.err
}

// streamed reads an uncompressed batch that is larger than any record should
// be. Its checksum is known only at its end.
func (d *decoder) streamed(b batch) error {
	var head [batchHeader]byte
	if _, err := io.ReadFull(d.r, head[:]); err != nil {
		return err
	}
	d.left -= b.size
	sum := &summed{r: io.LimitReader(d.r, b.size-batchHeader), crc: crc32.Checksum(head[21:], castagnoli)}
	err := d.records(b, &stream{r: bufio.NewReaderSize(sum, minBlock), arena: &d.arena, left: math.MaxInt64})
	if _, rest := io.Copy(io.Discard, sum); rest != nil {
		return rest
	}
	if sum.crc != b.crc {
		return corrupt("its checksum is %08x, not %08x", sum.crc, b.crc)
	}
	return err
}

// summed is a reader that sums up what goes through it.
type summed struct {
	r   io.Reader
	crc uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.crc = crc32.Update(s.crc, castagnoli, p[:n])
	return n, err
}

// firstValue finds where the value of the first record in b begins.
func firstValue(b []byte) (offset int, length int64, ok bool) {
	s := &slice{b: b}
	c := cursor{src: s, left: int64(len(b))}
	c.varint() // length
	c.byte()
	c.varint() // timestamp
	c.varint() // offset
	if n := c.varint(); n > 0 {
		c.skip(n)
	}
	length = c.varint()
	return s.i, length, c.err == nil
}
