package pipeline

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/schemas"
)

// messageLog is a partition of given messages.
type messageLog struct {
	messages []schemas.Message
	end      int64 // where --until-end stops; at most len(messages)
	perFetch int
	rng      *rand.Rand
	leased   atomic.Int64
	stopAt   int64 // stop is called before this offset is fetched; 0: never
	stop     func()
}

func (l *messageLog) Check(context.Context, schemas.Position) (schemas.TopicID, error) {
	return schemas.TopicID{}, nil
}

func (l *messageLog) Committed(context.Context, int64) {}

func (l *messageLog) Fetch(ctx context.Context, from int64, max int32) (schemas.Fetched, error) {
	return l.fetch(ctx, from, l.end)
}

func (l *messageLog) FetchPast(ctx context.Context, from int64, max int32) (schemas.Fetched, error) {
	if from >= int64(len(l.messages)) {
		select {
		case <-ctx.Done():
			return schemas.Fetched{}, ctx.Err()
		case <-time.After(time.Second): // the poll time
			return schemas.Fetched{From: from, Next: from, End: from}, nil
		}
	}
	return l.fetch(ctx, from, int64(len(l.messages)))
}

func (l *messageLog) fetch(ctx context.Context, from, end int64) (schemas.Fetched, error) {
	if from >= end {
		return schemas.Fetched{}, io.EOF
	}
	if l.stopAt > 0 && from >= l.stopAt {
		l.stop()
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return schemas.Fetched{}, ctx.Err()
	}
	f := schemas.Fetched{From: from, Next: min(from+int64(1+l.rng.IntN(l.perFetch)), end), End: end}
	var copies [][]byte
	for _, m := range l.messages[from:f.Next] {
		m.Value = slices.Clone(m.Value)
		copies = append(copies, m.Value)
		f.Bytes += int64(len(m.Value))
		f.Messages = append(f.Messages, m)
	}
	l.leased.Add(1)
	f.Release = func() {
		for _, c := range copies { // whoever still reads it gets nonsense
			clear(c)
		}
		l.leased.Add(-1)
	}
	return f, nil
}

// sensors returns a log of frames of several sensors, whose chunks are interleaved, and the
// rows that it has. lose says of which frames a chunk is missing.
func sensors(seed uint64, sensors, frames, size, chunk int, lose func(frame int) bool) ([]schemas.Message, []row) {
	rng := rand.New(rand.NewPCG(seed, 2))
	var log []schemas.Message
	var rows []row
	under := make([][]*schemas.Record, sensors)
	for sent := 0; ; {
		s := rng.IntN(sensors)
		if len(under[s]) == 0 && sent < frames {
			value := make([]byte, size/2+rng.IntN(size))
			for i := range value {
				value[i] = byte(rng.Uint32())
			}
			under[s] = schemas.ChunksOf(&schemas.Record{Key: []byte{byte(s)}, Value: value}, int64(chunk),
				fmt.Sprintf("%08x%08x", seed, sent))
			r := row{Offset: int64(len(log)), Value: fmt.Sprint(crc32.ChecksumIEEE(value))}
			if lose != nil && lose(sent) && len(under[s]) > 1 {
				under[s] = slices.Delete(under[s], 1, 2)
				r = row{Offset: r.Offset, Reason: schemas.ReasonIncomplete}
			}
			rows = append(rows, r)
			sent++
		}
		if len(under[s]) == 0 {
			if !slices.ContainsFunc(under, func(c []*schemas.Record) bool { return len(c) > 0 }) && sent == frames {
				return log, rows
			}
			continue
		}
		c := under[s][0]
		log = append(log, schemas.Message{Topic: "t", Offset: int64(len(log)), Key: c.Key, Value: c.Value,
			Headers: c.Headers, Time: time.Unix(1, 0)})
		if rng.IntN(20) > 0 { // else it comes again
			under[s] = under[s][1:]
		}
	}
}

// sums gives a result whose points are the sum of the value.
func sums() Process {
	return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
		return []schemas.Result{{FrameKey: schemas.FrameKey{Offset: m.Offset,
			Sequence: fmt.Sprint(crc32.ChecksumIEEE(m.Value))}}}, nil
	}
}

// chunkRows are the rows of all batches in their order, and checks what the batches count.
func chunkRows(t *testing.T, o *memoryOutput, size int64) (rows []row) {
	t.Helper()
	next := int64(0)
	for _, b := range o.batches {
		if b.Start != next || b.Messages != int64(len(b.Results)+len(b.Rejects)) || b.Holes != 0 ||
			b.Messages+b.Chunks != b.End-b.Start || b.Last == nil || b.Last.Offset != b.End-1 {
			t.Errorf(
				"batch [%d, %d) after %d: %d messages, %d chunks, %d holes, last %+v, %d rows",
				b.Start,
				b.End,
				next,
				b.Messages,
				b.Chunks,
				b.Holes,
				b.Last,
				len(b.Results)+len(b.Rejects),
			)
		}
		for _, r := range b.Results {
			rows = append(rows, row{Offset: r.Offset, Value: r.Sequence})
		}
		for _, r := range b.Rejects {
			rows = append(rows, row{Offset: r.Offset, Reason: r.Reason})
		}
		next = b.End
	}
	if next != size {
		t.Errorf("committed up to %d of %d", next, size)
	}
	slices.SortFunc(rows, func(a, b row) int { return int(a.Offset - b.Offset) })
	return rows
}

