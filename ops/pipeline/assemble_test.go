package pipeline

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/schemas"
)

// chunkLog makes a log of whole messages and of messages in chunks, whose chunks are
// interleaved, doubled, swapped and lost.
func chunkLog(t *rapid.T) []schemas.Message {
	var log []schemas.Message
	id := 0
	n := rapid.IntRange(1, 60).Draw(t, "messages")
	var under [][]*schemas.Record // chunks to come of each sensor
	for range rapid.IntRange(1, 5).Draw(t, "sensors") {
		under = append(under, nil)
	}
	add := func(r *schemas.Record) {
		m := schemas.Message{Offset: int64(len(log)), Key: r.Key, Value: r.Value, Headers: r.Headers,
			Time: time.Unix(int64(len(log)), 0)}
		summed(&m)
		log = append(log, m)
	}
	for sent := 0; sent < n || slices.ContainsFunc(under, func(c []*schemas.Record) bool { return len(c) > 0 }); {
		s := rapid.IntRange(0, len(under)-1).Draw(t, "sensor")
		if len(under[s]) == 0 {
			if sent == n {
				continue
			}
			sent++
			id++
			value := bytes.Repeat([]byte{byte(id)}, rapid.IntRange(0, 40).Draw(t, "size"))
			under[s] = schemas.ChunksOf(
				&schemas.Record{Key: []byte{byte(s)}, Value: value},
				10,
				fmt.Sprintf("%016x", id),
			)
			if rapid.IntRange(0, 9).Draw(t, "loses") == 0 {
				under[s] = slices.Delete(under[s], 0, 1)
				continue
			}
			if len(under[s]) > 1 && rapid.IntRange(0, 7).Draw(t, "spoils") == 0 {
				under[s] = spoil(t, under[s])
			}
		}
		at := 0
		if len(under[s]) > 1 && rapid.IntRange(0, 4).Draw(t, "swaps") == 0 {
			at = 1
		}
		add(under[s][at])
		if rapid.IntRange(0, 5).Draw(t, "doubles") > 0 {
			under[s] = slices.Delete(under[s], at, at+1)
		}
	}
	return log
}

// summed sums every second record of a log, as a source does that needs the sum itself.
func summed(m *schemas.Message) {
	if m.Offset%2 == 0 {
		m.ValueSum, m.Summed = crc32.Checksum(m.Value, castagnoli), true
	}
}

// spoil adds a chunk to those of a message that does not fit to them, or replaces one by it.
func spoil(t *rapid.T, chunks []*schemas.Record) []*schemas.Record {
	i := rapid.IntRange(0, len(chunks)-1).Draw(t, "spoilt")
	c := *chunks[i]
	c.Headers = slices.Clone(c.Headers)
	set := func(name, value string) {
		for k := range c.Headers {
			if c.Headers[k].Key == name {
				c.Headers[k].Value = []byte(value)
			}
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		set(schemas.HeaderChunkCount, fmt.Sprint(len(chunks)+1))
	case 1:
		set(schemas.HeaderFrameBytes, "39")
	case 2:
		set(schemas.HeaderFrameCRC32C, "00000000")
	case 3:
		set(schemas.HeaderChunkID, "no id")
	case 4:
		c.Value = append(bytes.Clone(c.Value[1:]), 'x')
	default:
		c.Value = c.Value[1:]
	}
	if rapid.Bool().Draw(t, "replaces") {
		chunks[i] = &c
		return chunks
	}
	return slices.Insert(chunks, rapid.IntRange(0, len(chunks)).Draw(t, "place"), &c)
}

// frame is a message of chunks in whatBecomes.
type frame struct {
	schemas.Chunk
	parts  map[int][]byte
	begun  int64 // bytes before it
	row    *row
	reason string
}

// takes adds a chunk, or sets why there can be no message.
func (f *frame) takes(c schemas.Chunk, value []byte) {
	index := c.Index
	switch had, ok := f.parts[index]; {
	case ok && len(had) != len(value):
		f.reason = schemas.ReasonBadChunk
	case ok && !bytes.Equal(had, value):
		f.reason = schemas.ReasonChunkConflict
	}
	f.parts[index] = value
	size, tail := -1, -1
	for i, part := range f.parts {
		switch {
		case i == f.Count-1:
			tail = len(part)
		case size >= 0 && size != len(part):
			f.reason = schemas.ReasonBadChunk
		default:
			size = len(part)
		}
	}
	rest := f.Count - 1
	whole := int(f.FrameBytes)
	switch {
	case rest == 0 && tail != whole, size >= 0 && size*rest > whole, size >= 0 && tail >= 0 && size*rest+tail != whole,
		size < 0 && rest > 0 && (whole-tail)%rest != 0:
		f.reason = schemas.ReasonBadChunk
	}
	if c.Index, c.ID = f.Index, f.ID; c != f.Chunk {
		f.reason = schemas.ReasonChunkConflict
	}
}

// whatBecomes is the simplest form of the rules that assemble.go states: it has the whole log.
func whatBecomes(log []schemas.Message, window int64, recent int) []row {
	rows := map[int64]*row{}
	var begun []string
	open := map[string]*frame{}
	read := int64(0)
	for i := range log {
		m := &log[i]
		before := read
		read += m.Bytes()
		c, is, err := schemas.ChunkOf(m)
		f := open[c.ID]
		switch {
		case err != nil:
			rows[m.Offset] = &row{Offset: m.Offset, Reason: schemas.ReasonBadChunk}
		case !is:
			rows[m.Offset] = &row{Offset: m.Offset, Value: string(m.Value)}
		case f == nil && slices.Contains(begun[max(0, len(begun)-recent):], c.ID):
		default:
			if f == nil {
				f = &frame{Chunk: c, parts: map[int][]byte{}, begun: before, row: &row{Offset: m.Offset}}
				open[c.ID], rows[m.Offset], begun = f, f.row, append(begun, c.ID)
			}
			f.takes(c, m.Value)
		}
		for id, f := range open {
			switch {
			case f.reason != "":
			case len(f.parts) == f.Count:
				for i := range f.Count {
					f.row.Value += string(f.parts[i])
				}
				if crc32.Checksum([]byte(f.row.Value), crc32.MakeTable(crc32.Castagnoli)) != f.CRC32C {
					f.reason = schemas.ReasonBadChecksum
				}
			case read-f.begun >= window:
				f.reason = schemas.ReasonIncomplete
			default:
				continue
			}
			delete(open, id)
			f.settle()
		}
	}
	for _, f := range open {
		f.reason = schemas.ReasonIncomplete
		f.settle()
	}
	var all []row
	for _, offset := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, *rows[offset])
	}
	return all
}

