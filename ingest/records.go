package ingest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"entropipe/schemas"
)

// A record batch of version 2 begins with
//
//	 0 base offset      int64
//	 8 length           int32   of what follows
//	12 leader epoch     int32
//	16 magic            int8    2; 0 and 1 are message sets, see legacy.go
//	17 CRC-32C          uint32  of what follows
//	21 attributes       int16   bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control
//	23 last offset      int32   relative to the base; kept by compaction
//	27 first timestamp  int64   milliseconds
//	35 last timestamp   int64   with LogAppendTime, that of every record
//	43 producer         int64
//	51 producer epoch   int16
//	53 first sequence   int32
//	57 record count     int32
//
// and its records, compressed together, are
//
//	length, attributes int8, timestamp delta, offset delta, key, value, headers
//
// with variable-length zigzag integers; a key or value of length -1 is null.
//
// kafka-go's decoder does not serve: it copies values twice, trusts lengths and drops
// the last offset of a batch.
const (
	batchHeader = 61
	magicAt     = 16

	// messageCost is what a message costs beside its bytes.
	messageCost = 160
	headerCost  = 48
	maxHeaders  = 4096
	maxNames    = 64 // header names that are remembered

	// maxInflated bounds the work that one compressed batch may cause.
	maxInflated = 1 << 31

	// A longer record than the limit and this is cut, and so much is kept of it.
	recordSlack  = 64 << 10
	oversizeKept = schemas.MaxRejectValue
)

// errCorrupt is wrapped by all that is wrong with the bytes of a batch.
var errCorrupt = errors.New("corrupt record batch")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errCorrupt, fmt.Sprintf(format, args...))
}

// decoder turns the record set of one fetch answer into messages. It reads
// from the connection and places the bytes where they stay. One decoder serves
// one partition; it keeps its scratch.
type decoder struct {
	topic     string
	partition int32
	maxValue  int64 // longer values are cut

	names   map[string]string // header names seen, so that they are not allocated again
	codecs  codecs
	aborted map[int64]bool

	// of the answer that is being read
	r        *bufio.Reader
	left     int64 // bytes of the record set not read yet
	from     int64
	limit    int64 // first offset not to hand over
	budget   int64
	abortedL []abortedTx // not begun yet, by first offset
	arena    arena
	first    firstSum
	out      *answer
}

type abortedTx struct{ producer, first int64 }

// batch is one batch's header.
type batch struct {
	base, last int64
	size       int64 // whole, header included
	crc        uint32
	attributes int16
	firstTime  int64
	lastTime   int64
	producer   int64
	count      int32
}

func (b *batch) codec() int8         { return int8(b.attributes & 7) }
func (b *batch) appendTime() bool    { return b.attributes&(1<<3) != 0 }
func (b *batch) transactional() bool { return b.attributes&(1<<4) != 0 }
func (b *batch) control() bool       { return b.attributes&(1<<5) != 0 }

