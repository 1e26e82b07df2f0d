package pipeline

import (
	"bytes"
	"fmt"
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
		log = append(log, schemas.Message{Offset: int64(len(log)), Key: r.Key, Value: r.Value, Headers: r.Headers,
			Time: time.Unix(int64(len(log)), 0)})
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

func free(int64) error { return nil }

// row is what becomes of a message.
type row struct {
	Offset int64
	Value  string
	Reason string
}

// batchOf reads log from pos to as far as to, and returns the rows of the longest batch that
// may be committed, up to most offsets, and the position behind it. last: nothing will
// follow the log.
func batchOf(
	log []schemas.Message,
	pos schemas.Position,
	to, most int64,
	last bool,
) (rows []row, next schemas.Position) {
	few := Chunks{Window: 120, Age: time.Second, Recent: 2}
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

// Law: the rows and rejects of a log do not depend on where batches end, how far their
// writers had read, or how often one begins anew; and every message whose chunks are all in
// the window is whole.
func TestChunksGiveTheSameRowsHoweverTheLogIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := chunkLog(t)
		size := int64(len(log))
		want, end := batchOf(log, schemas.Position{}, size, size, true)
		if end.Next != size {
			t.Fatalf("a reader without a break ends at %d of %d", end.Next, size)
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
			_, f, err := a.take(
				&schemas.Message{Offset: int64(o), Key: c.Key, Value: c.Value, Headers: c.Headers},
				time.Now(),
				free,
			)
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
