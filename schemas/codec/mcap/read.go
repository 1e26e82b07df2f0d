package mcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"entropipe/schemas/codec"
)

// Limits of a Reader, where its own are 0.
const (
	// DefaultMaxChunk bounds the decompressed records of a chunk. Recorders make chunks of
	// 0.75 to 8 MiB; a compressed chunk and its records are in memory together.
	DefaultMaxChunk = 128 << 20
	// DefaultMaxRecord bounds a message outside chunks.
	DefaultMaxRecord = 128 << 20
)

// Reader yields the messages of a file in the order of the file. That is the order of log
// time within a topic as a rule, and not across topics: chunks may overlap in time. A
// Reader holds one chunk, compressed and decompressed. It is not for concurrent use.
type Reader struct {
	// MaxChunk and MaxRecord bound sizes that the file declares; 0: the defaults above.
	MaxChunk, MaxRecord int64

	source io.Reader
	in     *bufio.Reader
	file   file    // the source, if it can be looked ahead in
	size   int64   // bytes of file
	chunks []int64 // places of chunks by the index, ascending
	offset int64   // bytes read
	crc    uint32  // the section so far
	begun  bool
	done   bool   // the footer or an end that has no footer was read
	ended  *Error // how a file without a footer ends
	// damaged is set where records were lost, so that the checksum of their section says nothing
	// new.
	damaged bool

	channels
	named int64 // bytes of schemas and channels

	at       Error  // place of the current record
	next     int64  // number of the next record
	content  []byte // memory of the content of a record
	unpacked []byte // memory of decompressed records
	plain    []byte // records of the chunk
	inner    []byte // those that are still to come
	partial  bool   // inner ends where the file does
	zstd     *zstd.Decoder
	unsummed bool // zstd does not check the sum of a frame
	lz4      *lz4.Reader
}

// NewReader returns a Reader of a whole file, from its first byte.
//
// If in is an io.ReaderAt and an io.Seeker, such as a file, the Reader goes on behind a record
// whose length is damaged, at the next record that it finds.
func NewReader(in io.Reader) *Reader {
	r := &Reader{source: in, in: bufio.NewReaderSize(in, 256<<10)}
	if f, ok := in.(file); ok {
		if r.size = extent(f); r.size > 0 {
			r.file = f
		}
	}
	return r
}

// Use makes channels of the summary known before their records come, so that messages
// behind a chunk that is lost have a channel. Behind damage the next chunk of its index follows.
func (r *Reader) Use(s *Summary) {
	r.chunks = s.Chunks
	for _, schema := range s.Schemas {
		if r.schemas == nil {
			r.schemas = map[uint16]*Schema{}
		}
		r.schemas[schema.ID] = schema
	}
	for _, c := range s.Channels {
		if r.byID == nil {
			r.byID = map[uint16]*Channel{}
		}
		r.byID[c.ID] = c
	}
}

// Unclosed says where a file ends that has no footer, after Next has returned io.EOF; nil
// for a file that was closed. All messages before that place were delivered.
func (r *Reader) Unclosed() *Error { return r.ended }

// Channels returns the channels that have come so far, by id.
func (r *Reader) Channels() []*Channel {
	list := make([]*Channel, 0, len(r.byID))
	for _, id := range slices.Sorted(maps.Keys(r.byID)) {
		list = append(list, r.byID[id])
	}
	return list
}

// Next sets m to the next message and returns io.EOF after the last one. An *Error names a
// record that cannot be used: the next call goes on behind it, or returns io.EOF where
// nothing can be found behind it. Other errors are those of the io.Reader.
func (r *Reader) Next(m *Message) error {
	for {
		if len(r.inner) > 0 {
			found, err := r.nextInner(m)
			if found || err != nil {
				return err
			}
			continue
		}
		if r.partial {
			r.partial, r.done = false, true
		}
		if r.done {
			return io.EOF
		}
		found, err := r.nextRecord(m)
		if err != nil {
			return err
		}
		if found {
			return nil
		}
	}
}

// fault returns an *Error about the current record.
func (r *Reader) fault(reason, format string, args ...any) error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...), Offset: r.at.Offset, Record: r.at.Record}
}

// end notes how a file ends that has no footer.
func (r *Reader) end(format string, args ...any) {
	r.done = true
	r.ended = &Error{Reason: codec.Truncated, Detail: "the file was not closed: " + fmt.Sprintf(format, args...),
		Offset: r.at.Offset, Record: r.at.Record}
}

