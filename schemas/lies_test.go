package schemas

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// zstdFrame is a frame of the bytes as they are, under a header of our choice:
// what follows the magic number.
func zstdFrame(header, content []byte) []byte {
	f := append([]byte{0x28, 0xb5, 0x2f, 0xfd}, header...)
	size := uint32(len(content))<<3 | 1 // raw, last
	f = append(f, byte(size), byte(size>>8), byte(size>>16))
	return append(f, content...)
}

// lz4Frame is one of blocks of at most 4 MiB, the content stored.
func lz4Frame(content []byte) []byte {
	f := []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73}
	f = binary.LittleEndian.AppendUint32(f, uint32(len(content))|1<<31)
	f = append(f, content...)
	return append(f, 0, 0, 0, 0)
}

// Headers of codecs that ask for much memory get what the buffer's own,
// checked length says, and no more.
func TestCodecHeadersThatLie(t *testing.T) {
	x := field{"x", f32, "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]"}
	y := x
	y.name = "y"
	rec := record(t, x, y)
	content := bytesOf([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	cases := []struct {
		name   string
		codec  ipc.Option
		frame  []byte
		reason string
	}{
		{"window of 512 MiB", ipc.WithZstd(), zstdFrame([]byte{0x00, 19 << 3}, content), ""},
		{"content of 1 TiB", ipc.WithZstd(), zstdFrame([]byte{0xe0, 0, 0, 0, 0, 0, 1, 0, 0}, content), ReasonCorrupt},
		{"content too short", ipc.WithZstd(), zstdFrame([]byte{0x00, 0}, content[4:]), ReasonCorrupt},
		{"content too long", ipc.WithZstd(), zstdFrame([]byte{0x00, 0}, append(content[:64:64], 1)), ReasonCorrupt},
		{"blocks of 4 MiB", ipc.WithLZ4(), lz4Frame(content), ""},
		{"lz4 too long", ipc.WithLZ4(), lz4Frame(append(content[:64:64], 1)), ReasonCorrupt},
		{"lz4 too short", ipc.WithLZ4(), lz4Frame(content[4:]), ReasonCorrupt},
	}
	for _, c := range cases {
		value := withFrame(write(t, []arrow.Record{rec}, c.codec), c.frame)
		var d Decoder
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frames, err := d.Decode(Message{Topic: "t", Value: value})
		runtime.ReadMemStats(&after)
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("%s: %v, want reason %q", c.name, err, c.reason)
		} else if err == nil && !bytes.Equal(bytesOf(frames[0].Cloud32.X), content) {
			t.Errorf("%s: %v", c.name, frames[0].Cloud32.X)
		}
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 16<<20 {
			t.Errorf("%s: %d bytes allocated", c.name, spent)
		}
	}
}

// withFrame puts another frame, behind its length prefix, in the place of the
// first values: as a longer body, to which the buffer is made to point.
func withFrame(value, frame []byte) []byte {
	at := schemaBytes(value)
	m, next, err := readMessage(value, at)
	if err != nil {
		panic(err)
	}
	body := append(bytes.Clone(m.body), m.body[m.i64(firstValues(&m)):][:8]...)
	body = append(body, frame...)
	for len(body)%8 != 0 {
		body = append(body, 0)
	}
	put64(m.b, firstValues(&m), int64(len(m.body)))
	put64(m.b, firstValues(&m)+8, int64(8+len(frame)))
	root := m.root()
	put64(m.b, m.field(root, 3), int64(len(body)))
	out := append(bytes.Clone(value[:m.bodyAt]), body...)
	return append(out, value[next:]...)
}

// firstValues returns where the metadata of a batch describes its second
// buffer: the first column's values.
func firstValues(m *ipcMessage) int {
	bufs, _ := m.vector(m.header, 2, 16)
	return bufs + 16
}
