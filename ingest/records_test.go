package ingest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"entropipe/schemas"
)

// decoded reads a record set from memory, as run does from a connection.
func decoded(set []byte, from, limit, budget, maxValue int64, aborted ...abortedTx) (*answer, *decoder, error) {
	d := &decoder{topic: "t", maxValue: maxValue}
	d.prepare(new(answer), &freeList{limit: freeLimit}, from, limit, budget)
	d.abortedL = append(d.abortedL, aborted...)
	d.left = int64(len(set))
	err := d.run(bufio.NewReaderSize(bytes.NewReader(set), readBuffer))
	return d.out, d, err
}

// all reads a whole set that must be sound.
func all(t *testing.T, set []byte) *answer {
	t.Helper()
	a, d, err := decoded(set, 0, math.MaxInt64, 1<<30, 1<<26)
	if err != nil || d.left != 0 {
		t.Fatalf("%v, %d bytes left", err, d.left)
	}
	return a
}

// rec makes one record of a batch.
func rec(delta int32, value []byte, change ...func(*kmsg.Record)) []byte {
	r := kmsg.Record{OffsetDelta: delta, Value: value}
	for _, f := range change {
		f(&r)
	}
	n := len(r.AppendTo(nil)) - 1 // a length of 0 takes one byte
	r.Length = int32(n)
	return r.AppendTo(nil)
}

// batchOf makes a batch of encoded records.
func batchOf(base int64, lastDelta int32, records [][]byte, change ...func(*kmsg.RecordBatch)) []byte {
	b := kmsg.RecordBatch{FirstOffset: base, PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: lastDelta,
		FirstTimestamp: 1000, MaxTimestamp: 2000,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(records)),
		Records: bytes.Join(records, nil)}
	for _, f := range change {
		f(&b)
	}
	return sealed(b.AppendTo(nil))
}

// sealed puts the right length and checksum into a batch.
func sealed(raw []byte) []byte {
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], castagnoli))
	return raw
}

func attributes(a int16, producer int64) func(*kmsg.RecordBatch) {
	return func(b *kmsg.RecordBatch) { b.Attributes, b.ProducerID = a, producer }
}

func marker(base int64, producer int64, kind byte) []byte {
	r := rec(0, []byte{0, 0, 0, 0, 0, 0}, func(r *kmsg.Record) { r.Key = []byte{0, 0, 0, kind} })
	return batchOf(base, 0, [][]byte{r}, attributes(0x30, producer))
}

func offsets(a *answer) (out []int64) {
	for _, m := range a.messages {
		out = append(out, m.Offset)
	}
	return out
}

// What kafka-go writes is read back the same, in both its formats and all
// codecs.
func TestSetsOfKafkaGo(t *testing.T) {
	for _, version := range []int8{1, 2} {
		for codec := compress.None; codec <= compress.Zstd; codec++ {
			if version == 1 && codec == compress.Zstd {
				continue // came with version 2
			}
			var want []got
			var rs []protocol.Record
			for i := range 50 {
				r := protocol.Record{Offset: int64(i), Time: time.UnixMilli(int64(1e12) + int64(i))}
				g := got{Offset: int64(i), Null: i%7 == 3}
				if i%3 > 0 {
					g.Key = fmt.Sprint("key ", i)
					r.Key = protocol.NewBytes([]byte(g.Key))
				}
				if !g.Null {
					g.Value = strings.Repeat(fmt.Sprint(i), i*i)
					r.Value = protocol.NewBytes([]byte(g.Value))
				}
				rs, want = append(rs, r), append(want, g)
			}
			set := protocol.RecordSet{Version: version, Attributes: protocol.Attributes(codec),
				Records: protocol.NewRecordReader(rs...)}
			var buf bytes.Buffer
			if _, err := set.WriteTo(&buf); err != nil {
				t.Fatal(err)
			}
			raw := buf.Bytes()[4:]
			if version == 1 && codec != compress.None { // the broker sets the outer offset
				binary.BigEndian.PutUint64(raw, 49)
			}
			a := all(t, raw)
			var have []got
			for i, m := range a.messages {
				have = append(have, copied(m))
				if !m.Time.Equal(time.UnixMilli(int64(1e12) + int64(i))) {
					t.Errorf("version %d %v: offset %d has time %v", version, codec, m.Offset, m.Time)
				}
			}
			if diff := cmp.Diff(want, have); diff != "" || a.next != 50 {
				t.Errorf("version %d %v: next %d (-want +got):\n%.1000s", version, codec, a.next, diff)
			}
		}
	}
}

