package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"entropipe/ops/metrics"
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
//   - else a chunk whose id is among the last Recent messages that began before it is a duplicate;
//   - else it begins a message.
//
// A message is given up when as many bytes of keys, values and headers as Chunks.Window, or as
// many records as Chunks.Records, follow the begin of its first chunk. Only at the log's end a clock
// decides, too.
//
// A manifest that ends at an offset lists the chunks behind the end that belong to messages
// before it (ahead), and the last messages that began before it (closed), so that whoever
// goes on there decides the same. sinks/internal/protocol checks these rules over all short
// logs and all ways to cut them.

// Chunks bounds how long the chunks of a message may be apart.
type Chunks struct {
	Window int64         // bytes of keys, values and headers; 0: 64 MiB
	Age    time.Duration // at the log's end; 0: 30 s
	Max    int64         // bytes of a message; 0: 64 MiB
	// Records bounds how many records follow the begin of a message's first chunk, because
	// chunks without bytes would never fill the window; 0: 65,536.
	Records int64
	Recent  int // messages that are remembered; 0: schemas.MaxClosed
}

const (
	defaultChunkWindow = 64 << 20
	defaultChunkAge    = 30 * time.Second
	defaultChunkCount  = 1 << 16
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
	if c.Records <= 0 {
		c.Records = defaultChunkCount
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
	read   int64          // bytes of keys, values and headers so far
	taken  int64          // records so far
	ending bool           // no further message begins
	memory *buffers       // of chunks and values; nil: none is kept
	counts metrics.Chunks // since the reader took them
	clock  waiting
}

// assembly is a message of chunks. It belongs to the assembler until it is decided, then to
// the task of its slot.
type assembly struct {
	id       string
	message  schemas.Message // with key and headers of the first chunk, in memory of its own
	of       schemas.Chunk   // of the first chunk
	parts    map[int][]byte  // chunks by their numbers, in memory of their own, or views of whole
	sums     map[int]uint32  // CRC-32C of those parts that the source has summed
	whole    []byte          // memory of all chunks, where they are few; nil: they are not
	size     int             // bytes of each chunk but the last; -1: unknown
	offsets  []int64         // of its chunks, duplicates among them
	from     int64           // assembler.read before the first chunk
	after    int64           // assembler.taken before it
	opened   time.Duration   // assembler.clock
	refused  error           // why the message is a reject; nil: it is whole
	task     *task
	reserved int64 // bytes of memory for parts, which the whole value takes over, and for key and headers
}

const (
	// partCost is the memory that a chunk takes beside its bytes, headerCost that of a header.
	partCost   = 96
	headerCost = 48
	// fewChunks is how many times the size of its first chunk a message takes at once, which
	// spares a copy. The memory of more chunks comes with each of them: headers may claim
	// anything.
	fewChunks = 4
)

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
	noMemory                  // a chunk for which there is no memory
	beyond                    // what would begin a message, and ending is set
)

// take takes a record. opened is the message that begins with it; nil: none does. reserve
// is called before the bytes of a chunk are kept; its error is returned with noMemory, and the
// record has not been taken. Any other error makes the record a reject. What take decides is in
// decided. asked is when the record's fetch began.
func (a *assembler) take(m *schemas.Message, asked time.Time, reserve func(bytes int64) error) (is place,
	opened *assembly, err error) {
	c, chunk, err := schemas.ChunkOf(m)
	before, size := a.read, m.Bytes()
	if a.ahead[m.Offset] {
		delete(a.ahead, m.Offset)
		a.read, a.taken = a.read+size, a.taken+1
		a.counts.Ahead++
		return continuation, nil, nil
	}
	i := -1
	if chunk && err == nil {
		i = slices.IndexFunc(a.open, func(f *assembly) bool { return f.id == c.ID })
	}
	switch {
	case i >= 0:
		f := a.open[i]
		had := len(f.parts)
		if err := f.take(&c, m, a.memory, reserve); err != nil {
			return noMemory, nil, err
		}
		if len(f.parts) == had && f.refused == nil {
			a.counts.Duplicate++
		} else {
			a.counts.New++
		}
		is = continuation
	case chunk && err == nil && slices.Contains(a.recent, c.ID):
		a.counts.Duplicate++
		is = continuation
	case a.ending:
		is, err = beyond, nil
	case !chunk || err != nil:
		is = wholeMessage
	default:
		if opened, err = a.begin(&c, m, asked, reserve); err != nil {
			return noMemory, nil, err
		}
		opened.from, opened.after, is = before, a.taken, beginning
	}
	a.read, a.taken = a.read+size, a.taken+1
	return is, opened, err
}

