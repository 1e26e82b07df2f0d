package mcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas/codec"
)

// seen is a message in a form that tests compare.
type seen struct {
	Topic, Encoding, Schema string
	Sequence                uint32
	LogTime, PublishTime    uint64
	Data                    string
}

func seenOf(m *Message) seen {
	return seen{m.Channel.Topic, m.Channel.MessageEncoding, m.Channel.SchemaName(), m.Sequence, m.LogTime,
		m.PublishTime, string(m.Data)}
}

// layouts are the forms of files that the tests write.
var layouts = []Options{
	{Compression: None, ChunkSize: -1},
	{Compression: None, ChunkSize: 300},
	{Compression: LZ4, ChunkSize: 300, Profile: "ros2", Library: "test"},
	{Compression: Zstd, ChunkSize: 300},
}

// sample writes messages of three channels, and returns the file and them.
func sample(t testing.TB, o Options, messages int) ([]byte, []seen) {
	var file bytes.Buffer
	w := NewWriter(&file, o)
	schema := w.AddSchema("a/msg/A", "ros2msg", []byte("int32 a"))
	ids := []uint16{w.AddChannel("/a", "cdr", schema, map[string]string{"qos": "best", "a": "b"}),
		w.AddChannel("/b", "json", 0, nil), w.AddChannel("/c", "cdr", schema, nil)}
	var want []seen
	random := rand.New(rand.NewPCG(1, 2))
	for i := range messages {
		data := make([]byte, i*7%90)
		for k := range data {
			data[k] = byte(random.IntN(4))
		}
		c := i % 3
		m := seen{[]string{"/a", "/b", "/c"}[c], []string{"cdr", "json", "cdr"}[c],
			[]string{"a/msg/A", "", "a/msg/A"}[c], uint32(i), uint64(1e18) + uint64(i*13%50), uint64(i), string(data)}
		if err := w.Write(ids[c], m.Sequence, m.LogTime, m.PublishTime, data); err != nil {
			t.Fatal(err)
		}
		want = append(want, m)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), want
}

// readAll returns the messages of a file and the faults that were passed over.
func readAll(r *Reader) (messages []seen, faults []*Error, err error) {
	for {
		var m Message
		err := r.Next(&m)
		var fault *Error
		switch {
		case err == io.EOF:
			return messages, faults, nil
		case errors.As(err, &fault):
			faults = append(faults, fault)
		case err != nil:
			return messages, faults, err
		default:
			messages = append(messages, seenOf(&m))
		}
	}
}