// entry makes an entry of an old message set.
func entry(magic, attributes byte, offset, at int64, value []byte) []byte {
	b := make([]byte, 18)
	binary.BigEndian.PutUint64(b, uint64(offset))
	b[16], b[17] = magic, attributes
	if magic == 1 {
		b = binary.BigEndian.AppendUint64(b, uint64(at))
	}
	b = append(b, 0xff, 0xff, 0xff, 0xff) // no key
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

func packed(codec compress.Compression, b []byte) []byte {
	var buf bytes.Buffer
	w := codec.Codec().NewWriter(&buf)
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

// Inner offsets of old compressed sets are absolute in version 0 and relative
// in version 1, where compaction may have removed some.
func TestOldMessageSets(t *testing.T) {
	inner0 := append(entry(0, 0, 5, 0, []byte("a")), entry(0, 0, 7, 0, []byte("b"))...)
	inner1 := append(entry(1, 0, 1, 500, []byte("c")), entry(1, 0, 4, 600, []byte("d"))...)
	set := bytes.Join([][]byte{
		entry(0, 0, 3, 0, []byte("first")),
		entry(0, codecSnappy, 7, 0, packed(compress.Snappy, inner0)),
		entry(1, codecGzip, 14, 0, packed(compress.Gzip, inner1)),
		entry(1, codecGzip|1<<3, 20, 999, packed(compress.Gzip, entry(1, 0, 0, 5, []byte("e")))),
		batchOf(30, 0, [][]byte{rec(0, []byte("new"))}),
	}, nil)
	a := all(t, set)
	if diff := cmp.Diff([]int64{3, 5, 7, 11, 14, 20, 30}, offsets(a)); diff != "" || a.next != 31 {
		t.Errorf("next %d (-want +got):\n%s", a.next, diff)
	}
	if ms := a.messages[3].Time.UnixMilli(); ms != 500 {
		t.Errorf("time of a record is %d, want its own, 500", ms)
	}
	if ms := a.messages[5].Time.UnixMilli(); ms != 999 {
		t.Errorf("time of a record in a set with LogAppendTime is %d, want that of the set, 999", ms)
	}
	a, _, err := decoded(set, 6, 12, 1<<20, 1<<20)
	if diff := cmp.Diff([]int64{7, 11}, offsets(a)); diff != "" || a.next != 12 || err != nil {
		t.Errorf("[6, 12): next %d, %v (-want +got):\n%s", a.next, err, diff)
	}
}

// Compaction keeps a batch's last offset, drops records from it, and may leave
// it empty.
func TestCompactedBatches(t *testing.T) {
	set := bytes.Join([][]byte{
		batchOf(10, 9, [][]byte{rec(3, []byte("a")), rec(7, []byte("b"))}),
		batchOf(20, 9, nil),
		batchOf(30, 9, nil, attributes(0x10, 7)),
	}, nil)
	a, _, err := decoded(set, 5, math.MaxInt64, 1<<20, 1<<20)
	if diff := cmp.Diff([]int64{13, 17}, offsets(a)); diff != "" || a.next != 40 || err != nil {
		t.Errorf("next %d, %v (-want +got):\n%s", a.next, err, diff)
	}
	for from := int64(18); from < 40; from++ { // never stands still
		a, _, err := decoded(set, from, math.MaxInt64, 1<<20, 1<<20)
		if len(a.messages) != 0 || a.next != 40 || err != nil {
			t.Errorf("from %d: %v, next %d, %v", from, offsets(a), a.next, err)
		}
	}
	if a, _, _ := decoded(set, 12, 25, 1<<20, 1<<20); a.next != 25 || len(a.messages) != 2 {
		t.Errorf("up to 25: %v, next %d", offsets(a), a.next)
	}
}

func TestLogAppendTime(t *testing.T) {
	a := all(t, batchOf(0, 0, [][]byte{rec(0, []byte("a"), func(r *kmsg.Record) {
		r.TimestampDelta64 = 77
	})}, attributes(1<<3, -1)))
	if ms := a.messages[0].Time.UnixMilli(); ms != 2000 {
		t.Errorf("time is %d, want the broker's, 2000", ms)
	}
	a = all(t, batchOf(0, 0, [][]byte{rec(0, []byte("a"), func(r *kmsg.Record) { r.TimestampDelta64 = 77 })}))
	if ms := a.messages[0].Time.UnixMilli(); ms != 1077 {
		t.Errorf("time is %d, want the producer's, 1077", ms)
	}
}

// Transactions of several producers, interleaved: the records of one that
// aborts are dropped up to its marker, and not those of its next transaction.
func TestInterleavedTransactions(t *testing.T) {
	one := func(base, producer int64, v string) []byte {
		return batchOf(base, 0, [][]byte{rec(0, []byte(v))}, attributes(0x10, producer))
	}
	set := bytes.Join([][]byte{
		one(0, 1, "no"), one(1, 2, "yes"), one(2, 1, "no"), marker(3, 1, 0), one(4, 1, "yes"), one(5, 3, "no"),
		marker(6, 2, 1), marker(7, 1, 1), one(8, 2, "no"), marker(9, 3, 0), marker(10, 2, 0),
		batchOf(11, 0, [][]byte{rec(0, []byte("yes"))}),
	}, nil)
	a, _, err := decoded(set, 0, math.MaxInt64, 1<<20, 1<<20, abortedTx{1, 0}, abortedTx{3, 5}, abortedTx{2, 8})
	if diff := cmp.Diff([]int64{1, 4, 11}, offsets(a)); diff != "" || a.next != 12 || err != nil {
		t.Errorf("next %d, %v (-want +got):\n%s", a.next, err, diff)
	}
}

// The last batch of an answer may be cut; a first one that is cut must be asked
// for with more room.
func TestCutBatch(t *testing.T) {
	whole := batchOf(0, 0, [][]byte{rec(0, []byte("a"))})
	next := batchOf(1, 0, [][]byte{rec(0, []byte("bbbbbbbbbbbbbb"))})
	for cut := range len(next) {
		a, _, err := decoded(append(bytes.Clone(whole), next[:cut]...), 0, math.MaxInt64, 1<<20, 1<<20)
		if err != nil || len(a.messages) != 1 || a.next != 1 || a.need != 0 {
			t.Errorf("cut after %d bytes: %v, next %d, need %d, %v", cut, offsets(a), a.next, a.need, err)
		}
	}
	a, _, err := decoded(whole[:40], 0, math.MaxInt64, 1<<20, 1<<20)
	if err != nil || a.need != int64(len(whole)) {
		t.Errorf("first batch cut: need %d, want %d (%v)", a.need, len(whole), err)
	}
}

// Sound checksums around nonsense: an error that says so, and nothing taken of
// the batch.
func TestImpossibleBatches(t *testing.T) {
	good := batchOf(0, 2, [][]byte{rec(0, []byte("a")), rec(1, []byte("b")), rec(2, []byte("c"))})
	with := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return sealed(b)
	}
	put32 := func(at int, v int32) []byte {
		return with(func(b []byte) { binary.BigEndian.PutUint32(b[at:], uint32(v)) })
	}
	huge := binary.AppendVarint(nil, 1<<30)
	cases := map[string][]byte{
		"count of 2^31-1":     put32(57, math.MaxInt32),
		"count of -1":         put32(57, -1),
		"one record too many": put32(57, 4),
		"last offset of -1":   put32(23, -1),
		"last offset too low": put32(23, 1),
		"base offset of -1":   with(func(b []byte) { binary.BigEndian.PutUint64(b, math.MaxUint64) }),
		"offset overflow":     with(func(b []byte) { binary.BigEndian.PutUint64(b, math.MaxInt64) }),
		"version 3":           with(func(b []byte) { b[16] = 3 }),
		"codec 7":             with(func(b []byte) { b[22] = 7 }),
		"not zstd":            with(func(b []byte) { b[22] = codecZstd }),
		"not gzip":            with(func(b []byte) { b[22] = codecGzip }),
		"not lz4":             with(func(b []byte) { b[22] = codecLZ4 }),
		"not snappy":          with(func(b []byte) { b[22] = codecSnappy }),
		"snappy of 4 GiB":     batchOf(0, 0, [][]byte{{0xff, 0xff, 0xff, 0xff, 0x0f, 0}}, attributes(codecSnappy, -1)),
		"xerial of 4 GiB": batchOf(0, 0, [][]byte{append([]byte(xerialMagic+"\x00\x00\x00\x01\x00\x00\x00\x01"),
			0xff, 0xff, 0xff, 0xff)}, attributes(codecSnappy, -1)),
		"record of 1 GiB":     batchOf(0, 0, [][]byte{huge}),
		"record of -5":        batchOf(0, 0, [][]byte{binary.AppendVarint(nil, -5)}),
		"key of 1 GiB":        batchOf(0, 0, [][]byte{append([]byte{20, 0, 0, 0}, huge...), make([]byte, 10)}),
		"10^9 headers":        batchOf(0, 0, [][]byte{append([]byte{20, 0, 0, 0, 1, 1}, huge...), make([]byte, 10)}),
		"endless integer":     batchOf(0, 0, [][]byte{bytes.Repeat([]byte{0xff}, 40)}),
		"bytes after headers": batchOf(0, 0, [][]byte{{16, 0, 0, 0, 1, 1, 0, 9, 9}}),
		"flipped bit":         func() []byte { b := bytes.Clone(good); b[70] ^= 1; return b }(),
		"old entry of 5": func() []byte {
			b := entry(1, 0, 0, 0, nil)
			binary.BigEndian.PutUint32(b[8:], 5)
			return b
		}(),
		"old entry, bad sum": func() []byte { b := entry(1, 0, 0, 0, []byte("a")); b[30] ^= 1; return b }(),
		"old entry, nested":  entry(1, codecGzip, 0, 0, packed(compress.Gzip, entry(1, codecGzip, 0, 0, []byte("x")))),
	}
	before := batchOf(0, 0, [][]byte{rec(0, []byte("sound"))})
	for name, set := range cases {
		a, d, err := decoded(set, 0, math.MaxInt64, 1<<20, 1<<26)
		if !errors.Is(err, errCorrupt) || len(a.messages) != 0 || a.next != 0 {
			t.Errorf("%s: %v, next %d, %v", name, offsets(a), a.next, err)
		}
		if held := d.arena.held(); held > 4<<20 {
			t.Errorf("%s: holds %d bytes", name, held)
		}
		if set[16] == 2 && set[0] == 0 {
			later := bytes.Clone(set)
			binary.BigEndian.PutUint64(later, 1)
			if a, _, _ := decoded(append(bytes.Clone(before), later...), 0, math.MaxInt64, 1<<20,
				1<<26); len(a.messages) != 1 || a.next != 1 {
				t.Errorf("%s, after a sound batch: %v, next %d", name, offsets(a), a.next)
			}
		}
	}
}

// A batch that is too large to be held is checked only at its end: then all of
// it is dropped, and its records must come again.
func TestDamageInAStreamedBatch(t *testing.T) {
	set := batchOf(0, 2, [][]byte{rec(0, []byte("a")), rec(1, make([]byte, 500_000)), rec(2, []byte("c"))})
	a, d, err := decoded(set, 0, math.MaxInt64, 1<<20, 1<<16)
	if err != nil || len(a.messages) != 3 || a.messages[1].Oversize != 500_000 || a.next != 3 || d.left != 0 {
		t.Fatalf("sound: %v, next %d, %d left, %v", offsets(a), a.next, d.left, err)
	}
	for _, at := range []int{30, 70, 300_000, len(set) - 1} {
		damaged := bytes.Clone(set)
		damaged[at] ^= 4
		if a, _, err := decoded(damaged, 0, math.MaxInt64, 1<<20, 1<<16); !errors.Is(err, errCorrupt) ||
			len(a.messages) != 0 || a.next != 0 {
			t.Errorf("bit at %d flipped: %v, next %d, %v", at, offsets(a), a.next, err)
		}
	}
}

// A compressed batch with more than the budget comes in pieces, each bounded.
func TestInflatingBatchComesInPieces(t *testing.T) {
	var records [][]byte
	for i := range int32(2000) {
		records = append(records, rec(i, make([]byte, 10_000)))
	}
	body := packed(compress.Zstd, bytes.Join(records, nil)) // 20 MB of zeros
	set := batchOf(100, 1999, records, attributes(codecZstd, -1), func(b *kmsg.RecordBatch) { b.Records = body })
	n := 0
	for from := int64(100); from < 2100; n++ {
		a, d, err := decoded(set, from, math.MaxInt64, 1<<20, 1<<26)
		if err != nil || a.next <= from || len(a.messages) == 0 || a.messages[0].Offset != from {
			t.Fatalf("from %d: %v, next %d, %v", from, offsets(a), a.next, err)
		}
		if held := d.arena.held(); held > 2<<20 {
			t.Fatalf("from %d: holds %d bytes", from, held)
		}
		from = a.next
	}
	if n < 15 || n > 25 {
		t.Errorf("took %d pieces", n)
	}
}

// A record with thousands of headers costs many times its bytes: it is marked
// as oversized instead.
func TestTooManyHeaders(t *testing.T) {
	hs := make([]kmsg.Header, maxHeaders+1)
	a := all(t, batchOf(0, 1, [][]byte{rec(0, []byte("v"), func(r *kmsg.Record) {
		r.Headers = hs
	}), rec(1, []byte("next"))}))
	if len(a.messages) != 2 || a.messages[0].Oversize == 0 || a.messages[0].Headers != nil ||
		a.messages[1].Oversize != 0 {
		t.Errorf("%+v", a.messages)
	}
}

// Snappy comes as one block, or in Java's framing.
func TestSnappyFramings(t *testing.T) {
	body := rec(0, big(100_000, 3))
	block := snappy.Encode(nil, body)
	java := []byte(xerialMagic + "\x00\x00\x00\x01\x00\x00\x00\x01")
	for len(body) > 0 {
		n := min(len(body), 32<<10)
		b := snappy.Encode(nil, body[:n])
		java, body = append(binary.BigEndian.AppendUint32(java, uint32(len(b))), b...), body[n:]
	}
	for name, packed := range map[string][]byte{"block": block, "java": java} {
		set := batchOf(0, 0, [][]byte{nil}, attributes(codecSnappy, -1),
			func(b *kmsg.RecordBatch) { b.Records = packed })
		if a := all(t, set); len(a.messages) != 1 || !bytes.Equal(a.messages[0].Value, big(100_000, 3)) {
			t.Errorf("%s: %v", name, offsets(a))
		}
	}
}

// Whatever the fetch begins with, where it must end and how much it may hold:
// the records between, once, in order, and always progress.
func TestAnyRangeAndBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set []byte
		var want []int64
		base := rapid.Int64Range(0, 5).Draw(t, "base")
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			last := rapid.Int32Range(0, 9).Draw(t, "last")
			var records [][]byte
			for i := range last + 1 {
				if rapid.Bool().Draw(t, "kept") {
					records = append(records, rec(i, make([]byte, rapid.IntRange(0, 3000).Draw(t, "size"))))
					want = append(want, base+int64(i))
				}
			}
			codec := compress.Compression(rapid.IntRange(0, 4).Draw(t, "codec"))
			set = append(set, batchOf(base, last, records, attributes(int16(codec), -1), func(b *kmsg.RecordBatch) {
				if codec != 0 {
					b.Records = packed(codec, b.Records)
				}
			})...)
			base += int64(last) + 1 + rapid.Int64Range(0, 3).Draw(t, "hole")
		}
		from := rapid.Int64Range(0, base).Draw(t, "from")
		limit := from + rapid.Int64Range(1, base+1).Draw(t, "length")
		budget := rapid.Int64Range(1, 20_000).Draw(t, "budget")
		var in []int64
		for _, o := range want {
			if o >= from && o < limit {
				in = append(in, o)
			}
		}
		var have []int64
		for next := from; next < limit; {
			a, _, err := decoded(set, next, limit, budget, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			have = append(have, offsets(a)...)
			if a.next == next { // nothing after it in the set
				break
			}
			next = a.next
		}
		if diff := cmp.Diff(in, have); diff != "" {
			t.Fatalf("[%d, %d) (-want +got):\n%s", from, limit, diff)
		}
	})
}

