package mcap

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// frameLZ4 returns data as an LZ4 frame.
func frameLZ4(t *testing.T, data []byte, options ...lz4.Option) []byte {
	t.Helper()
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	if err := w.Apply(options...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Frames with all that their format allows are read without the library's Reader, and frames
// that are cut off or too long are left to it.
func TestUnpackLZ4(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(r.IntN(4)) * byte(i>>12) // half of it compresses
		if i > 200_000 {
			data[i] = byte(r.Uint32())
		}
	}
	for name, options := range map[string][]lz4.Option{
		"plain":          nil,
		"small blocks":   {lz4.BlockSizeOption(lz4.Block64Kb)},
		"no content sum": {lz4.ChecksumOption(false)},
		"block sums":     {lz4.BlockChecksumOption(true), lz4.BlockSizeOption(lz4.Block64Kb)},
		"size":           {lz4.SizeOption(uint64(len(data)))},
		"level 9":        {lz4.CompressionLevelOption(lz4.Level9), lz4.BlockSizeOption(lz4.Block256Kb)},
	} {
		frame := frameLZ4(t, data, options...)
		got := make([]byte, len(data))
		if n := unpackLZ4(got, frame); n != len(data) || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, want %d", name, n, len(data))
		}
		for _, short := range []int{0, 6, 7, 11, len(frame) / 2, len(frame) - 1} {
			if n := unpackLZ4(got, frame[:short]); n != -1 {
				t.Errorf("%s: %d of %d bytes give %d", name, short, len(frame), n)
			}
		}
		if n := unpackLZ4(got, append(bytes.Clone(frame), 0)); n != -1 {
			t.Errorf("%s: a byte behind it gives %d", name, n)
		}
		if n := unpackLZ4(got[:len(data)-1], frame); n != -1 {
			t.Errorf("%s: memory for one byte less gives %d", name, n)
		}
	}
	if n := unpackLZ4(make([]byte, 10), frameLZ4(t, nil)); n != 0 {
		t.Errorf("an empty frame gives %d", n)
	}
	if n := unpackLZ4(make([]byte, 10), []byte("no frame at all")); n != -1 {
		t.Errorf("text gives %d", n)
	}
}

// A block that refers to the one before it, as encoders make them that link blocks.
func TestUnpackLZ4Linked(t *testing.T) {
	frame := append([]byte{0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0, 9, 0, 0, 0x80}, "abcdefghi"...)
	// no literal, a match of 4 bytes 9 back, then the 5 literals that end a block
	block := []byte{0x00, 9, 0, 0x50, 'v', 'w', 'x', 'y', 'z'}
	frame = append(frame, byte(len(block)), 0, 0, 0)
	frame = append(append(frame, block...), 0, 0, 0, 0)
	got := make([]byte, 18)
	n := unpackLZ4(got, frame)
	if want := "abcdefghiabcdvwxyz"; n != len(want) || string(got) != want {
		t.Errorf("%d bytes, %q, want %q", n, got, want)
	}
}

// The sum of the chunk finds a flipped bit, whatever the decompression does not check.
func TestChunkSumFindsFlippedBits(t *testing.T) {
	for _, compression := range []string{None, LZ4, Zstd} {
		var b bytes.Buffer
		w := NewWriter(&b, Options{Compression: compression})
		id := w.AddChannel("/t", "x", 0, nil)
		for i := range 20 {
			if err := w.Write(id, uint32(i), 1, 1, fmt.Appendf(nil, "message %d of twenty %[1]d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		whole := b.Bytes()
		from := bytes.Index(whole, []byte{opChunk}) + prefix
		faults := 0
		for at := from + 40; at < from+140; at++ {
			damaged := bytes.Clone(whole)
			damaged[at] ^= 4
			r := NewReader(bytes.NewReader(damaged))
			n := 0
			for {
				var m Message
				err := r.Next(&m)
				if err == nil {
					if want := fmt.Sprintf("message %d of twenty %[1]d", n); string(m.Data) != want {
						t.Fatalf("%q, byte %d: message %q, want %q", compression, at, m.Data, want)
					}
					n++
					continue
				}
				if _, ok := err.(*Error); !ok {
					break
				}
				faults++
			}
		}
		if faults < 100 {
			t.Errorf("%q: %d faults of 100 flipped bits", compression, faults)
		}
	}
}