func TestWrittenFilesAreRead(t *testing.T) {
	for _, o := range layouts {
		t.Run(fmt.Sprintf("%s/%d", o.Compression, o.ChunkSize), func(t *testing.T) {
			file, want := sample(t, o, 40)
			if again, _ := sample(t, o, 40); !bytes.Equal(file, again) {
				t.Error("the same calls gave other bytes")
			}
			if !Is(file) {
				t.Error("Is does not recognise the file")
			}
			r := NewReader(bytes.NewReader(file))
			got, faults, err := readAll(r)
			if err != nil || faults != nil || r.Unclosed() != nil {
				t.Fatal(err, faults, r.Unclosed())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			s, err := ReadSummary(bytes.NewReader(file), int64(len(file)))
			if err != nil || s == nil {
				t.Fatal(s, err)
			}
			if len(s.Schemas) != 1 || len(s.Channels) != 3 || s.Channels[1].Topic != "/b" ||
				s.Channels[0].Metadata["qos"] != "best" {
				t.Errorf("summary %+v", s)
			}
			if diff := cmp.Diff(map[uint16]uint64{1: 14, 2: 13, 3: 13}, s.Counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A robot that loses power leaves a file without index, which ends within any byte.
func TestEveryTruncation(t *testing.T) {
	for _, o := range layouts {
		t.Run(fmt.Sprintf("%s/%d", o.Compression, o.ChunkSize), func(t *testing.T) {
			file, want := sample(t, o, 20)
			before := 0
			for size := range len(file) {
				r := NewReader(bytes.NewReader(file[:size]))
				got, faults, err := readAll(r)
				if err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				if size < len(Magic) {
					if len(faults) != 1 {
						t.Fatalf("%d bytes: faults %v", size, faults)
					}
					continue
				}
				if len(faults) != 0 || r.Unclosed() == nil || r.Unclosed().Reason != codec.Truncated {
					t.Fatalf("%d bytes: faults %v, unclosed %v", size, faults, r.Unclosed())
				}
				if len(got) < before || len(got) > len(want) {
					t.Fatalf("%d bytes: %d messages, and %d with a byte less", size, len(got), before)
				}
				before = len(got)
				if diff := cmp.Diff(want[:len(got)], append([]seen{}, got...)); diff != "" {
					t.Fatalf("%d bytes: %s", size, diff)
				}
				if s, err := ReadSummary(bytes.NewReader(file[:size]), int64(size)); s != nil || err != nil {
					t.Fatalf("%d bytes: summary %v, %v", size, s, err)
				}
			}
			if before != len(want) {
				t.Errorf("%d of %d messages without the last byte", before, len(want))
			}
		})
	}
}

// The messages of a truncated chunk are read as far as they can be decompressed.
func TestMessagesOfTruncatedChunk(t *testing.T) {
	for _, o := range []Options{{Compression: None}, {Compression: LZ4}, {Compression: Zstd}} {
		o.ChunkSize = 64 << 20
		var file bytes.Buffer
		w := NewWriter(&file, o)
		c := w.AddChannel("/a", "raw", 0, nil)
		random := rand.New(rand.NewPCG(3, 4))
		for i := range 64 {
			data := make([]byte, 100_000)
			for k := range data {
				data[k] = byte(random.IntN(30))
			}
			if err := w.Write(c, uint32(i), uint64(i), 0, data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		half := file.Bytes()[:file.Len()/2]
		r := NewReader(bytes.NewReader(half))
		got, faults, err := readAll(r)
		if err != nil || faults != nil || r.Unclosed() == nil {
			t.Fatal(err, faults, r.Unclosed())
		}
		if len(got) < 15 || len(got) > 33 {
			t.Errorf("%q: %d of 64 messages of a file that was cut in two", o.Compression, len(got))
		}
		if n := len(got) - 1; got[n].Sequence != uint32(n) || len(got[n].Data) != 100_000 {
			t.Errorf("%q: the last message is %d with %d bytes", o.Compression, got[n].Sequence, len(got[n].Data))
		}
	}
}

// A flipped bit is an error or changes a message outside a checksum; reading goes on.
func TestEveryFlippedByte(t *testing.T) {
	for _, o := range layouts {
		t.Run(fmt.Sprintf("%s/%d", o.Compression, o.ChunkSize), func(t *testing.T) {
			file, want := sample(t, o, 20)
			for at := range file {
				bad := bytes.Clone(file)
				bad[at] ^= 1 << (at % 8)
				r := NewReader(bytes.NewReader(bad))
				r.MaxChunk, r.MaxRecord = 1<<16, 1<<16
				got, faults, err := readAll(r)
				if err != nil {
					t.Fatalf("byte %d: %v", at, err)
				}
				quiet := len(faults) == 0 && r.Unclosed() == nil
				if cmp.Equal(want, got) && at > 60 && quiet && !summaryByte(file, at) {
					t.Errorf("byte %d of %d: nobody noticed", at, len(file))
				}
			}
		})
	}
}

// summaryByte reports whether a byte is in fields of the summary section or footer, which
// Next does not use and of which the checksum tells.
func summaryByte(file []byte, at int) bool {
	foot := len(file) - len(Magic) - 20
	return at >= foot && at < len(file)-len(Magic)
}

func TestFaultsNameRecordAndOffset(t *testing.T) {
	file, want := sample(t, Options{ChunkSize: 300}, 20)
	chunks := find(file, opChunk)
	flip := func(at int) []byte { b := bytes.Clone(file); b[at] ^= 0x10; return b }
	put := func(at int, v uint64) []byte {
		b := bytes.Clone(file)
		binary.LittleEndian.PutUint64(b[at:], v)
		return b
	}
	second := chunks[1]
	size := binary.LittleEndian.Uint64(file[second.at+1:])
	for _, c := range []struct {
		name, reason, detail string
		file                 []byte
	}{
		{"chunk checksum", codec.Corrupt, "checksum of the chunk", flip(second.at + 80)},
		{"chunk size", codec.Corrupt, "instead of", put(second.at+prefix+16, 17)},
		{"chunk limit", codec.TooLarge, "limit", put(second.at+prefix+16, 1<<60)},
		{"records length", codec.Corrupt, "do not fit", put(second.at+prefix+32, 1<<60)},
		{"wrong magic", codec.WrongMagic, "no MCAP file", flip(1)},
		{"Draco", codec.WrongMagic, "a Draco file", []byte("DRACO\x02\x02\x01")},
		{"version", codec.Unsupported, "version", flip(5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(bytes.NewReader(c.file))
			got, faults, err := readAll(r)
			if err != nil || len(faults) == 0 {
				t.Fatal(err, faults)
			}
			f := faults[0]
			if f.Reason != c.reason || !strings.Contains(f.Error(), c.detail) {
				t.Errorf("%s: %v", f.Reason, f)
			}
			if f.Record > 0 {
				if f.Offset != int64(second.at) || f.Record != int64(second.record) {
					t.Errorf("%v; the chunk is record %d at %d of %d bytes", f, second.record, second.at, size)
				}
				if len(got) == 0 || len(got) >= len(want) {
					t.Errorf("%d of %d messages", len(got), len(want))
				}
			}
		})
	}
}

// place is where a record stands.
type place struct{ at, record int }

// find returns the records of the sections that have the opcode.
func find(file []byte, op byte) (found []place) {
	for at, n := len(Magic), 0; at+prefix < len(file); n++ {
		if file[at] == op {
			found = append(found, place{at, n})
		}
		at += prefix + int(binary.LittleEndian.Uint64(file[at+1:]))
	}
	return found
}

func TestLyingFields(t *testing.T) {
	record := func(op byte, size uint64, content string) string {
		return string(append(binary.LittleEndian.AppendUint64([]byte{op}, size), content...))
	}
	chunk := func(size uint64, compression string, packed string) string {
		b := binary.LittleEndian.AppendUint64(make([]byte, 16), size)
		b = text(binary.LittleEndian.AppendUint32(b, 0), compression)
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(packed))), packed...)
		return record(opChunk, uint64(len(b)), string(b))
	}
	for _, c := range []struct{ name, rest, want string }{
		{"opcode 0", record(0, 5, "abcde"), "opcode is 0"},
		{"message of 2^63 bytes", record(opMessage, 1<<63, "abc"), "ends within a message"},
		{"chunk of 100 MiB", record(opChunk, 100<<20, "abc"), "ends within a chunk"},
		{"unknown compression", chunk(10, "brotli", "abc"), "brotli"},
		{"no zstd", chunk(10, Zstd, "abc"), "decompressed"},
		{"zstd of 100 MiB", chunk(100<<20, Zstd, "abc"), "decompressed"},
		{"no lz4", chunk(100<<20, LZ4, "abc"), "decompressed"},
		{"chunk in chunk", chunk(9, None, record(opChunk, 0, "")), "holds a chunk"},
		{"record beyond chunk", chunk(9, None, record(opMessage, 1, "")), "the chunk has"},
		{"short message", record(opMessage, 3, "abc"), "less than its fields"},
		{"unknown channel", record(opMessage, 22, strings.Repeat("a", 22)), "which has not come"},
		{"unknown schema", record(opChannel, 16, "\x01\x00\x01\x00"+strings.Repeat("\x00", 12)), "names schema 1"},
		{"schema 0", record(opSchema, 14, strings.Repeat("\x00", 14)), "id 0"},
		{"short schema", record(opSchema, 3, "abc"), "longer than its record"},
		{"short data end", record(opDataEnd, 1, "a"), "instead of 4"},
		{"data checksum", record(opDataEnd, 4, "abcd"), "checksum of the data section"},
		{"footer", record(opFooter, 1, "a"), "instead of 20"},
		{"zeros", strings.Repeat("\x00", 10_000), "10000 zeros follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(Magic + c.rest))
			got, faults, err := readAll(r)
			if said := fmt.Sprint(faults, r.Unclosed(), err); !strings.Contains(said, c.want) || len(got) > 0 {
				t.Errorf("%s (%d messages)", said, len(got))
			}
			if len(r.content) > 1<<20 || cap(r.content) > 4<<20 || cap(r.unpacked) > 4<<20 {
				t.Errorf("%d and %d bytes reserved", cap(r.content), cap(r.unpacked))
			}
		})
	}
}

// The summary names channels whose records were in a chunk that is lost.
func TestLostChunkWithChannels(t *testing.T) {
	file, want := sample(t, Options{ChunkSize: 300}, 20)
	s, err := ReadSummary(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	first := find(file, opChunk)[0]
	file[first.at+100] ^= 1
	r := NewReader(bytes.NewReader(file))
	r.Use(s)
	got, faults, err := readAll(r)
	if err != nil || len(faults) != 2 { // the chunk and the data section
		t.Fatal(err, faults)
	}
	if len(got) == 0 || !cmp.Equal(got, want[len(want)-len(got):]) {
		t.Errorf("%d messages", len(got))
	}
}

func TestWriterErrors(t *testing.T) {
	w := NewWriter(io.Discard, Options{Compression: "brotli"})
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "brotli") {
		t.Error(err)
	}
	w = NewWriter(io.Discard, Options{})
	if err := w.Write(1, 0, 0, 0, nil); err == nil {
		t.Error("a message without a channel was written")
	}
	w = NewWriter(io.Discard, Options{})
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err == nil {
		t.Error("closed twice")
	}
	w = NewWriter(io.Discard, Options{})
	w.AddChannel("/a", "json", 1, nil)
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "schema 1") {
		t.Error(err)
	}
	w = NewWriter(&full{500}, Options{})
	c := w.AddChannel("/a", "json", 0, nil)
	for range 100 {
		w.Write(c, 0, 0, 0, make([]byte, 100))
	}
	if err := w.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

// full is a disk with room for some bytes.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func TestErrorsOfTheReader(t *testing.T) {
	file, _ := sample(t, Options{}, 5)
	broken := errors.New("the disk is broken")
	_, _, err := readAll(NewReader(io.MultiReader(bytes.NewReader(file[:len(file)/2]), failing{broken})))
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A recording of a robot, all of whose records can be parsed.
func TestRecordingOfARobot(t *testing.T) {
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(root, "streams", "evo", "nav2_turtlebot.mcap"))
	if err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadSummary(f, info.Size())
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	counts := map[uint16]uint64{}
	r := NewReader(f)
	total := 0
	for {
		var m Message
		if err := r.Next(&m); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		counts[m.Channel.ID]++
		total++
	}
	if r.Unclosed() != nil {
		t.Error(r.Unclosed())
	}
	for id, n := range s.Counts {
		if n == 0 {
			delete(s.Counts, id)
		}
	}
	if diff := cmp.Diff(s.Counts, counts); diff != "" {
		t.Error(diff)
	}
	t.Logf("%d messages of %d topics", total, len(s.Channels))
}

func FuzzMCAP(f *testing.F) {
	for _, o := range layouts {
		file, _ := sample(f, o, 9)
		f.Add(file)
		f.Add(file[:len(file)*2/3])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r := NewReader(bytes.NewReader(file))
		r.MaxChunk, r.MaxRecord = 1<<20, 1<<20
		if _, _, err := readAll(r); err != nil {
			t.Fatal(err)
		}
		if cap(r.content) > 2*len(file)+4<<20 || cap(r.unpacked) > 4<<20 {
			t.Fatalf("%d and %d bytes reserved for %d", cap(r.content), cap(r.unpacked), len(file))
		}
		if _, err := ReadSummary(bytes.NewReader(file), int64(len(file))); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, compression := range []string{None, LZ4, Zstd} {
		b.Run("compression="+compression, func(b *testing.B) {
			var file bytes.Buffer
			w := NewWriter(&file, Options{Compression: compression, ChunkSize: 4 << 20})
			c := w.AddChannel("/points", "cdr", 0, nil)
			random := rand.New(rand.NewPCG(5, 6))
			data := make([]byte, 2_000_000)
			for i := 0; i+3 < len(data); i += 4 {
				binary.LittleEndian.PutUint32(data[i:], uint32(random.IntN(1<<20))<<8)
			}
			for i := range 20 {
				w.Write(c, uint32(i), 0, 0, data)
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(20 * len(data)))
			for b.Loop() {
				if got, err := count(NewReader(bytes.NewReader(file.Bytes()))); err != nil || got != 20 {
					b.Fatal(got, err)
				}
			}
		})
	}
}

// count reads a file without keeping anything.
func count(r *Reader) (n int, err error) {
	for {
		var m Message
		switch err := r.Next(&m); err {
		case nil:
			n++
		case io.EOF:
			return n, nil
		default:
			return n, err
		}
	}
}