// unsummed is the identity of a record as its bytes give it.
func unsummed(m schemas.Message) schemas.RecordID {
	m.Summed = false
	return m.ID()
}

// The sum of a large value is taken from the pass that checks its batch,
// wherever it begins and whatever stands before and behind it.
func TestValuesAreSummedWithTheirBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := make([]byte, rapid.IntRange(0, 600_000).Draw(t, "size"))
		for i := range value {
			value[i] = byte(i*7 ^ i>>8)
		}
		key := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "key")
		records := [][]byte{rec(0, value, func(r *kmsg.Record) { r.Key = key })}
		for i := range rapid.Int32Range(0, 2).Draw(t, "more") {
			records = append(records, rec(i+1, value))
		}
		a, _, err := decoded(batchOf(0, int32(len(records)-1), records), 0, math.MaxInt64, 1<<30, 1<<26)
		if err != nil || len(a.messages) != len(records) {
			t.Fatalf("%d of %d records, %v", len(a.messages), len(records), err)
		}
		for i, m := range a.messages {
			if known, read := m.ID(), unsummed(m); known != read {
				t.Fatalf("record %d: identity %+v, its bytes give %+v", i, known, read)
			}
			if want := i == 0 && len(value) >= largeValue && len(key) < 900; want && !m.Summed {
				t.Fatalf("a value of %d bytes after a key of %d was not summed", len(value), len(key))
			}
		}
	})
}

