package tables

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"entropipe/schemas"
	"entropipe/sinks/internal/batches"
)

type readMessages struct {
	Partition int32        `parquet:"partition"`
	Offset    int64        `parquet:"offset"`
	Timestamp *int64       `parquet:"timestamp"`
	Key       *string      `parquet:"key"`
	Headers   []readHeader `parquet:"headers,list"`
	ValueSize *int64       `parquet:"value_size"`
	Value     *string      `parquet:"value"`
}

type readHeader struct {
	Key   string  `parquet:"key"`
	Value *string `parquet:"value"`
}

// textOf returns bytes as a string, many of them as their number and sum; nil: they are nil.
func textOf(b []byte) *string {
	switch {
	case b == nil:
		return nil
	case len(b) > 100:
		return new(fmt.Sprintf("%d bytes, SHA-256 %x", len(b), sha256.Sum256(b)))
	}
	return new(string(b))
}

// someBytes draws nil, an empty slice or any bytes.
func someBytes(t *rapid.T, name string) []byte {
	switch rapid.IntRange(0, 3).Draw(t, name+" kind") {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, name)
}

// anOriginal draws a message, and the row that it has. Large values are packed, as by workers.
func anOriginal(t *rapid.T, offset int64, rng *rand.Rand) (schemas.Original, readMessages) {
	o := schemas.Original{Topic: "t", Partition: 3, Offset: offset, Key: someBytes(t, "key")}
	want := readMessages{Partition: 3, Offset: offset, Key: textOf(o.Key)}
	if o.TimeNs = rapid.Int64Range(-5, 5).Draw(t, "time") * 1e6; o.TimeNs != 0 {
		want.Timestamp = new(o.TimeNs / 1000)
	}
	for range rapid.IntRange(0, 3).Draw(t, "headers") {
		h := schemas.Header{Key: rapid.String().Draw(t, "name"), Value: someBytes(t, "header")}
		o.Headers = append(o.Headers, h)
		want.Headers = append(want.Headers, readHeader{h.Key, textOf(h.Value)})
	}
	size := rapid.SampledFrom([]int{-2, -1, 0, 1, 77, 60_000, packedFrom - 1, packedFrom, 1_500_000}).Draw(t, "size")
	switch {
	case size == -2: // a tombstone
		return o, want
	case size == -1: // the value was never there whole
		o.Size = 1 << 40
	default:
		o.Value, o.Size = make([]byte, size), int64(size)
		for i := range o.Value {
			o.Value[i] = byte(rng.IntN(1 + 255*(size%2))) // even sizes are zeros
		}
		want.Value = textOf(o.Value)
		if o.Packed = Pack(nil, o.Value); o.Packed != nil {
			o.Value = nil
		}
	}
	want.ValueSize = &o.Size
	return o, want
}

// Law: table messages has every key, header and value byte for byte, and null is not empty,
// whatever sizes come in which order, and however row groups are cut.
func TestMessagesRoundTrip(t *testing.T) {
	encoders := map[int64]*Encoder{}
	for _, bytes := range []int64{1, 1_000_000, 64e6} {
		cfg := testConfig()
		cfg.RowGroupBytes = bytes
		encoders[bytes] = newEncoder(cfg)
	}
	rapid.Check(t, func(r *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		b := &schemas.Batch{Topic: "t", Partition: 3}
		var want []readMessages
		for range rapid.IntRange(1, 12).Draw(r, "messages") {
			b.End += int64(rapid.IntRange(0, 3).Draw(r, "hole"))
			o, row := anOriginal(r, b.End, rng)
			b.Originals, want = append(b.Originals, o), append(want, row)
			b.End++
		}
		e := encoders[rapid.SampledFrom([]int64{1, 1_000_000, 64e6}).Draw(r, "row group")]
		got := rowsOf[readMessages](t, fileOf(t, encodeAll(t, e, b), "messages/topic=t/part-3-"))
		for i := range got {
			if v := got[i].Value; v != nil {
				got[i].Value = textOf([]byte(*v))
			}
			if len(got[i].Headers) == 0 {
				got[i].Headers = nil
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			r.Fatalf("-want +got\n%s", d)
		}
	})
}

// The metadata of a file tell the sizes of values before compression, packed ones too.
func TestPackedPagesAreCounted(t *testing.T) {
	b := &schemas.Batch{Topic: "t", End: 4}
	total := int64(0)
	for i, size := range []int{1000, 1_000_000, 3_000_000, 500} {
		value := bytes.Repeat([]byte("entropy"), size/7+1)[:size]
		o := schemas.Original{Topic: "t", Offset: int64(i), Size: int64(size), Value: value}
		if o.Packed = Pack(nil, value); o.Packed != nil {
			o.Value = nil
		}
		if packed := o.Packed != nil; packed != (size >= packedFrom) {
			t.Errorf("a value of %d bytes is packed: %t", size, packed)
		}
		b.Originals = append(b.Originals, o)
		total += int64(size)
	}
	data := fileOf(t, encodeAll(t, newEncoder(testConfig()), b), "messages/")
	f := openBytes(t, data)
	groups := f.Metadata().RowGroups
	column := groups[0].Columns[len(groups[0].Columns)-1].MetaData
	if got := column.SizeStatistics.UnencodedByteArrayDataBytes; len(groups) != 1 || got != total ||
		column.TotalUncompressedSize < total || column.TotalUncompressedSize > total+500 ||
		column.TotalCompressedSize > 5000 || int64(len(data)) > 10_000 {
		t.Errorf("%d row groups, %d bytes of values, %d uncompressed, %d compressed in a file of %d; want 1, %d, "+
			"about as many, and few", len(groups), got, column.TotalUncompressedSize, column.TotalCompressedSize,
			len(data), total)
	}
	pages := parquet.Pages(f.RowGroups()[0].ColumnChunks()[len(groups[0].Columns)-1].Pages())
	defer pages.Close()
	var sizes []int64
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, page.NumValues())
		parquet.Release(page)
	}
	if fmt.Sprint(sizes) != "[1 1 1 1]" {
		t.Errorf("pages have %v values: a packed one has a page of its own", sizes)
	}
}