// begin opens the message of a first chunk.
func (a *assembler) begin(c *schemas.Chunk, m *schemas.Message, asked time.Time,
	reserve func(bytes int64) error) (*assembly, error) {
	f := &assembly{id: c.ID, of: *c, size: -1, opened: a.waited(asked)}
	f.message = *m
	f.message.Value, f.message.Summed = nil, false
	own := schemas.Message{Key: m.Key, Headers: schemas.WithoutChunk(m.Headers)}
	if c.FrameBytes > a.Max {
		f.message.Oversize = c.FrameBytes
		if c.Index == 0 { // else the bytes are not the first ones
			f.message.Value = bytes.Clone(m.Value[:min(len(m.Value), schemas.MaxRejectValue)])
		}
	}
	kept := own.Bytes() + headerCost*int64(len(own.Headers))
	err := f.take(c, m, a.memory, func(bytes int64) error {
		kept += bytes
		return reserve(kept)
	})
	if err != nil {
		return nil, err
	}
	if f.reserved > 0 {
		f.reserved = kept
	}
	f.message.Key, f.message.Headers = bytes.Clone(own.Key), cloneHeaders(own.Headers)
	a.counts.New++
	a.recent = remember(a.recent, c.ID, a.Recent)
	a.open = append(a.open, f)
	return f, nil
}

// take keeps a chunk of f, unless f has it. An error of reserve changes nothing.
func (f *assembly) take(c *schemas.Chunk, m *schemas.Message, memory *buffers,
	reserve func(bytes int64) error) error {
	if f.refused == nil && f.message.Oversize == 0 && f.fits(c, m) && f.parts[c.Index] == nil {
		bytes := int64(len(m.Value) + partCost)
		few := f.parts == nil && c.FrameBytes <= fewChunks*int64(len(m.Value))
		switch {
		case few:
			bytes = c.FrameBytes + partCost
		case f.whole != nil:
			bytes = 0
		}
		if bytes > 0 {
			if err := reserve(bytes); err != nil {
				return err
			}
			f.reserved += bytes
		}
		if few {
			f.whole = memory.get(int(c.FrameBytes))
		}
		f.keep(c, m.Value, memory)
		if m.Summed {
			f.sums[c.Index] = m.ValueSum
		}
	}
	f.offsets = append(f.offsets, m.Offset)
	return nil
}

// keep copies the bytes of a chunk, which fits.
func (f *assembly) keep(c *schemas.Chunk, value []byte, memory *buffers) {
	if f.parts == nil {
		f.parts, f.sums = map[int][]byte{}, map[int]uint32{}
	}
	part := value
	switch at := c.Index * f.size; {
	case f.whole == nil:
		part = memory.get(len(value))
	case c.Index == c.Count-1:
		part = f.whole[len(f.whole)-len(value):]
	default:
		part = f.whole[at : at+len(value)]
	}
	copy(part, value)
	f.parts[c.Index] = part
}

// fits tells whether a chunk is one of f's message, and refuses the message where it is not.
func (f *assembly) fits(c *schemas.Chunk, m *schemas.Message) bool {
	had := f.parts[c.Index]
	switch {
	case c.Count != f.of.Count || c.FrameBytes != f.of.FrameBytes || c.CRC32C != f.of.CRC32C:
		f.refuse(schemas.ReasonChunkConflict, "the chunk at offset %d says %d chunks, %d bytes, CRC-32C %08x; the "+
			"first one, at %d, says %d, %d, %08x", m.Offset, c.Count, c.FrameBytes, c.CRC32C, f.message.Offset,
			f.of.Count, f.of.FrameBytes, f.of.CRC32C)
	case !f.sized(c, len(m.Value)):
		f.refuse(schemas.ReasonBadChunk, "chunk %d of %d, at offset %d, has %d bytes; all but the last have one size, "+
			"and all together %d bytes", c.Index, c.Count, m.Offset, len(m.Value), c.FrameBytes)
	case had != nil && !bytes.Equal(had, m.Value):
		f.refuse(schemas.ReasonChunkConflict, "chunk %d of %d came twice with different bytes, the second time at "+
			"offset %d", c.Index, c.Count, m.Offset)
	}
	return f.refused == nil
}

