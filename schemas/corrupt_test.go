package schemas

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// checkBytes decodes value in two ways and asserts what holds for all bytes:
// an error is a FormatError and none of Arrow's panics, and both ways agree.
//
// What Arrow's reader makes of an accepted value, if it can read it, is equal:
// asked only if the schema is one of known, because that reader allocates
// whatever a broken one says (a column's number of children, for one).
func checkBytes(t testing.TB, fast, slow *Decoder, m Message, known [][]byte) {
	t.Helper()
	frames, err := fast.Decode(m)
	reason := reasonOf(t, err)
	if reason == ReasonArrowPanic {
		t.Fatalf("%v\nvalue %x", err, m.Value)
	}
	again, err := slow.Decode(m)
	if got := reasonOf(t, err); got != reason {
		t.Fatalf("in place: reason %q, through Arrow: %q (%v)\nvalue %x", reason, got, err, m.Value)
	}
	if err != nil {
		return
	}
	if len(frames) != len(again) {
		t.Fatalf("in place: %d frames, through Arrow: %d\nvalue %x", len(frames), len(again), m.Value)
	}
	for i := range frames {
		if !sameBits(&frames[i], &again[i]) {
			t.Fatalf("frame %d differs\nin place:      %+v\nthrough Arrow: %+v\nvalue %x", i,
				frames[i], again[i], m.Value)
		}
	}
	hasSchema := func(raw []byte) bool { return bytes.HasPrefix(m.Value, raw) }
	if headerValue(m.Headers, HeaderContentType) != nil || !slices.ContainsFunc(known, hasSchema) {
		return
	}
	ref, err := readReference(m.Value)
	if err != nil {
		return // a column that we skip, or a text that no drawing begins with
	}
	if diff := ref.compare(frames); diff != "" {
		t.Fatalf("Arrow's reader: %s\nvalue %x", diff, m.Value)
	}
}

func sameBits(a, b *Frame) bool {
	same := bytes.Equal(bytesOf(a.Intensity), bytesOf(b.Intensity)) && a.Double == b.Double && a.HasZ() == b.HasZ() &&
		a.TimeNs == b.TimeNs
	x, y := a.Cloud32, b.Cloud32
	same = same && bytes.Equal(bytesOf(x.X), bytesOf(y.X)) && bytes.Equal(bytesOf(x.Y), bytesOf(y.Y)) &&
		bytes.Equal(bytesOf(x.Z), bytesOf(y.Z))
	v, w := a.Cloud64, b.Cloud64
	same = same && bytes.Equal(bytesOf(v.X), bytesOf(w.X)) && bytes.Equal(bytesOf(v.Y), bytesOf(w.Y)) &&
		bytes.Equal(bytesOf(v.Z), bytesOf(w.Z))
	if a.Drawing == nil || b.Drawing == nil {
		return same && a.Drawing == b.Drawing
	}
	return same && *a.Drawing == *b.Drawing
}

// Every byte of the framing and metadata of every good stream is changed in
// turn, and every stream cut at every length.
func TestCorruptStreams(t *testing.T) {
	fast, slow := &Decoder{MaxBytes: 1 << 20}, &Decoder{MaxBytes: 1 << 20, throughArrow: true}
	streams := append(pointStreams(t), sketchStreams(t)...)
	known := schemasOf(streams)
	for _, s := range streams {
		patterns := []byte{0x01, 0x80, 0xff}
		if len(s.value) > 2000 || testing.Short() {
			patterns = patterns[1:2]
		}
		value := bytes.Clone(s.value)
		for _, at := range metadataBytes(s.value) {
			for _, p := range patterns {
				value[at] ^= p
				checkBytes(t, fast, slow, Message{Topic: "t", Value: value}, known)
				value[at] ^= p
			}
		}
		for n := range s.value {
			m := Message{Topic: "t", Value: s.value[:n:n]}
			checkBytes(t, fast, slow, m, known)
		}
	}
}

