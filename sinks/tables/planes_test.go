package tables

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"pgregory.net/rapid"
)

// drawPlane draws a plane of n bytes of some kind: one byte, few different ones, those of a
// bell, what repeats itself, noise.
func drawPlane(t *rapid.T, n int) []byte {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	period := rapid.IntRange(1, 3000).Draw(t, "period")
	v := make([]byte, n)
	for i := range v {
		switch kind {
		case 0:
			v[i] = byte(period)
		case 1:
			v[i] = byte(random.IntN(1 + period%7))
		case 2:
			v[i] = byte(128 + 20*random.NormFloat64())
		case 3:
			v[i] = byte(i % period * 7919)
		case 4:
			v[i] = byte(i / period)
		case 5:
			v[i] = byte(random.Uint32())
		}
	}
	return v
}

// What planes has compressed is decompressed to the same bytes, and is never much longer.
// Planes that are alike follow each other, too: several blocks with sequences.
func TestPlanesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := planes{width: rapid.SampledFrom([]int{4, 8}).Draw(t, "width"), optional: rapid.Bool().Draw(t, "optional")}
		each := rapid.SampledFrom([]int{0, 1, planesFrom - 1, planesFrom, 5000, sampleBytes, 30_000, blockBytes - 1,
			blockBytes, blockBytes + 1, 2*blockBytes + 17}).Draw(t, "each")
		var page []byte
		if c.optional {
			levels := rapid.SampledFrom([]int{2, 3, 5000, blockBytes + 9}).Draw(t, "levels")
			page = binary.LittleEndian.AppendUint32(page, uint32(levels))
			page = append(page, make([]byte, levels)...)
		}
		for range c.width {
			page = append(page, drawPlane(t, each)...)
		}
		got, err := c.Encode([]byte("replaced"), page)
		if err != nil {
			t.Fatal(err)
		}
		if most := len(page) + 64 + len(page)/1000; len(got) > most {
			t.Errorf("%d bytes become %d", len(page), len(got))
		}
		back, err := c.Decode(nil, got)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back, page) {
			t.Errorf("%d bytes come back as %d, or as others", len(page), len(back))
		}
	})
}

// Intensities take much less room than by zstd alone, which finds no repetition in them and
// stores them; coordinates not much more, where the search is left out.
func TestPlanesOfASweep(t *testing.T) {
	p := sweep(119_000, 7)
	for _, column := range []struct {
		name   string
		values []float32
		most   float64 // ratio to the bytes that zstd makes
	}{{"x", p.X32, 1.1}, {"y", p.Y32, 1.1}, {"z", p.Z32, 1.1}, {"intensity", p.Intensity, 0.75}} {
		split, err := parquet.FloatType.Encode(nil, encoding.FloatValues(column.values), &parquet.ByteStreamSplit)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := (&planes{width: 4}).Encode(nil, split)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := compression.Encode(nil, split)
		if err != nil {
			t.Fatal(err)
		}
		if float64(len(ours)) > column.most*float64(len(theirs)) {
			t.Errorf("%s: %d bytes, zstd alone makes %d", column.name, len(ours), len(theirs))
		}
	}
}