func (f *frame) settle() {
	if f.row.Reason = f.reason; f.reason != "" {
		f.row.Value = ""
	}
}

func free(int64) error { return nil }

// row is what becomes of a message.
type row struct {
	Offset int64
	Value  string
	Reason string
}

// cutChunks bounds the messages of a test: few bytes, few ids.
var cutChunks = Chunks{Window: 1200, Age: time.Second, Recent: 2}

// batchOf reads log from pos to as far as to, and returns the rows of the longest batch that
// may be committed, up to most offsets, and the position behind it. last: nothing will
// follow the log.
func batchOf(
	log []schemas.Message,
	pos schemas.Position,
	to, most int64,
	last bool,
) (rows []row, next schemas.Position) {
	few := cutChunks
	a := newAssembler(few, pos.Chunks)
	now := time.Unix(1e9, 0)
	slots := map[int64]*assembly{}
	chunks := map[int64]place{}
	faults := map[int64]error{}
	done := map[*assembly]bool{}
	note := func(fs []*assembly) {
		for _, f := range fs {
			done[f] = true
		}
	}
	for o := pos.Next; o < to; o++ {
		is, f, err := a.take(&log[o], now, free)
		chunks[o], slots[o], faults[o] = is, f, err
		note(a.decided(now, false))
	}
	if last {
		note(a.decided(now.Add(time.Hour), true))
	}
	l := newLedger(few, pos.Chunks)
	next = schemas.Position{Next: pos.Next, Chunks: pos.Chunks}
	for o := pos.Next; o < min(to, pos.Next+most); o++ {
		f := slots[o]
		if f != nil && !done[f] {
			break
		}
		switch {
		case f != nil:
			l.began(f)
			r := row{Offset: o, Value: string(f.message.Value)}
			if f.refused != nil {
				r = row{Offset: o, Reason: f.refused.(*schemas.FormatError).Reason}
			}
			rows = append(rows, r)
		case faults[o] != nil:
			rows = append(rows, row{Offset: o, Reason: faults[o].(*schemas.FormatError).Reason})
		case chunks[o] == wholeMessage:
			rows = append(rows, row{Offset: o, Value: string(log[o].Value)})
		}
		next = schemas.Position{Next: o + 1, Chunks: l.at(o + 1)}
	}
	return rows, next
}

// Law: the rows and rejects of a log are those of the rules, and do not depend on where batches
// end, how far their writers had read, or how often one begins anew: chunks may be interleaved,
// swapped, lost, there twice, and spoilt.
func TestChunksGiveTheSameRowsHoweverTheLogIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := chunkLog(t)
		size := int64(len(log))
		want, end := batchOf(log, schemas.Position{}, size, size, true)
		if end.Next != size {
			t.Fatalf("a reader without a break ends at %d of %d", end.Next, size)
		}
		if d := cmp.Diff(whatBecomes(log, cutChunks.Window, cutChunks.Recent), want); d != "" {
			t.Fatalf("-by the rules +without a break\n%s", d)
		}
		var got []row
		for pos := (schemas.Position{}); pos.Next < size; {
			to := rapid.Int64Range(pos.Next+1, size).Draw(t, "to")
			rows, next := batchOf(log, pos, to, rapid.Int64Range(1, size).Draw(t, "most"), to == size)
			got, pos = append(got, rows...), next
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-without a break +in batches\n%s", d)
		}
	})
}

// Law: what ChunksOf parts is the same value again, in any order, however often a chunk is
// there.
func TestChunksBecomeTheirMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "value")
		r := &schemas.Record{Key: []byte("key"), Value: value, Headers: []schemas.Header{{Key: "schema",
			Value: []byte("points/1")}}}
		chunks := schemas.ChunksOf(r, int64(rapid.IntRange(1, 210).Draw(t, "limit")), strings.Repeat("0a", 8))
		if len(chunks) == 1 {
			return
		}
		again := append(slices.Clone(chunks), chunks...)
		order := rapid.Permutation(again).Draw(t, "order")
		a := newAssembler(Chunks{}, nil)
		var first *assembly
		for o, c := range order {
			m := &schemas.Message{Offset: int64(o), Key: c.Key, Value: c.Value, Headers: c.Headers}
			summed(m)
			_, f, err := a.take(m, time.Now(), free)
			if err != nil || (f != nil) != (o == 0) {
				t.Fatalf("chunk %d: %v, begins a message: %t", o, err, f != nil)
			}
			if o == 0 {
				first = f
			}
			if all := a.decided(time.Now(), false); len(all) > 0 && all[0] != first {
				t.Fatal("another message was decided")
			}
		}
		if first.refused != nil || !bytes.Equal(first.message.Value, value) || len(first.message.Headers) != 1 {
			t.Fatalf("%v, %x, headers %v", first.refused, first.message.Value, first.message.Headers)
		}
	})
}
