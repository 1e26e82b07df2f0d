package mcap

import (
	"encoding/binary"
	"io"
	"slices"

	"entropipe/schemas/codec"
)

// Behind a record whose length or opcode is damaged, the next record does not begin where
// the damaged one says. A Reader of a file looks for it: by the index, where there is one, else
// by structure.

// file is what a Reader can look ahead in.
type file interface {
	io.ReaderAt
	io.Seeker
}

// extent returns the number of bytes of a file that is at its begin; 0: it cannot be known.
func extent(f file) int64 {
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != 0 {
		return 0
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0
	}
	return size
}

const (
	chunkFields  = 8 + 8 + 8 + 4 + 4 + 8 // of a chunk without the name of its compression
	footerFields = 8 + 8 + 4
	ownOpcodes   = 0x80 // first opcode that applications may use for themselves
	// maxCandidates bounds the places that a search reads from the file.
	maxCandidates = 1 << 18
	// searchWindow is what a search reads at once, bytes.
	searchWindow = 1 << 20
	// chainLength is the number of records behind a place that must follow each other, where
	// its own content proves nothing; two at the end of the file.
	chainLength = 3
)

// leastSizes are the bytes of records whose texts, lists and data are empty, by opcode.
var leastSizes = [...]uint64{opHeader: 4 + 4, opSchema: 2 + 4 + 4 + 4, opChannel: 2 + 2 + 4 + 4 + 4,
	opMessage: 2 + 4 + 8 + 8, opChunk: chunkFields, opMessageIndex: 2 + 4, opChunkIndex: 8*4 + 4 + 8 + 4 + 8 + 8,
	opAttachment: 8 + 8 + 4 + 4 + 8 + 4, opAttachmentIndex: 5*8 + 4 + 4, opStatistics: 8 + 2 + 4*4 + 8 + 8 + 4,
	opMetadata: 4 + 4, opMetadataIndex: 8 + 8 + 4, opSummaryOffset: 1 + 8 + 8, opDataEnd: 4}

// resync decides whether the current record, of which the opcode and the length were read, is
// one. It returns the length of its content, which differs from size where a chunk's own fields
// say so. If another record begins before this one ends, or this is none, resync goes there and
// returns an *Error with the number of bytes lost.
func (r *Reader) resync(op byte, size uint64) (uint64, error) {
	if r.file == nil {
		return size, nil
	}
	at := r.at.Offset
	follows := r.followed(op, size)
	if op == opChunk {
		own := r.chunkSize(at)
		if own == size { // also if it is cut off by the end of the file, or the next record is damaged
			return size, nil
		}
		follows = follows && r.chain(at+prefix+int64(size), chainLength)
		if !follows && own > 0 && r.isRecordAt(at+prefix+int64(own)) {
			return own, nil
		}
	}
	if follows {
		return size, nil
	}
	from, end := at+1, at
	if r.isRecord(at, op, size) {
		from, end = at+prefix, at+prefix+int64(size)
	}
	next := r.search(from)
	if next < 0 || from > at+1 && next >= end {
		return size, nil
	}
	if _, err := r.file.Seek(next, io.SeekStart); err != nil {
		return 0, err
	}
	r.in.Reset(r.source)
	r.offset, r.damaged = next, true
	return 0, r.fault(codec.Corrupt, "the bytes are no whole %s: %d bytes are lost; the next record is at byte %d",
		opName(op), next-at, next)
}

// followed reports whether the current record fits into the file and a record, or the end of
// the file, is behind it.
func (r *Reader) followed(op byte, size uint64) bool {
	unknown := op > opDataEnd && op < ownOpcodes // of a later version of the format
	if !unknown && !r.isRecord(r.at.Offset, op, size) || size > uint64(max(0, r.size-r.at.Offset-prefix)) {
		return false
	}
	if op == opFooter {
		return true
	}
	if n := r.in.Buffered(); size+prefix <= uint64(n) {
		b, _ := r.in.Peek(int(size) + prefix)
		head := b[size:]
		return r.isRecord(r.at.Offset+prefix+int64(size), head[0], binary.LittleEndian.Uint64(head[1:]))
	}
	end := r.at.Offset + prefix + int64(size)
	return end == r.size || r.isRecordAt(end)
}