// set reads batches until the record set or the budget is used up. It leaves
// what it does not need unread. The error is that of the first batch which
// could not be used: with earlier ones, their records still count.
func (d *decoder) set() error {
	for d.left > magicAt && !d.out.full {
		head, err := d.r.Peek(magicAt + 1)
		if err != nil {
			return err
		}
		size := int64(int32(binary.BigEndian.Uint32(head[8:]))) + 12
		if size > d.left { // the answer ends within a batch: brokers may cut the last one
			if d.out.next == d.from {
				d.out.need = size
			}
			return nil
		}
		switch magic := head[magicAt]; magic {
		case 2:
			err = d.batch()
		case 0, 1:
			err = d.legacy(size)
		default:
			err = corrupt("format %d is not known", magic)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) batch() error {
	head, err := d.r.Peek(batchHeader)
	if err != nil || d.left < batchHeader {
		return corrupt("its header is cut: %v", err)
	}
	b, err := parseBatch(head)
	if err != nil {
		return err
	}
	if b.last < d.from {
		return d.discard(b.size)
	}
	if b.base >= d.limit {
		d.stop(d.limit)
		return nil
	}
	d.begin(b.last)
	if b.control() {
		err = d.control(b)
	} else if b.transactional() && d.aborted[b.producer] || b.count == 0 {
		err = d.discard(b.size)
	} else {
		err = d.data(b)
	}
	if err == nil && !d.out.full {
		d.advance(b.last + 1)
	}
	return err
}

func parseBatch(h []byte) (b batch, err error) {
	be := binary.BigEndian
	b.base = int64(be.Uint64(h))
	b.size = int64(int32(be.Uint32(h[8:]))) + 12
	b.crc = be.Uint32(h[17:])
	b.attributes = int16(be.Uint16(h[21:]))
	delta := int32(be.Uint32(h[23:]))
	b.firstTime, b.lastTime = int64(be.Uint64(h[27:])), int64(be.Uint64(h[35:]))
	b.producer = int64(be.Uint64(h[43:]))
	b.count = int32(be.Uint32(h[57:]))
	b.last = b.base + int64(delta)
	if b.size < batchHeader || b.base < 0 || delta < 0 || b.last < 0 || b.count < 0 {
		return b, corrupt("its header is impossible (base offset %d, length %d, %d records, last offset +%d)", b.base,
			b.size-12, b.count, delta)
	}
	return b, nil
}

// begin notes the aborted transactions that started up to offset last.
func (d *decoder) begin(last int64) {
	for len(d.abortedL) > 0 && d.abortedL[0].first <= last {
		d.aborted[d.abortedL[0].producer] = true
		d.abortedL = d.abortedL[1:]
	}
}

// control reads the marker that ends a transaction: its key is a version and a
// type, 0 for abort.
func (d *decoder) control(b batch) error {
	if b.size > minBlock {
		return corrupt("a control batch of %d bytes", b.size)
	}
	buf := make([]byte, b.size)
	if err := d.read(b, buf); err != nil {
		return err
	}
	c := cursor{src: &slice{b: buf[batchHeader:]}, last: b.last - b.base}
	rec, err := c.record(d.maxValue)
	if err == nil && len(rec.key) >= 4 && binary.BigEndian.Uint16(rec.key[2:]) == 0 {
		delete(d.aborted, b.producer)
	}
	return err
}

// data reads a batch of records, in place where it can.
func (d *decoder) data(b batch) error {
	before := *d.out
	var err error
	switch {
	case b.codec() != 0:
		err = d.compressed(b)
	case b.size > d.maxValue+recordSlack:
		err = d.streamed(b)
	default:
		var buf []byte
		if buf, err = d.place(b); err == nil {
			err = d.records(b, &slice{b: buf[batchHeader:]})
		}
	}
	if err != nil {
		*d.out = before // nothing of a damaged batch: its records must come again
	}
	return err
}

// compressed reads a batch through its codec, record by record, so that the
// memory it takes is bounded by the budget and not by what it inflates to.
func (d *decoder) compressed(b batch) error {
	block := d.arena.free.get(int(b.size))
	defer d.arena.free.put(block)
	if err := d.read(b, block[:b.size]); err != nil {
		return err
	}
	return d.codecs.open(b.codec(), block[batchHeader:b.size], func(r *bufio.Reader) error {
		return d.records(b, &stream{r: r, arena: &d.arena, left: maxInflated})
	})
}

// records hands over the records that src yields.
func (d *decoder) records(b batch, src source) error {
	if d.out.messages == nil {
		d.out.messages = make([]schemas.Message, 0, min(int64(b.count), 1024))
	}
	for range b.count {
		c := cursor{src: src, names: d.names, from: d.from - b.base, last: b.last - b.base}
		rec, err := c.record(d.maxValue)
		if err != nil {
			return err
		}
		offset := b.base + rec.delta
		if offset >= d.limit {
			d.stop(d.limit)
			return nil
		}
		if offset < d.out.next { // before what was asked for, or out of order
			continue
		}
		d.emit(&b, rec, offset)
		if d.out.full || rec.final {
			return nil
		}
	}
	return nil
}

func (d *decoder) emit(b *batch, rec record, offset int64) {
	ms := b.firstTime + rec.time
	if b.appendTime() {
		ms = b.lastTime
	}
	m := schemas.Message{
		Topic: d.topic, Partition: d.partition, Offset: offset, Time: time.UnixMilli(ms),
		Key: rec.key, Value: rec.value, Headers: rec.headers, Oversize: rec.oversize,
	}
	if d.first.is(rec.value) {
		m.ValueSum, m.Summed = d.first.sum, true
	}
	d.out.messages = append(d.out.messages, m)
	d.out.used += messageCost + int64(len(rec.headers))*headerCost + int64(len(rec.key)) + int64(len(rec.value))
	if d.advance(offset + 1); d.out.used >= d.budget {
		d.out.full = true
	}
}

func (d *decoder) advance(next int64) {
	d.out.next = max(d.out.next, min(next, d.limit))
	d.out.full = d.out.full || d.out.next >= d.limit
}

func (d *decoder) stop(next int64) {
	d.advance(next)
	d.out.full = true
}

func (d *decoder) discard(n int64) error {
	for n > 0 {
		m, err := d.r.Discard(int(min(n, 1<<30)))
		n -= int64(m)
		if d.left -= int64(m); err != nil {
			return err
		}
	}
	return nil
}