// nextRecord reads a record of the sections. found: it was a message, now in m.
func (r *Reader) nextRecord(m *Message) (found bool, err error) {
	if !r.begun {
		if err := r.magic(); err != nil {
			return false, err
		}
	}
	r.at = Error{Offset: r.offset, Record: r.next}
	r.next++
	var head [prefix]byte
	n, err := r.read(head[:])
	if err != nil {
		return false, err
	}
	if n == 0 {
		r.end("it ends after a whole record, without a footer")
		return false, nil
	}
	if n < prefix {
		r.end("it ends within the first bytes of a record")
		return false, nil
	}
	op := head[0]
	size, err := r.resync(op, binary.LittleEndian.Uint64(head[1:]))
	if err != nil {
		return false, err
	}
	before := r.crc
	if op != opFooter {
		r.crc = crc32.Update(r.crc, crc32.IEEETable, head[:])
	}
	return r.record(m, op, size, before)
}

// record reads the content of a record. before is the checksum of the section before it.
func (r *Reader) record(m *Message, op byte, size uint64, before uint32) (found bool, err error) {
	limit := orDefault(r.MaxRecord, DefaultMaxRecord)
	switch op {
	case 0:
		return false, r.zeros(size)
	case opFooter:
		return false, r.footer(size)
	case opChunk:
		limit = orDefault(r.MaxChunk, DefaultMaxChunk) + 1<<16 // the fields before the records
	case opSchema, opChannel, opMessage, opDataEnd:
	default:
		return false, r.skip(op, size)
	}
	if size > uint64(limit) {
		if err := r.skip(op, size); err != nil || r.done {
			return false, err
		}
		return false, r.fault(codec.TooLarge, "the %s has %d bytes, more than the limit of %d", opName(op), size, limit)
	}
	whole, err := r.take(int(size))
	if err != nil {
		return false, err
	}
	if !whole {
		r.end("it ends within a %s of %d bytes, of which %d are there", opName(op), size, len(r.content))
		if op == opChunk {
			r.partChunk()
		}
		return false, nil
	}
	r.crc = crc32.Update(r.crc, crc32.IEEETable, r.content)
	switch op {
	case opChunk:
		return false, r.chunk()
	case opDataEnd:
		return false, r.dataEnd(before)
	}
	return r.entry(m, op, r.content, -1)
}

func orDefault(limit, otherwise int64) int64 {
	if limit > 0 {
		return limit
	}
	return otherwise
}

// magic reads the begin of the file.
func (r *Reader) magic() error {
	r.begun = true
	head, _ := r.in.Peek(128)
	name := codec.Name(head) // before the reads below, which end its memory
	var b [len(Magic)]byte
	n, err := r.read(b[:])
	if err != nil {
		return err
	}
	r.crc = crc32.Update(0, crc32.IEEETable, b[:n])
	switch {
	case string(b[:]) == Magic:
		return nil
	case n == 0:
		r.done = true
		return r.fault(codec.Empty, "the file is empty")
	case Magic[:n] == string(b[:n]):
		r.done = true
		return r.fault(codec.Truncated, "the file has %d bytes, less than the magic bytes of MCAP", n)
	case Is(b[:]):
		r.done = true
		return r.fault(codec.Unsupported, "the file has MCAP version %q; version 0 is known", b[5])
	}
	r.done = true
	if name != "" {
		return r.fault(codec.WrongMagic, "this is %s, not an MCAP file", name)
	}
	return r.fault(codec.WrongMagic, "this is no MCAP file: it begins with %q", b[:n])
}

// read fills b as far as the file goes.
func (r *Reader) read(b []byte) (int, error) {
	n, err := io.ReadFull(r.in, b)
	r.offset += int64(n)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// take reads n bytes into r.content. Memory grows with the bytes that come, not with n,
// which may lie. whole is false if the file ends before.
func (r *Reader) take(n int) (whole bool, err error) {
	const step = 1 << 20
	r.content = r.content[:0]
	for len(r.content) < n {
		want := min(n-len(r.content), max(step, len(r.content)))
		if free := cap(r.content) - len(r.content); free >= n-len(r.content) {
			want = n - len(r.content)
		} else {
			r.content = grow(r.content, want)
		}
		from := len(r.content)
		got, err := r.read(r.content[from : from+want])
		r.content = r.content[:from+got]
		if err != nil || got < want {
			return false, err
		}
	}
	return true, nil
}

// grow returns b with room for n more bytes, and no more than twice that.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, len(b)+n), b...)
}

