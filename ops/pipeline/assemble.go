package pipeline

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"entropipe/schemas"
)

// A message may come in several records, its chunks (schemas.ChunkOf). The assembler of a
// session puts them together between the fetch and the slots. A message of chunks has the
// lowest offset of its chunks: there its slot stands, and the collector waits there until the
// message is decided, which means assembled or given up.
//
// What becomes of a chunk is a function of the log, not of where a process began to read it:
//
//   - a chunk of an open message continues it;
//   - else a chunk whose id is among the last 32 messages that began before it is a duplicate;
//   - else it begins a message.
//
// A message is given up when as many bytes of keys and values as Chunks.Window follow the
// begin of its first chunk. Only at the log's end a clock decides, too.
//
// A manifest that ends at an offset lists the chunks behind the end that belong to messages
// before it (ahead), and the last messages that began before it (closed), so that whoever
// goes on there decides the same. sinks/internal/protocol checks these rules over all short
// logs and all ways to cut them.

// Chunks bounds how long the chunks of a message may be apart.
type Chunks struct {
	Window int64         // bytes of keys and values; 0: 64 MiB
	Age    time.Duration // at the log's end; 0: 30 s
	Max    int64         // bytes of a message; 0: 64 MiB
	Recent int           // messages that are remembered; 0: schemas.MaxClosed
}

const (
	defaultChunkWindow = 64 << 20
	defaultChunkAge    = 30 * time.Second
)

func (c Chunks) orDefaults() Chunks {
	if c.Window <= 0 {
		c.Window = defaultChunkWindow
	}
	if c.Age <= 0 {
		c.Age = defaultChunkAge
	}
	if c.Max <= 0 {
		c.Max = defaultChunkWindow
	}
	if c.Recent <= 0 {
		c.Recent = schemas.MaxClosed
	}
	return c
}

// assembler puts the chunks of one session together. The goroutine of the reader alone
// uses it.
type assembler struct {
	Chunks
	ahead  map[int64]bool // offsets that belong to messages of earlier manifests
	recent []string       // the last messages that began, at most Recent, oldest first
	open   []*assembly    // in the order of their offsets
	read   int64          // bytes of keys and values so far
}

// assembly is a message of chunks. It belongs to the assembler until it is decided, then to
// the task of its slot.
type assembly struct {
	id       string
	message  schemas.Message // with key and headers of the first chunk, in memory of its own
	of       schemas.Chunk   // of the first chunk
	have     []bool
	missing  int
	size     int     // bytes of each chunk but the last; 0: unknown
	offsets  []int64 // of its chunks, duplicates among them
	from     int64   // assembler.read before the first chunk
	opened   time.Time
	refused  error // why the message is a reject; nil: it is whole
	task     *task
	reserved int64 // bytes
}

func newAssembler(c Chunks, at *schemas.Chunked) *assembler {
	a := &assembler{Chunks: c.orDefaults(), ahead: map[int64]bool{}}
	if at != nil {
		for _, offset := range at.Ahead {
			a.ahead[offset] = true
		}
		a.recent = slices.Clone(at.Closed)
	}
	return a
}

// place says what a record is for the order of its partition.
type place int

const (
	wholeMessage place = iota // a message by itself, or a chunk that cannot be used
	beginning                 // the first chunk of a message
	continuation              // a chunk of a message that begins before it
	noMemory                  // a first chunk, whose message has no memory
)

// take takes a record. opened is the message that begins with it; nil: none does. reserve
// is called before memory for a message is taken; its error is returned with noMemory. Any
// other error makes the record a reject. What take decides is in decided.
func (a *assembler) take(m *schemas.Message, now time.Time, reserve func(bytes int64) error) (is place,
	opened *assembly, err error) {
	before := a.read
	a.read += int64(len(m.Key) + len(m.Value))
	c, chunk, err := schemas.ChunkOf(m)
	if a.ahead[m.Offset] {
		delete(a.ahead, m.Offset)
		return continuation, nil, nil
	}
	if !chunk || err != nil {
		return wholeMessage, nil, err
	}
	if i := slices.IndexFunc(a.open, func(f *assembly) bool { return f.id == c.ID }); i >= 0 {
		f := a.open[i]
		f.offsets = append(f.offsets, m.Offset)
		f.add(&c, m)
		return continuation, nil, nil
	}
	if slices.Contains(a.recent, c.ID) {
		return continuation, nil, nil
	}
	f := &assembly{id: c.ID, of: c, missing: c.Count, offsets: []int64{m.Offset}, from: before, opened: now}
	f.message = *m
	f.message.Key, f.message.Headers = bytes.Clone(m.Key), cloneHeaders(schemas.WithoutChunk(m.Headers))
	f.message.Value, f.message.Summed = nil, false
	switch {
	case c.FrameBytes > a.Max:
		f.message.Oversize = c.FrameBytes
		f.message.Value = bytes.Clone(m.Value[:min(len(m.Value), schemas.MaxRejectValue)])
	default:
		if err := reserve(c.FrameBytes); err != nil {
			return noMemory, nil, err
		}
		f.reserved = c.FrameBytes
		f.have, f.message.Value = make([]bool, c.Count), make([]byte, c.FrameBytes)
		f.add(&c, m)
	}
	a.recent = remember(a.recent, c.ID, a.Recent)
	a.open = append(a.open, f)
	return beginning, f, nil
}

