package mcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compressions of chunks.
const (
	None = ""
	LZ4  = "lz4"
	Zstd = "zstd"
)

// Options configures a Writer.
type Options struct {
	Profile     string // convention of the file, such as ros2; may be empty
	Library     string // name of the program that writes; may be empty
	Compression string // None, LZ4 or Zstd
	// ChunkSize is the size of records at which a chunk ends; 0: 1 MiB. It is negative for
	// a file without chunks.
	ChunkSize int
}

// Writer writes an MCAP file with message indexes, chunk indexes, statistics, summary
// offsets and all checksums. The same calls give the same bytes. The first error stays: Write
// and Close return it. A Writer is not for concurrent use. It holds one chunk and an index of
// some 100 bytes a chunk.
type Writer struct {
	out     io.Writer
	options Options
	err     error
	offset  uint64 // bytes written
	crc     uint32 // the section so far

	schemas, channels [][]byte // contents of the records, for the summary
	counts            []uint64 // messages of channel i+1
	chunk             chunkWriter
	indexes           [][]byte // contents of the chunk index records
	messages          uint64
	times             span // all messages'

	zstd   *zstd.Encoder
	lz4    *lz4.Writer
	packed bytes.Buffer // of lz4
	buffer []byte       // of zstd
	record []byte       // fields of the message that is being written
}

// chunkWriter collects the records of a chunk.
type chunkWriter struct {
	records []byte
	index   map[uint16][]indexEntry
	times   span
}

type indexEntry struct{ time, offset uint64 }

// span is a range of times; the zero value is empty.
type span struct {
	from, to uint64
	any      bool
}

func (s *span) add(t uint64) {
	if !s.any {
		*s = span{t, t, true}
		return
	}
	s.from, s.to = min(s.from, t), max(s.to, t)
}

// NewWriter returns a Writer to out, and writes the header. A compression that is not known
// is an error of the first call.
func NewWriter(out io.Writer, options Options) *Writer {
	w := &Writer{out: out, options: options}
	if w.options.ChunkSize == 0 {
		w.options.ChunkSize = 1 << 20
	}
	w.chunk.index = map[uint16][]indexEntry{}
	switch options.Compression {
	case None:
	case LZ4:
		w.lz4 = lz4.NewWriter(nil)
		w.err = w.lz4.Apply(lz4.ConcurrencyOption(1), lz4.BlockSizeOption(lz4.Block1Mb))
	case Zstd:
		w.zstd, w.err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	default:
		w.err = fmt.Errorf("mcap: compression %q is not known; there are lz4, zstd and none", options.Compression)
	}
	w.write([]byte(Magic))
	w.writeRecord(opHeader, text(text(nil, options.Profile), options.Library))
	return w
}

// AddSchema adds a schema and returns its id, from 1. encoding says what data are: protobuf
// (a FileDescriptorSet), ros2msg, jsonschema …
func (w *Writer) AddSchema(name, encoding string, data []byte) uint16 {
	id := len(w.schemas) + 1
	if id > math.MaxUint16 {
		w.fail(errors.New("mcap: more than 65,535 schemas"))
		return 0
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(id))
	b = text(text(b, name), encoding)
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...)
	w.schemas = append(w.schemas, b)
	w.add(opSchema, b)
	return uint16(id)
}

// AddChannel adds a channel and returns its id, from 1. schema 0 means no schema.
func (w *Writer) AddChannel(topic, messageEncoding string, schema uint16, metadata map[string]string) uint16 {
	id := len(w.channels) + 1
	if id > math.MaxUint16 {
		w.fail(errors.New("mcap: more than 65,535 channels"))
		return 0
	}
	if int(schema) > len(w.schemas) {
		w.fail(fmt.Errorf("mcap: channel %q has schema %d; there are %d", topic, schema, len(w.schemas)))
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(id))
	b = binary.LittleEndian.AppendUint16(b, schema)
	b = text(text(b, topic), messageEncoding)
	var pairs []byte
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		pairs = text(text(pairs, key), metadata[key])
	}
	b = text(b, string(pairs))
	w.channels, w.counts = append(w.channels, b), append(w.counts, 0)
	w.add(opChannel, b)
	return uint16(id)
}

// Write writes a message. Times are in nanoseconds. data are copied.
func (w *Writer) Write(channel uint16, sequence uint32, logTime, publishTime uint64, data []byte) error {
	if channel == 0 || int(channel) > len(w.channels) {
		w.fail(fmt.Errorf("mcap: there is no channel %d", channel))
	}
	if w.err != nil {
		return w.err
	}
	if w.chunked() && len(w.chunk.records) > 0 && len(w.chunk.records)+len(data) > w.options.ChunkSize {
		w.endChunk()
	}
	head := binary.LittleEndian.AppendUint16(w.record[:0], channel)
	head = binary.LittleEndian.AppendUint32(head, sequence)
	head = binary.LittleEndian.AppendUint64(head, logTime)
	w.record = binary.LittleEndian.AppendUint64(head, publishTime)
	if w.chunked() {
		at := uint64(len(w.chunk.records))
		w.chunk.index[channel] = append(w.chunk.index[channel], indexEntry{logTime, at})
		w.chunk.times.add(logTime)
	}
	w.add(opMessage, w.record, data)
	w.counts[channel-1]++
	w.messages++
	w.times.add(logTime)
	return w.err
}

