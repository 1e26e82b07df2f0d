package schemas

import (
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
)

// A chunk is a record that holds a part of a message's value, for brokers that refuse
// records as large as the message. The chunks of a message have one key and go to one
// partition; each has the message's own headers and those below. Chunks of other messages
// may stand between them, and a chunk may be in the log twice.
const (
	HeaderChunkID     = "chunk-id"     // 16 hex digits, drawn anew for each sending of a message
	HeaderChunkIndex  = "chunk-index"  // number of the chunk, from 0 on
	HeaderChunkCount  = "chunk-count"  // chunks of the message
	HeaderFrameBytes  = "frame-bytes"  // size of the whole value
	HeaderFrameCRC32C = "frame-crc32c" // CRC-32C of the whole value, 8 hex digits
)

// Chunk is what the headers of a chunk say.
type Chunk struct {
	ID         string // 16 hex digits
	Index      int
	Count      int
	FrameBytes int64
	CRC32C     uint32
}

const (
	chunkIDSize = 16
	maxChunks   = 1 << 20
)

// ChunkOf reads the headers of a record. is tells whether the record is a chunk, or says so:
// an error then names the header that is missing or wrong.
func ChunkOf(m *Message) (c Chunk, is bool, err error) {
	id := headerValue(m.Headers, HeaderChunkID)
	index, count := headerValue(m.Headers, HeaderChunkIndex), headerValue(m.Headers, HeaderChunkCount)
	if id == nil && index == nil && count == nil {
		return c, false, nil
	}
	c.ID = string(id)
	if raw, failed := hex.DecodeString(c.ID); failed != nil || len(raw) != chunkIDSize/2 {
		return c, true, badChunk("header %s is %.40q; it has 16 hex digits", HeaderChunkID, c.ID)
	}
	numbers := [3]int64{}
	for i, name := range [...]string{HeaderChunkIndex, HeaderChunkCount, HeaderFrameBytes} {
		text := headerValue(m.Headers, name)
		n, ok := parseInt(text)
		if !ok || n < 0 {
			return c, true, badChunk("header %s is %.40q; it has a number", name, text)
		}
		numbers[i] = n
	}
	sum := headerValue(m.Headers, HeaderFrameCRC32C)
	crc, failed := strconv.ParseUint(string(sum), 16, 32)
	switch {
	case failed != nil || len(sum) != 8:
		return c, true, badChunk("header %s is %.40q; it has 8 hex digits", HeaderFrameCRC32C, sum)
	case numbers[1] < 1 || numbers[1] > maxChunks || numbers[0] >= numbers[1]:
		return c, true, badChunk("chunk %d of %d", numbers[0], numbers[1])
	case int64(len(m.Value)) > numbers[2] || m.Oversize > 0:
		return c, true, badChunk("the chunk has %d bytes, and the whole value %d", max(int64(len(m.Value)), m.Oversize),
			numbers[2])
	}
	c.Index, c.Count, c.FrameBytes, c.CRC32C = int(numbers[0]), int(numbers[1]), numbers[2], uint32(crc)
	return c, true, nil
}

func badChunk(format string, args ...any) error {
	return &FormatError{Stage: StageAssemble, Reason: ReasonBadChunk, Detail: fmt.Sprintf(format, args...), At: -1}
}

// ChunksOf splits r, whose value has more than limit bytes, into chunks of at most limit
// bytes each; otherwise it returns r alone. Values and keys are views of r's. id has 16 hex
// digits that no other message in the topic has.
func ChunksOf(r *Record, limit int64, id string) []*Record {
	if int64(len(r.Value)) <= limit {
		return []*Record{r}
	}
	limit = max(limit, int64(len(r.Value)+maxChunks-1)/maxChunks, 1)
	count := int((int64(len(r.Value)) + limit - 1) / limit)
	each := (len(r.Value) + count - 1) / count
	common := []Header{
		{HeaderChunkID, []byte(id)},
		{HeaderChunkCount, strconv.AppendInt(nil, int64(count), 10)},
		{HeaderFrameBytes, strconv.AppendInt(nil, int64(len(r.Value)), 10)},
		{HeaderFrameCRC32C, fmt.Appendf(nil, "%08x", crc32.Checksum(r.Value, castagnoli))},
	}
	chunks := make([]*Record, count)
	for i := range chunks {
		c := *r
		from, to := i*each, min((i+1)*each, len(r.Value))
		c.Value = r.Value[from:to:to] // whoever appends to a chunk does not write into the next one
		c.Headers = make([]Header, 0, len(r.Headers)+len(common)+1)
		c.Headers = append(append(append(c.Headers, r.Headers...), common...),
			Header{HeaderChunkIndex, strconv.AppendInt(nil, int64(i), 10)})
		chunks[i] = &c
	}
	return chunks
}

// WithoutChunk returns the headers of a message without those of its chunk.
func WithoutChunk(hs []Header) []Header {
	var own []Header
	for _, h := range hs {
		switch {
		case sameName(h.Key, HeaderChunkID), sameName(h.Key, HeaderChunkIndex), sameName(h.Key, HeaderChunkCount),
			sameName(h.Key, HeaderFrameBytes), sameName(h.Key, HeaderFrameCRC32C):
		default:
			own = append(own, h)
		}
	}
	return own
}

// ChunkLimit returns the most bytes of a value that fit into a record of size bytes beside
// its key and headers, with room for the batch around it; at least 1.
func ChunkLimit(r *Record, size int64) int64 {
	const around = 512 // the batch, lengths, the headers of a chunk
	n := size - around - int64(len(r.Key))
	for i := range r.Headers {
		n -= int64(len(r.Headers[i].Key)+len(r.Headers[i].Value)) + 10
	}
	return min(max(n, 1), math.MaxInt32)
}