// Law: every message of chunks has its row once, however often the partition moves, batches
// roll and other writers win; lost chunks make one reject.
func TestChunksInAPipeline(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			log, want := sensors(seed, 1+rng.IntN(8), 60, 600, 100, func(int) bool { return rng.IntN(15) == 0 })
			out := &memoryOutput{}
			p := newPipeline(out, sums, func(c *Config) {
				c.Memory, c.Chunks = 4000, Chunks{Window: 120000, Recent: 64}
				c.Roll = Roll{Bytes: 5000, Records: int64(1 + rng.IntN(9)), Age: time.Second}
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
				if n := l.leased.Load(); n != 0 {
					t.Fatalf("seed %d: %d fetches were not released", seed, n)
				}
				if n := len(out.batches); n > 0 {
					next = out.batches[n-1].End
				}
			}
			if d := differ(want, chunkRows(t, out, size)); d != "" {
				t.Errorf("seed %d: -want +got\n%s", seed, d)
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

// Law: partitions whose open messages are larger than the memory all come to their ends.
func TestChunksDoNotWaitForEachOther(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			out := make([]*memoryOutput, 6)
			p := newPipeline(byPartition(out), sums, func(c *Config) {
				c.Memory, c.Roll = 20000, Roll{Bytes: 1 << 30, Records: 1 << 30}
			})
			var all sync.WaitGroup
			for i := range out {
				out[i] = &memoryOutput{}
				log, want := sensors(100*seed+uint64(i), 10, 40, 4000, 300, nil)
				all.Go(func() {
					l := &messageLog{
						messages: log,
						end:      int64(len(log)),
						perFetch: 7,
						rng:      rand.New(rand.NewPCG(seed, 4)),
					}
					if err := p.Partition(t.Context(), "t", int32(i), l); err != nil {
						t.Errorf("seed %d, partition %d: %v", seed, i, err)
					}
					if d := differ(want, chunkRows(t, out[i], int64(len(log)))); d != "" {
						t.Errorf("seed %d, partition %d: -want +got\n%s", seed, i, d)
					}
				})
			}
			all.Wait()
			if n := p.budget.used(); n != 0 {
				t.Errorf("seed %d: %d bytes are still counted", seed, n)
			}
			p.Close()
		})
	}
}

// byPartition is an Output of several.
type byPartition []*memoryOutput

func (o byPartition) Resume(ctx context.Context, topic string, id int32) (schemas.Position, error) {
	return o[id].Resume(ctx, topic, id)
}

func (o byPartition) Stage(ctx context.Context, b *schemas.Batch) error {
	return o[b.Partition].Stage(ctx, b)
}

func (o byPartition) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	return o[b.Partition].Commit(ctx, b)
}

// Law: a message that begins before the end of --until-end is read behind it; another one is
// not. Where its chunks never come, a clock gives it up.
func TestChunksBehindTheEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		lost bool
		want string
	}{{"they come", false, "[{0 3 } {2 7 }]"}, {"one is lost", true, "[{0  incomplete} {2 7 }]"}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := schemas.ChunksOf(&schemas.Record{Value: []byte("abc")}, 1, "00000000000000aa")
				second := schemas.ChunksOf(&schemas.Record{Value: []byte("de")}, 1, "00000000000000bb")
				huge := schemas.ChunksOf(&schemas.Record{Value: []byte("fg")}, 1, "00000000000000cc")
				for _, r := range huge {
					for i := range r.Headers {
						if r.Headers[i].Key == schemas.HeaderFrameBytes {
							r.Headers[i].Value = []byte("1099511627776")
						}
					}
				}
				order := []*schemas.Record{
					first[0],
					first[1],
					{Value: []byte("seven b")},
					second[0],
					huge[0],
					first[2],
					second[1],
					huge[1],
				}
				if c.lost {
					order[5] = &schemas.Record{Value: []byte("another")}
				}
				l := &messageLog{end: 3, perFetch: 2, rng: rand.New(rand.NewPCG(1, 1))}
				for i, r := range order {
					l.messages = append(l.messages, schemas.Message{Topic: "t", Offset: int64(i), Value: r.Value,
						Headers: r.Headers, Time: time.Unix(1, 0)})
				}
				out := &memoryOutput{}
				p := newPipeline(out, func() Process {
					return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
						return []schemas.Result{{FrameKey: schemas.FrameKey{Offset: m.Offset,
							Sequence: fmt.Sprint(len(m.Value))}}}, nil
					}
				}, nil)
				begin := time.Now()
				ended := make(chan error)
				go func() { ended <- p.Partition(t.Context(), "t", 0, l) }()
				time.Sleep(defaultChunkAge / 2)
				waits := ""
				p.Chunked(func(topic string, id int32, offset int64, since time.Time) {
					waits += fmt.Sprintf("%s/%d@%d since %v", topic, id, offset, since.Sub(begin))
				})
				if want := map[bool]string{true: "t/0@0 since 0s"}[c.lost]; waits != want {
					t.Errorf("waits for %q, want %q", waits, want)
				}
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(chunkRows(t, out, 3)); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if took := time.Since(begin); c.lost != (took >= defaultChunkAge) && took > defaultChunkAge/2 {
					t.Errorf("it took %v", took)
				}
				p.Close()
			})
		})
	}
}
