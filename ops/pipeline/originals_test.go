package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"entropipe/schemas"
)

// archive is an output that keeps the messages themselves. Their memory is used again after a
// commit, so it copies them.
type archive struct {
	memoryOutput
	kept   []schemas.Original
	counts []int // originals of each batch
	slow   time.Duration
}

func (a *archive) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	time.Sleep(a.slow)
	done, err := a.memoryOutput.Commit(ctx, b)
	if err != nil {
		return done, err
	}
	a.counts = append(a.counts, len(b.Originals))
	for _, o := range b.Originals {
		o.Key, o.Value, o.Packed = bytes.Clone(o.Key), bytes.Clone(o.Value), bytes.Clone(o.Packed)
		a.kept = append(a.kept, o)
	}
	return done, nil
}

// turned is a Pack that turns the bits of values of at least 200 bytes. Of some it says more than
// the value has, so that dst does not suffice.
func turned(dst, value []byte) []byte {
	if len(value) < 200 {
		return nil
	}
	for _, b := range value {
		dst = append(dst, ^b)
	}
	return append(dst, make([]byte, len(value)%3*100)...)
}

// strangers are messages of all kinds between the chunks of sensors: tombstones, empty values, and
// values, keys and headers of any bytes. Every fifth is refused by pickySums.
func strangers(rng *rand.Rand, log []schemas.Message, want []schemas.Original) ([]schemas.Message, []schemas.Original) {
	var all []schemas.Message
	at := map[int64]int64{} // offsets of log in all
	some := func(n int) []byte {
		if rng.IntN(4) == 0 {
			return nil
		}
		b := make([]byte, rng.IntN(n))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for i := range log {
		for rng.IntN(3) == 0 {
			m := schemas.Message{Topic: "t", Offset: int64(len(all)), Key: some(9), Value: some(900),
				Time: time.UnixMilli(int64(rng.IntN(3)) * 1234)}
			for range rng.IntN(3) {
				m.Headers = append(m.Headers, schemas.Header{Key: string(some(5)), Value: some(5)})
			}
			all = append(all, m)
			want = append(want, schemas.Original{Topic: "t", Offset: m.Offset, TimeNs: m.SentAt(), Key: m.Key,
				Headers: m.Headers, Value: m.Value, Size: int64(len(m.Value))})
		}
		m := log[i]
		at[m.Offset] = int64(len(all))
		m.Offset = int64(len(all))
		all = append(all, m)
	}
	for i := range want {
		if n := len(want[i].Headers); n > 0 && want[i].Headers[0].Key == "sensor" {
			want[i].Offset = at[want[i].Offset]
		}
	}
	slices.SortFunc(want, func(a, b schemas.Original) int { return int(a.Offset - b.Offset) })
	return all, want
}

// frames returns a log of frames of sensors in chunks, and their originals. A frame that is lost
// has its size alone.
func chunkedOriginals(seed uint64, rng *rand.Rand) (log []schemas.Message, want []schemas.Original) {
	under := make([][]*schemas.Record, 4)
	for sent := 0; sent < 40 || slices.ContainsFunc(under, func(c []*schemas.Record) bool { return len(c) > 0 }); {
		s := rng.IntN(len(under))
		if len(under[s]) == 0 {
			if sent == 40 {
				continue
			}
			value := make([]byte, 300+rng.IntN(900))
			for i := range value {
				value[i] = byte(rng.Uint32())
			}
			headers := []schemas.Header{{Key: "sensor", Value: []byte{byte(s)}}}
			under[s] = schemas.ChunksOf(&schemas.Record{Key: []byte{byte(s)}, Value: value, Headers: headers}, 100,
				fmt.Sprintf("%08x%08x", seed, sent))
			o := schemas.Original{Topic: "t", Offset: int64(len(log)), TimeNs: 1e9, Key: []byte{byte(s)},
				Headers: headers, Value: value, Size: int64(len(value))}
			switch rng.IntN(8) {
			case 0: // a chunk is lost
				under[s], o.Value = slices.Delete(under[s], 1, 2), nil
			case 1: // a chunk is not what was sent
				under[s][2].Value = bytes.Repeat([]byte{1}, 100)
				o.Value = nil
			}
			want = append(want, o)
			sent++
		}
		c := under[s][0]
		under[s] = under[s][1:]
		log = append(log, schemas.Message{Topic: "t", Offset: int64(len(log)), Key: c.Key, Value: c.Value,
			Headers: c.Headers, Time: time.Unix(1, 0)})
	}
	return log, want
}

// pickySums is sums, which refuses some values.
func pickySums() Process {
	return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
		sum := crc32.ChecksumIEEE(m.Value)
		if sum%5 == 0 {
			return nil, []schemas.Reject{schemas.NewReject(&m, fmt.Errorf("of sum %d", sum))}
		}
		return []schemas.Result{{FrameKey: schemas.FrameKey{Offset: m.Offset}}}, nil
	}
}

// unpack turns what turned has packed back.
func unpack(t *testing.T, o schemas.Original) schemas.Original {
	t.Helper()
	if o.Packed != nil {
		if o.Value != nil || int64(len(o.Packed)) != o.Size+o.Size%3*100 {
			t.Fatalf("offset %d: %d bytes are packed of %d, beside a value of %d", o.Offset, len(o.Packed), o.Size,
				len(o.Value))
		}
		for _, b := range o.Packed[:o.Size] {
			o.Value = append(o.Value, ^b)
		}
		o.Packed = nil
	}
	return o
}