// sized tells whether a chunk has the size of its place. The first one fixes the sizes of all.
func (f *assembly) sized(c *schemas.Chunk, size int) bool {
	others, whole := int64(c.Count-1), c.FrameBytes
	last := c.Index == c.Count-1
	switch {
	case others == 0:
		return int64(size) == whole
	case f.size < 0 && last:
		rest := whole - int64(size)
		if rest%others != 0 || rest/others > math.MaxInt {
			return false
		}
		f.size = int(rest / others)
	case f.size < 0:
		f.size = size
	}
	if last {
		return int64(f.size)*others+int64(size) == whole
	}
	return size == f.size && int64(size)*others <= whole
}

// reason returns the reason of the reject that a decided message becomes; empty: it is whole.
func (f *assembly) reason() string {
	var refused *schemas.FormatError
	switch {
	case errors.As(f.refused, &refused):
		return refused.Reason
	case f.message.Oversize > 0:
		return schemas.ReasonTooLarge
	}
	return ""
}

func (f *assembly) refuse(reason, format string, args ...any) {
	if f.message.Value == nil { // there is no value to show, but its size is known
		f.message.Oversize = f.of.FrameBytes
	}
	f.refused = &schemas.FormatError{Stage: schemas.StageAssemble, Reason: reason, At: -1,
		Detail: fmt.Sprintf(format, args...)}
}

// drop gives up the memory of the chunks.
func (f *assembly) drop(memory *buffers) {
	if f.whole == nil {
		for _, part := range f.parts {
			memory.put(part)
		}
	} else if f.message.Value == nil {
		memory.put(f.whole)
	}
	f.parts, f.whole = nil, nil
}

// join makes the value of all chunks, in memory that the end of the message's lease takes back.
func (f *assembly) join(memory *buffers) {
	value := f.whole
	if value == nil {
		value = memory.get(int(f.of.FrameBytes))
		at := 0
		for i := range f.of.Count {
			at += copy(value[at:], f.parts[i])
		}
	}
	f.message.Value, f.message.ValueSum, f.message.Summed = value, f.of.CRC32C, true
	if sum := f.sum(); sum != f.of.CRC32C {
		f.refuse(schemas.ReasonBadChecksum, "the CRC-32C of the %d chunks is %08x, and should be %08x", f.of.Count, sum,
			f.of.CRC32C)
	}
}

// sum returns the CRC-32C of the value. It reads only the parts that the source has not summed.
func (f *assembly) sum() (sum uint32) {
	for i := range f.of.Count {
		part, summed := f.sums[i]
		if !summed {
			part = crc32.Checksum(f.parts[i], castagnoli)
		}
		sum = schemas.ShiftCRC(sum, len(f.parts[i])) ^ part
	}
	return sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// waited returns how long chunks have been waited for. What passes between two fetches
// counts for a quarter of Age at most, so that no jump of a clock gives a message up.
func (a *assembler) waited(asked time.Time) time.Duration {
	return a.clock.look(asked, max(a.Age/4, time.Second))
}

// decided returns the messages that are decided, in the order of their offsets, and forgets
// them. atEnd: there was no record behind the last one when it was read. asked is when the last
// fetch began: what came to the log since then is unknown.
func (a *assembler) decided(asked time.Time, atEnd bool) (all []*assembly) {
	waited := a.waited(asked)
	a.open = slices.DeleteFunc(a.open, func(f *assembly) bool {
		switch {
		case f.refused != nil || f.message.Oversize > 0:
		case len(f.parts) == f.of.Count:
			f.join(a.memory)
		case a.read-f.from >= a.Window:
			f.giveUp("%d bytes of records follow the first one (--chunk-window)", a.Window)
		case a.taken-f.after > a.Records:
			f.giveUp("%d records follow the first one", a.Records)
		case atEnd && waited-f.opened >= a.Age:
			f.giveUp("none came for %v at the log's end (--chunk-age)", a.Age)
		default:
			return false
		}
		f.drop(a.memory)
		all = append(all, f)
		return true
	})
	return all
}

// giveUp refuses a message whose chunks are missing.
func (f *assembly) giveUp(why string, of any) {
	f.refuse(schemas.ReasonIncomplete, "%d of %d chunks are missing, and "+why, f.of.Count-len(f.parts), f.of.Count, of)
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