// FuzzDecoder: no bytes may panic it, hang it, make it hold more than a small
// multiple of what it was given, or break its promises.
func FuzzDecoder(f *testing.F) {
	f.Add(batchOf(0, 1, [][]byte{rec(0, []byte("a")), rec(1, nil)}), int64(0), true)
	f.Add(batchOf(5, 1, [][]byte{packed(compress.Zstd, rec(0, []byte("a")))}, attributes(codecZstd, -1)), int64(5),
		true)
	f.Add(batchOf(5, 1, [][]byte{packed(compress.Snappy, rec(0, []byte("a")))}, attributes(codecSnappy, -1)), int64(6),
		true)
	f.Add(marker(0, 1, 0), int64(0), true)
	f.Add(entry(0, 0, 3, 0, []byte("v")), int64(0), false)
	f.Add(entry(1, codecGzip, 3, 0, packed(compress.Gzip, entry(1, 0, 3, 7, []byte("v")))), int64(2), false)
	f.Fuzz(func(t *testing.T, set []byte, from int64, seal bool) {
		if from < 0 {
			return
		}
		if seal && len(set) >= batchHeader && set[16] == 2 { // past the checksum
			set = sealed(bytes.Clone(set))
		}
		a, d, err := decoded(set, from, math.MaxInt64, 1<<16, 1<<18)
		if err != nil && !errors.Is(err, errCorrupt) && err != io.EOF && err != io.ErrUnexpectedEOF {
			t.Fatalf("%v", err)
		}
		if a.next < from {
			t.Fatalf("next %d is before %d", a.next, from)
		}
		last := from - 1
		for _, m := range a.messages {
			if m.Offset <= last || m.Offset >= a.next {
				t.Fatalf("offset %d after %d, next %d", m.Offset, last, a.next)
			}
			last = m.Offset
			if known, read := m.ID(), unsummed(m); known != read {
				t.Fatalf("offset %d: identity %+v, its bytes give %+v", m.Offset, known, read)
			}
		}
		if held := d.arena.held() + a.extra; held > int64(len(set))*2+4<<20 {
			t.Fatalf("%d bytes make it hold %d", len(set), held)
		}
	})
}