// Rows and files of other tables do not depend on whether the messages are kept.
func TestMessagesChangeNoOtherTable(t *testing.T) {
	spec := batches.Spec{Topic: "points", Start: 5, Records: 50, Frames: 2, Points: 30}
	without := encodeAll(t, newEncoder(testConfig()), batches.Synthetic(spec))
	spec.Originals = true
	with := encodeAll(t, newEncoder(testConfig()), batches.Synthetic(spec))
	if len(with) != len(without)+1 {
		t.Errorf("%d files, and %d without messages", len(with), len(without))
	}
	for name, data := range without {
		if !bytes.Equal(data, with[name]) {
			t.Errorf("%s differs", name)
		}
	}
	cfg := testConfig()
	cfg.Tables = []string{}
	if files := encodeAll(t, newEncoder(cfg), batches.Synthetic(spec)); len(files) != len(without) {
		t.Errorf("%d files where table messages is not selected, want %d", len(files), len(without))
	}
}

// Encoding holds one row group at a time, and copies no value before its page.
func TestMemoryOfMessagesIsBounded(t *testing.T) {
	if batches.Sparse > 1 {
		t.Skip("under the race detector pools keep nothing")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 2_000_000)
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	packed := Pack(nil, value)
	b := &schemas.Batch{Topic: "t", End: 100}
	for i := range b.End {
		o := schemas.Original{Topic: "t", Offset: i, Size: int64(len(value)), Packed: packed}
		if i%2 > 0 {
			o.Packed, o.Value, o.Size = nil, value[:60_000], 60_000
		}
		b.Originals = append(b.Originals, o)
	}
	e := newEncoder(testConfig())
	plan := e.Plan(b, 0)
	allocated := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := e.Encode(io.Discard, plan[0], b); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated() // fills the pools
	if got := min(allocated(), allocated()); got > 32<<20 {
		t.Errorf("encoding 100 MB of values again allocates %d bytes", got)
	}
}

// BenchmarkMessages: 64 values of 1.9 MB, half of them noise and half of few words, as coordinates and
// intensities of scans are. Pack is what workers do.
func BenchmarkMessages(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 1_900_000)
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	for i := len(value) / 2; i+4 <= len(value); i += 4 {
		copy(value[i:], value[4*rng.IntN(100):][:4])
	}
	batch := &schemas.Batch{Topic: "t", End: 64, Results: make([]schemas.Result, 64)}
	for i := range batch.End {
		batch.Originals = append(batch.Originals, schemas.Original{Topic: "t", Offset: i, Size: int64(len(value)),
			Packed: Pack(nil, value)})
	}
	b.Run("pack", func(b *testing.B) {
		dst := make([]byte, 0, len(value)+1<<16)
		for b.Loop() {
			dst = Pack(dst[:0], value)
		}
		b.ReportMetric(float64(len(dst))/float64(len(value)), "ratio")
	})
	b.Run("encode", func(b *testing.B) { benchmarkEncode(b, batch) })
}