// Close writes the last chunk, the summary and the footer. It does not close the writer below.
// The Writer cannot be used any more.
func (w *Writer) Close() error {
	w.endChunk()
	w.writeRecord(opDataEnd, binary.LittleEndian.AppendUint32(nil, w.crc))
	w.crc = 0
	start := w.offset
	var offsets []byte
	group := func(op byte, contents [][]byte) {
		from := w.offset
		for _, b := range contents {
			w.writeRecord(op, b)
		}
		if w.offset > from {
			b := binary.LittleEndian.AppendUint64([]byte{op}, from)
			b = binary.LittleEndian.AppendUint64(b, w.offset-from)
			offsets = appendRecord(offsets, opSummaryOffset, b)
		}
	}
	group(opSchema, w.schemas)
	group(opChannel, w.channels)
	group(opStatistics, [][]byte{w.statistics()})
	group(opChunkIndex, w.indexes)
	offsetStart := w.offset
	w.write(offsets)
	w.footer(start, offsetStart)
	if w.zstd != nil {
		w.fail(w.zstd.Close())
	}
	err := w.err
	w.fail(errors.New("mcap: the file is closed"))
	return err
}

// footer ends the file. Its checksum covers the summary and its own first fields.
func (w *Writer) footer(start, offsetStart uint64) {
	b := binary.LittleEndian.AppendUint64([]byte{opFooter}, 8+8+4)
	b = binary.LittleEndian.AppendUint64(b, start)
	b = binary.LittleEndian.AppendUint64(b, offsetStart)
	b = binary.LittleEndian.AppendUint32(b, crc32.Update(w.crc, crc32.IEEETable, b))
	w.write(append(b, Magic...))
}

func (w *Writer) statistics() []byte {
	b := binary.LittleEndian.AppendUint64(nil, w.messages)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(w.schemas)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.channels)))
	b = append(b, make([]byte, 8)...) // attachments and metadata
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.indexes)))
	b = binary.LittleEndian.AppendUint64(b, w.times.from)
	b = binary.LittleEndian.AppendUint64(b, w.times.to)
	b = binary.LittleEndian.AppendUint32(b, uint32(10*len(w.counts)))
	for i, n := range w.counts {
		b = binary.LittleEndian.AppendUint16(b, uint16(i+1))
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func (w *Writer) chunked() bool { return w.options.ChunkSize > 0 }

// add appends a record to the chunk, or writes it where there are no chunks.
func (w *Writer) add(op byte, content ...[]byte) {
	if !w.chunked() {
		w.writeRecord(op, content...)
		return
	}
	w.chunk.records = appendRecord(w.chunk.records, op, content...)
}

func appendRecord(b []byte, op byte, content ...[]byte) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, op), sizeOf(content))
	for _, part := range content {
		b = append(b, part...)
	}
	return b
}

// endChunk writes the chunk and its message indexes.
func (w *Writer) endChunk() {
	c := &w.chunk
	if len(c.records) == 0 || w.err != nil {
		return
	}
	packed := w.compress(c.records)
	head := binary.LittleEndian.AppendUint64(nil, c.times.from)
	head = binary.LittleEndian.AppendUint64(head, c.times.to)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(c.records)))
	head = binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(c.records))
	head = text(head, w.options.Compression)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(packed)))
	start := w.offset
	w.writeRecord(opChunk, head, packed)
	length := w.offset - start

	index := binary.LittleEndian.AppendUint64(nil, c.times.from)
	index = binary.LittleEndian.AppendUint64(index, c.times.to)
	index = binary.LittleEndian.AppendUint64(index, start)
	index = binary.LittleEndian.AppendUint64(index, length)
	index = binary.LittleEndian.AppendUint32(index, uint32(10*len(c.index)))
	from := w.offset
	for _, channel := range slices.Sorted(maps.Keys(c.index)) {
		index = binary.LittleEndian.AppendUint16(index, channel)
		index = binary.LittleEndian.AppendUint64(index, w.offset)
		w.messageIndex(channel, c.index[channel])
	}
	index = binary.LittleEndian.AppendUint64(index, w.offset-from)
	index = text(index, w.options.Compression)
	index = binary.LittleEndian.AppendUint64(index, uint64(len(packed)))
	index = binary.LittleEndian.AppendUint64(index, uint64(len(c.records)))
	w.indexes = append(w.indexes, index)
	c.records, c.times = c.records[:0], span{}
	clear(c.index)
}

func (w *Writer) messageIndex(channel uint16, entries []indexEntry) {
	slices.SortStableFunc(entries, func(a, b indexEntry) int {
		switch {
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		}
		return 0
	})
	b := binary.LittleEndian.AppendUint16(nil, channel)
	b = binary.LittleEndian.AppendUint32(b, uint32(16*len(entries)))
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint64(b, e.time)
		b = binary.LittleEndian.AppendUint64(b, e.offset)
	}
	w.writeRecord(opMessageIndex, b)
}

// compress returns records as the chunk holds them, in memory of w.
func (w *Writer) compress(records []byte) []byte {
	switch w.options.Compression {
	case LZ4:
		w.packed.Reset()
		w.lz4.Reset(&w.packed)
		_, err := w.lz4.Write(records)
		w.fail(errors.Join(err, w.lz4.Close()))
		return w.packed.Bytes()
	case Zstd:
		w.buffer = w.zstd.EncodeAll(records, w.buffer[:0])
		return w.buffer
	}
	return records
}

// writeRecord writes a record of the sections, outside chunks.
func (w *Writer) writeRecord(op byte, content ...[]byte) {
	w.write(binary.LittleEndian.AppendUint64([]byte{op}, sizeOf(content)))
	for _, part := range content {
		w.write(part)
	}
}

func sizeOf(content [][]byte) uint64 {
	n := 0
	for _, part := range content {
		n += len(part)
	}
	return uint64(n)
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.offset += uint64(n)
	w.crc = crc32.Update(w.crc, crc32.IEEETable, b[:n])
	w.fail(err)
}

// fail keeps the first error.
func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// text appends the length of s in four bytes, and s.
func text(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}
