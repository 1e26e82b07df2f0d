package mcap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
)

// records returns the places of all records, with the number of messages in each.
func records(t *testing.T, file []byte) (places []place, messages []int) {
	t.Helper()
	for at, n := len(Magic), 0; at+len(Magic) < len(file); n++ {
		size := int(binary.LittleEndian.Uint64(file[at+1:]))
		count := 0
		switch file[at] {
		case opMessage:
			count = 1
		case opChunk:
			got, _, err := readAll(NewReader(io.MultiReader(strings.NewReader(Magic), named(file),
				bytes.NewReader(file[at:at+prefix+size]))))
			if err != nil {
				t.Fatal(err)
			}
			count = len(got)
		}
		places, messages = append(places, place{at, n}), append(messages, count)
		at += prefix + size
	}
	return places, messages
}

// named returns the records of schemas and channels in the summary.
func named(file []byte) io.Reader {
	start := binary.LittleEndian.Uint64(file[len(file)-len(Magic)-20:])
	end := binary.LittleEndian.Uint64(file[len(file)-len(Magic)-12:])
	return bytes.NewReader(file[start:end])
}

// damages are what can happen to the opcode and the length of a record.
var damages = []struct {
	name   string
	astray bool // it may lead to bytes that look like a record
	damage func(head []byte)
}{
	{"length of 2^60", false, func(head []byte) { head[8] |= 0x10 }},
	{"length + 41", true, func(head []byte) {
		binary.LittleEndian.PutUint64(head[1:], binary.LittleEndian.Uint64(head[1:])+41)
	}},
	{"length + 1", true, func(head []byte) { head[1]++ }},
	{"length / 2", false, func(head []byte) {
		binary.LittleEndian.PutUint64(head[1:], binary.LittleEndian.Uint64(head[1:])/2)
	}},
	{"length 0", false, func(head []byte) { clear(head[1:9]) }},
	{"opcode 0", false, func(head []byte) { head[0] = 0 }},
	{"zeros", false, func(head []byte) { clear(head[:9]) }},
	{"ones", false, func(head []byte) { copy(head, "\xff\xff\xff\xff\xff\xff\xff\xff\xff") }},
}

// Damage to the head of a record costs the messages of that record at most. A length that leads
// to bytes that look like a record costs those of the next one, too.
func TestEveryDamagedRecord(t *testing.T) {
	for _, o := range layouts {
		file, want := sample(t, o, 60)
		places, messages := records(t, file)
		summary, err := ReadSummary(bytes.NewReader(file), int64(len(file)))
		if err != nil || summary == nil {
			t.Fatal(summary, err)
		}
		dataEnd := find(file, opDataEnd)[0].at
		for i, at := range places {
			if at.at >= dataEnd {
				break // nothing follows that is read
			}
			for _, d := range damages {
				name := fmt.Sprintf("%q of %d, %s %d at byte %d, %s", o.Compression, o.ChunkSize,
					opName(file[at.at]), i, at.at, d.name)
				bad := bytes.Clone(file)
				d.damage(bad[at.at : at.at+prefix])
				r := NewReader(bytes.NewReader(bad))
				r.Use(summary)
				got, faults, err := readAll(r)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if len(faults) == 0 && r.Unclosed() == nil && !bytes.Equal(bad, file) {
					t.Errorf("%s: nobody noticed", name)
				}
				most := messages[i]
				if d.astray {
					most += next(messages[i+1:])
				}
				if lost := missing(want, got); lost > most {
					t.Errorf("%s: %d of %d messages are lost, more than %d; %v", name, lost, len(want), most, faults)
				}
			}
		}
	}
}

// next returns the first number that is not 0.
func next(messages []int) int {
	for _, n := range messages {
		if n > 0 {
			return n
		}
	}
	return 0
}

// missing returns the number of messages of want that got lacks.
func missing(want, got []seen) (n int) {
	have := map[seen]bool{}
	for _, m := range got {
		have[m] = true
	}
	for _, m := range want {
		if !have[m] {
			n++
		}
	}
	return n
}

// A file that was never closed and has a damaged chunk loses no other chunk. The fault says how
// many bytes are lost, and where reading goes on.
func TestDamageWithoutIndex(t *testing.T) {
	for _, compression := range []string{None, LZ4, Zstd} {
		file, want := sample(t, Options{ChunkSize: 300, Compression: compression}, 60)
		chunks := find(file, opChunk)
		open := bytes.Clone(file[:find(file, opDataEnd)[0].at])
		second := chunks[1].at
		size := binary.LittleEndian.Uint64(open[second+1:])
		binary.LittleEndian.PutUint64(open[second+1:], size+1000)                  // the record's own
		binary.LittleEndian.PutUint64(open[second+prefix+32+len(compression):], 1) // and that of its records
		r := NewReader(bytes.NewReader(open))
		got, faults, err := readAll(r)
		if err != nil || r.Unclosed() == nil {
			t.Fatal(err, r.Unclosed())
		}
		_, messages := records(t, file)
		if lost := missing(want, got); lost > messages[chunks[1].record] || compression == None && lost > 1 {
			t.Errorf("%q: %d messages are lost; the chunk has %d", compression, lost, messages[chunks[1].record])
		}
		if len(faults) == 0 || faults[0].Offset != int64(second) || faults[0].Record != int64(chunks[1].record) ||
			!strings.Contains(faults[0].Error(), "bytes are lost; the next record is at byte ") {
			t.Errorf("%q: %v", compression, faults)
		}
	}
}

// A chunk whose own fields say its length loses nothing by a damaged length of its record.
func TestChunkSaysItsLength(t *testing.T) {
	file, want := sample(t, Options{ChunkSize: 300, Compression: Zstd}, 60)
	for _, c := range find(file, opChunk) {
		bad := bytes.Clone(file)
		bad[c.at+2] ^= 0x80
		got, faults, err := readAll(NewReader(bytes.NewReader(bad)))
		if err != nil || missing(want, got) > 0 || len(faults) != 1 {
			t.Errorf("chunk at byte %d: %d messages are lost; %v, %v", c.at, missing(want, got), faults, err)
		}
	}
}

// A source that cannot be looked ahead in is read as before.
func TestDamageInAStream(t *testing.T) {
	file, _ := sample(t, Options{ChunkSize: 300}, 60)
	at := find(file, opChunk)[2].at
	file[at+8] = 0x10
	r := NewReader(io.MultiReader(bytes.NewReader(file)))
	got, faults, err := readAll(r)
	if err != nil || len(faults) > 0 || len(got) == 0 || r.Unclosed() == nil {
		t.Error(len(got), faults, err)
	}
}