// skip reads over the content of a record.
func (r *Reader) skip(op byte, size uint64) error {
	for left := size; left > 0; {
		b, err := r.in.Peek(int(min(left, 64<<10)))
		r.crc = crc32.Update(r.crc, crc32.IEEETable, b)
		r.in.Discard(len(b))
		r.offset += int64(len(b))
		left -= uint64(len(b))
		if err == io.EOF {
			r.end("it ends within a %s of %d bytes, of which %d are there", opName(op), size, size-left)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// zeros decides about the opcode 0, which no record has. A file system that lost power
// leaves zeros at the end of a file; other bytes behind an opcode 0 are a fault behind
// which no record can be found.
func (r *Reader) zeros(size uint64) error {
	rest := size == 0
	for rest {
		b, err := r.in.Peek(4096)
		for _, v := range b {
			rest = rest && v == 0
		}
		r.in.Discard(len(b))
		r.offset += int64(len(b))
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if rest {
		r.end("%d zeros follow the last record", r.offset-r.at.Offset)
		return nil
	}
	r.done = true
	return r.fault(codec.Corrupt, "the bytes are no record: the opcode is 0; nothing can be found behind them")
}

// dataEnd checks the checksum of the data section.
func (r *Reader) dataEnd(crc uint32) error {
	in := cursor{b: r.content}
	want := in.u32()
	r.crc = 0 // that of the summary begins
	if in.bad {
		return r.fault(codec.Corrupt, "the data end has %d bytes instead of 4", len(r.content))
	}
	if want != 0 && want != crc && !r.damaged {
		return r.fault(codec.Corrupt, "the checksum of the data section is %08x instead of %08x", crc, want)
	}
	return nil
}

// footer reads the rest of the file, and checks the checksum of the summary.
func (r *Reader) footer(size uint64) error {
	const fields = 8 + 8 + 4
	r.done = true
	if size != fields {
		return r.fault(codec.Corrupt, "the footer has %d bytes instead of %d", size, fields)
	}
	var b [prefix + fields + len(Magic)]byte
	b[0] = opFooter
	binary.LittleEndian.PutUint64(b[1:], size)
	n, err := r.read(b[prefix:])
	if err != nil {
		return err
	}
	if prefix+n < len(b) {
		r.end("it ends within the footer")
		return nil
	}
	signed := b[:prefix+8+8]
	crc := crc32.Update(r.crc, crc32.IEEETable, signed)
	if want := binary.LittleEndian.Uint32(b[len(signed):]); want != 0 && want != crc && !r.damaged {
		return r.fault(codec.Corrupt, "the checksum of the summary is %08x instead of %08x", crc, want)
	}
	if string(b[prefix+fields:]) != Magic {
		return r.fault(codec.Corrupt, "the file does not end with the magic bytes of MCAP")
	}
	return nil
}

// nextInner reads a record of the chunk.
func (r *Reader) nextInner(m *Message) (found bool, err error) {
	at := len(r.plain) - len(r.inner)
	if len(r.inner) < prefix {
		return false, r.endInner(at, uint64(len(r.inner)))
	}
	op, size := r.inner[0], binary.LittleEndian.Uint64(r.inner[1:])
	if size > uint64(len(r.inner)-prefix) {
		return false, r.endInner(at, size)
	}
	content := r.inner[prefix : prefix+int(size)]
	r.inner = r.inner[prefix+int(size):]
	switch op {
	case opSchema, opChannel, opMessage:
		return r.entry(m, op, content, at)
	case 0, opHeader, opFooter, opChunk, opDataEnd:
		r.inner = nil
		return false, r.fault(codec.Corrupt, "the chunk holds a %s at byte %d of its records", opName(op), at)
	}
	return false, nil
}

// endInner leaves a chunk whose last record is longer than the chunk.
func (r *Reader) endInner(at int, size uint64) error {
	left := len(r.inner)
	r.inner = nil
	if r.partial {
		return nil
	}
	return r.fault(codec.Corrupt, "the record at byte %d of the chunk's records has %d bytes; the chunk has %d more",
		at, size, left)
}

// entry takes a schema, a channel or a message. within is its place in a chunk, or -1.
func (r *Reader) entry(m *Message, op byte, content []byte, within int) (found bool, err error) {
	fault := ""
	switch op {
	case opSchema, opChannel:
		if r.named += int64(len(content)); r.named > maxNamed {
			return false, r.fault(codec.TooLarge, "schemas and channels take more than %d bytes", maxNamed)
		}
		if op == opSchema {
			fault = r.addSchema(content)
		} else {
			fault = r.addChannel(content)
		}
	default:
		fault = r.message(m, content)
		found = fault == ""
	}
	if fault == "" {
		return found, nil
	}
	if within >= 0 {
		fault += fmt.Sprintf(" (byte %d of the chunk's records)", within)
	}
	return false, r.fault(codec.Corrupt, "%s", fault)
}

func (r *Reader) message(m *Message, content []byte) string {
	in := cursor{b: content}
	id := in.u16()
	*m = Message{Sequence: in.u32(), LogTime: in.u64(), PublishTime: in.u64(), Data: in.b, Offset: r.at.Offset,
		Record: r.at.Record}
	if in.bad {
		return fmt.Sprintf("a message has %d bytes, less than its fields", len(content))
	}
	if m.Channel = r.byID[id]; m.Channel == nil {
		return fmt.Sprintf("a message is of channel %d, which has not come", id)
	}
	return ""
}

// Faults of a decompression.
var (
	errMore    = errors.New("there are more records than declared")
	errUnknown = errors.New("the compression is not known")
)