// add copies the bytes of a chunk to their place.
func (f *assembly) add(c *schemas.Chunk, m *schemas.Message) {
	if f.refused != nil || f.message.Oversize > 0 {
		return
	}
	last := c.Index == c.Count-1
	if !last && f.size == 0 {
		f.size = len(m.Value)
	}
	at, whole := c.Index*f.size, len(f.message.Value)
	if last {
		at = whole - len(m.Value)
	}
	switch {
	case c.Count != f.of.Count || c.FrameBytes != f.of.FrameBytes || c.CRC32C != f.of.CRC32C:
		f.refuse(
			schemas.ReasonChunkConflict,
			"the chunk at offset %d says %d chunks, %d bytes, CRC-32C %08x; the first "+
				"one, at %d, says %d, %d, %08x",
			m.Offset,
			c.Count,
			c.FrameBytes,
			c.CRC32C,
			f.message.Offset,
			f.of.Count,
			f.of.FrameBytes,
			f.of.CRC32C,
		)
	case !last && len(m.Value) != f.size || f.size > 0 && f.size*(c.Count-1)+len(m.Value) != whole && last ||
		at < 0 || at+len(m.Value) > whole:
		f.refuse(schemas.ReasonBadChunk, "chunk %d of %d, at offset %d, has %d bytes; all but the last have one size, "+
			"and all together %d bytes", c.Index, c.Count, m.Offset, len(m.Value), whole)
	case f.have[c.Index] && !bytes.Equal(f.message.Value[at:at+len(m.Value)], m.Value):
		f.refuse(schemas.ReasonChunkConflict, "chunk %d of %d came twice with different bytes, the second time at "+
			"offset %d", c.Index, c.Count, m.Offset)
	case !f.have[c.Index]:
		copy(f.message.Value[at:], m.Value)
		f.have[c.Index] = true
		f.missing--
	}
}

func (f *assembly) refuse(reason, format string, args ...any) {
	f.refused = &schemas.FormatError{Stage: schemas.StageAssemble, Reason: reason, At: -1,
		Detail: fmt.Sprintf(format, args...)}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decided returns the messages that are decided, in the order of their offsets, and forgets
// them. atEnd: there was no record behind the last one when it was read.
func (a *assembler) decided(now time.Time, atEnd bool) (all []*assembly) {
	a.open = slices.DeleteFunc(a.open, func(f *assembly) bool {
		switch {
		case f.refused != nil || f.message.Oversize > 0:
		case f.missing == 0:
			if sum := crc32.Checksum(f.message.Value, castagnoli); sum != f.of.CRC32C {
				f.refuse(
					schemas.ReasonBadChecksum,
					"the CRC-32C of the %d chunks is %08x, and should be %08x",
					f.of.Count,
					sum,
					f.of.CRC32C,
				)
			}
		case a.read-f.from >= a.Window:
			f.giveUp("%d bytes of records follow the first one (--chunk-window)", a.Window)
		case atEnd && now.Sub(f.opened) >= a.Age:
			f.giveUp("none came for %v at the log's end (--chunk-age)", a.Age)
		default:
			return false
		}
		all = append(all, f)
		return true
	})
	return all
}

// giveUp refuses a message whose chunks are missing.
func (f *assembly) giveUp(why string, of any) {
	f.message.Value, f.message.Oversize = nil, f.of.FrameBytes
	f.refuse(schemas.ReasonIncomplete, "%d of %d chunks are missing, and "+why, f.missing, f.of.Count, of)
}

func cloneHeaders(hs []schemas.Header) []schemas.Header {
	own := make([]schemas.Header, len(hs))
	for i, h := range hs {
		own[i] = schemas.Header{Key: string([]byte(h.Key)), Value: bytes.Clone(h.Value)}
	}
	return own
}

// ledger follows the slots of a partition in their order, and knows what a manifest says of
// chunks. The collector's goroutine alone uses it.
type ledger struct {
	ahead  []int64 // ascending
	closed []string
	most   int // messages that are remembered
}

func newLedger(c Chunks, at *schemas.Chunked) ledger {
	l := ledger{most: c.orDefaults().Recent}
	if at != nil {
		l.ahead, l.closed = slices.Clone(at.Ahead), slices.Clone(at.Closed)
	}
	return l
}

// began enters a message of chunks, which is decided; nil: the message came in one record.
func (l *ledger) began(f *assembly) {
	if f == nil {
		return
	}
	l.ahead = append(l.ahead, f.offsets[1:]...)
	slices.Sort(l.ahead)
	l.closed = remember(l.closed, f.id, l.most)
}

// remember appends an id and forgets the oldest beyond most.
func remember(ids []string, id string, most int) []string {
	ids = append(ids, id)
	return slices.Delete(ids, 0, max(len(ids)-most, 0))
}

// at returns what a manifest with this end says; nil: nothing.
func (l *ledger) at(end int64) *schemas.Chunked {
	l.ahead = slices.DeleteFunc(l.ahead, func(offset int64) bool { return offset < end })
	if len(l.ahead)+len(l.closed) == 0 {
		return nil
	}
	return &schemas.Chunked{Ahead: slices.Clone(l.ahead), Closed: slices.Clone(l.closed)}
}