// schemasOf returns the schema messages of the streams.
func schemasOf(streams []stream) (raw [][]byte) {
	for _, s := range streams {
		_, next, err := readMessage(s.value, 0)
		if err != nil {
			panic(err)
		}
		raw = append(raw, s.value[:next])
	}
	return raw
}

// metadataBytes returns the positions of all bytes that are no body, and of
// the first ones of each body: the prefixes of compressed buffers.
func metadataBytes(value []byte) (at []int) {
	for pos := 0; pos >= 0 && pos < len(value); {
		m, next, err := readMessage(value, pos)
		if err != nil {
			panic(err)
		}
		if next < 0 {
			break
		}
		for i := pos; i < min(m.bodyAt+16, next); i++ {
			at = append(at, i)
		}
		pos = next
	}
	return at
}

// FuzzDecode asserts for any bytes what checkBytes does, and that decoding
// allocates in proportion to the bytes, or, where they are compressed, to
// MaxBytes.
func FuzzDecode(f *testing.F) {
	streams := append(pointStreams(f), sketchStreams(f)...)
	known := schemasOf(streams)
	for _, s := range streams {
		f.Add(s.value, byte(0))
	}
	for _, c := range badStreams(f) {
		if len(c.value) < 4096 {
			f.Add(c.value, byte(0))
		}
	}
	f.Add(kittiValue(), byte(1))
	f.Add(largeBlocks(f, xyz(f32)...), byte(0))
	const limit = 1 << 20
	fast, slow := &Decoder{MaxBytes: limit}, &Decoder{MaxBytes: limit, throughArrow: true}
	warm(f, fast)
	f.Fuzz(func(t *testing.T, value []byte, kind byte) {
		m := Message{Topic: "t", Value: value}
		switch kind % 4 {
		case 1:
			m.Headers = []Header{{HeaderContentType, []byte(ContentTypeKITTI)}}
		case 2:
			m.Headers = []Header{{HeaderSchema, []byte(SchemaPoints)}}
		case 3:
			m.Headers = []Header{{HeaderSchema, []byte(SchemaSketches)}}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := fast.Decode(m)
		runtime.ReadMemStats(&after)
		spent, most := int64(after.TotalAlloc-before.TotalAlloc), int64(32*len(value)+1<<19)
		if compressed(value) {
			most += 5*limit + lz4Blocks // values, their decoded form, and block buffers of the codecs
		}
		if spent > most {
			t.Fatalf("%d bytes allocated for a value of %d (%v)\nvalue %x", spent, len(value), err, value)
		}
		checkBytes(t, fast, slow, m, known)
	})
}

// lz4Blocks are the buffers for blocks of 4 MiB, the largest that a frame's header
// can ask for: what it holds, and what that becomes. The codec keeps them until a
// garbage collection, so that any message may be the one that pays for them.
const lz4Blocks = 9 << 20

// largeBlocks is a stream whose first values are in a frame of such blocks.
func largeBlocks(t testing.TB, fields ...field) []byte {
	value := write(t, []arrow.Record{record(t, fields...)}, ipc.WithLZ4())
	m, _, err := readMessage(value, schemaBytes(value))
	if err != nil {
		t.Fatal(err)
	}
	prefix := m.body[m.i64(firstValues(&m)):]
	return withFrame(value, lz4Frame(make([]byte, binary.LittleEndian.Uint64(prefix))))
}

// warm makes the decoder allocate what it keeps for ever.
func warm(t testing.TB, d *Decoder) {
	for _, opt := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd()} {
		if _, err := d.Decode(Message{Topic: "t",
			Value: write(t, []arrow.Record{record(t, xyz(f32)...)}, opt)}); err != nil {
			t.Fatal(err)
		}
	}
}

// compressed tells whether any batch of the stream says that it is.
func compressed(value []byte) bool {
	for at := 0; at >= 0; {
		m, next, err := readMessage(value, at)
		if err != nil || next < 0 {
			return false
		}
		batch := m.header
		if m.kind == kindDictionaryBatch {
			batch = m.sub(m.header, 1)
		}
		if m.kind != kindSchema && m.sub(batch, 3).size > 0 {
			return true
		}
		at = next
	}
	return false
}