// Law: every message is kept once, byte for byte, in order: refused ones, tombstones, messages of
// chunks. Of what is not whole there is the size alone. The law holds however often batches roll,
// partitions move and commits are lost to others, with values packed and as they are.
func TestEveryMessageIsKept(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			log, want := chunkedOriginals(seed, rng)
			log, want = strangers(rng, log, want)
			out := &archive{}
			p := newPipeline(out, pickySums, func(c *Config) {
				c.Memory, c.Chunks, c.Originals = 6000, Chunks{Window: 60000, Recent: 64}, true
				c.Roll = Roll{Bytes: 5000, Records: int64(1 + rng.IntN(9)), Age: time.Second}
				if seed%2 == 0 {
					c.Pack = turned
				}
			})
			size := int64(len(log))
			for next := int64(0); next < size; {
				ctx, stop := context.WithCancel(t.Context())
				l := &messageLog{messages: log, end: size, perFetch: 5, rng: rng, stop: stop,
					stopAt: next + 1 + rng.Int64N(size)}
				if err := p.Partition(ctx, "t", 0, l); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				stop()
				if n := len(out.batches); n > 0 {
					next = out.batches[n-1].End
				}
			}
			for i, b := range out.batches {
				if int64(out.counts[i]) != b.Messages {
					t.Errorf("seed %d: batch [%d, %d) has %d messages and %d of them themselves", seed, b.Start, b.End,
						b.Messages, out.counts[i])
				}
			}
			var got []schemas.Original
			for _, o := range out.kept {
				got = append(got, unpack(t, o))
			}
			if d := differEach(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("seed %d: -want +got\n%s", seed, d)
			}
			for i := range got { // EquateEmpty takes a tombstone for an empty value
				if (got[i].Value == nil) != (want[i].Value == nil) || (got[i].Key == nil) != (want[i].Key == nil) {
					t.Errorf("seed %d, offset %d: null became empty, or empty null", seed, got[i].Offset)
				}
			}
			if n := p.budget.used(); n != 0 {
				t.Errorf("seed %d: %d bytes are still counted", seed, n)
			}
			p.Close()
		})
		if t.Failed() {
			return
		}
	}
}

// A large message, which is read in parts, is kept once, with the last of its parts.
func TestLargeMessageIsKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	l := &listLog{}
	for i, n := range []int{3, 1500, 4, 2500, 2} {
		l.messages = append(l.messages, idMessage(t, int64(i), someIDs(rng, n)...))
	}
	out := &archive{}
	p := smallMemory(t, out, 2)
	p.cfg.Originals = true
	if err := p.Partition(t.Context(), "t", 0, l); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if out.parts < 3 || len(out.kept) != len(l.messages) || p.budget.used() != 0 || l.leased.Load() != 0 {
		t.Fatalf("%d parts, %d messages of %d, %d bytes are still counted, %d fetches held", out.parts, len(out.kept),
			len(l.messages), p.budget.used(), l.leased.Load())
	}
	for i, o := range out.kept {
		if m := &l.messages[i]; o.Offset != m.Offset || !bytes.Equal(o.Value, m.Value) || !bytes.Equal(o.Key, m.Key) ||
			o.Size != int64(len(m.Value)) {
			t.Errorf("message %d of %d bytes was kept as offset %d with %d bytes", i, len(m.Value), o.Offset,
				len(o.Value))
		}
	}
}

// Copies count as memory: batches of large values roll early, and memory stays within the limit
// and what is fetched when it is reached.
func TestKeptMessagesCountAsMemory(t *testing.T) {
	const limit, value = 8 << 20, 400_000
	out := make([]*memoryOutput, 3)
	p := newPipeline(byPartition(out), echo(0), func(c *Config) {
		c.Memory, c.Originals, c.Roll = limit, true, Roll{Bytes: 1 << 40, Records: 1 << 40}
	})
	var peak atomic.Int64
	watch := make(chan struct{})
	go func() {
		for {
			select {
			case <-watch:
				return
			default:
				peak.Store(max(peak.Load(), p.budget.used()))
				time.Sleep(50 * time.Microsecond)
			}
		}
	}()
	var wg sync.WaitGroup
	for i := range out {
		out[i] = &memoryOutput{}
		log := make([]schemas.Message, 100)
		for o := range log {
			log[o] = schemas.Message{Topic: "t", Partition: int32(i), Offset: int64(o), Value: make([]byte, value),
				Time: time.Unix(1, 0)}
		}
		l := &messageLog{messages: log, end: int64(len(log)), perFetch: 5, rng: rand.New(rand.NewPCG(uint64(i), 9))}
		wg.Go(func() {
			if err := p.Partition(t.Context(), "t", int32(i), l); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(watch)
	// Of each partition five values of one fetch, and what waits for the four workers or is with
	// them, five each: what is with a worker is counted twice.
	if got, most := peak.Load(), int64(limit+(3*5+4*5)*(value+value/8+1000)); got > most {
		t.Errorf("peak %d bytes, want at most %d", got, most)
	}
	if n := p.Stats().Batches; n < 9 {
		t.Errorf("%d batches of 120 MB: memory did not make them roll", n)
	}
	if n := p.budget.used(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
	p.Close()
}