// isRecordAt is isRecord for a place in the file.
func (r *Reader) isRecordAt(at int64) bool {
	var head [prefix]byte
	if n, _ := r.file.ReadAt(head[:], at); n < prefix {
		return false
	}
	return r.isRecord(at, head[0], binary.LittleEndian.Uint64(head[1:]))
}

// isRecord reports whether a record of that opcode and length can stand at a place.
func (r *Reader) isRecord(at int64, op byte, size uint64) bool {
	if size > uint64(max(0, r.size-at-prefix)) {
		return false
	}
	if op == opFooter {
		return size == footerFields && at+prefix+footerFields+int64(len(Magic)) == r.size
	}
	return op >= ownOpcodes || op != 0 && int(op) < len(leastSizes) && size >= leastSizes[op]
}

// chunkSize returns the length of the chunk at a place by the fields in it; 0: they are damaged.
func (r *Reader) chunkSize(at int64) uint64 {
	var b [chunkFields + 8]byte // the longest name is that of Zstandard
	n, _ := r.file.ReadAt(b[:], at+prefix)
	h, ok := readChunk(b[:n])
	if !ok || h.compression != None && h.compression != LZ4 && h.compression != Zstd || h.length > 1<<62 {
		return 0
	}
	return chunkFields + uint64(len(h.compression)) + h.length
}

// search returns the place of the next record from a place on; -1: there is none.
func (r *Reader) search(from int64) int64 {
	if i, _ := slices.BinarySearch(r.chunks, from); i < len(r.chunks) && r.isChunk(r.chunks[i]) {
		return r.chunks[i]
	}
	window := make([]byte, min(searchWindow+prefix, r.size-from))
	candidates := 0
	for at := from; at+prefix <= r.size; at += searchWindow {
		n, _ := r.file.ReadAt(window[:min(int64(len(window)), r.size-at)], at)
		for i := 0; i+prefix <= n && i < searchWindow; i++ {
			op := window[i]
			if op <= opHeader || op > opDataEnd || window[i+8] != 0 || window[i+7] != 0 {
				continue
			}
			if !r.isRecord(at+int64(i), op, binary.LittleEndian.Uint64(window[i+1:])) {
				continue
			}
			if candidates++; candidates > maxCandidates {
				return -1
			}
			if r.chain(at+int64(i), chainLength) {
				return at + int64(i)
			}
		}
	}
	return -1
}

// isChunk reports whether the fields of the record at a place are those of a chunk.
func (r *Reader) isChunk(at int64) bool {
	var head [prefix]byte
	n, _ := r.file.ReadAt(head[:], at)
	return n == prefix && head[0] == opChunk && r.chunkSize(at) == binary.LittleEndian.Uint64(head[1:])
}

// chain reports whether a record stands at a place: its content proves it, or as many records
// follow each other from there, or at least two up to the end of the file.
func (r *Reader) chain(at int64, records int) bool {
	var head [prefix + 6]byte
	n, _ := r.file.ReadAt(head[:], at)
	if n < prefix {
		return false
	}
	op, size := head[0], binary.LittleEndian.Uint64(head[1:])
	if op <= opHeader || op > opDataEnd || !r.isRecord(at, op, size) {
		return false
	}
	switch op {
	case opChunk:
		return r.chunkSize(at) == size
	case opFooter:
		return true
	case opMessageIndex:
		if size < 6 || uint64(binary.LittleEndian.Uint32(head[prefix+2:]))+6 != size || (size-6)%16 != 0 {
			return false
		}
	case opMessage:
		if len(r.byID) > 0 && r.byID[binary.LittleEndian.Uint16(head[prefix:])] == nil {
			return false
		}
	}
	end := at + prefix + int64(size)
	return records == 1 || end == r.size && records < chainLength || r.chain(end, records-1)
}
