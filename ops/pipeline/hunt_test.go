package pipeline

import (
	"context"
	"flag"
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

var (
	huntFrames = flag.Int("hunt.frames", 70, "frames of each partition in the hunt for deadlocks; 1000 takes a minute")
	huntSeeds  = flag.Uint64("hunt.seeds", 1, "seeds of each case of the hunt")
	huntSeed   = flag.Uint64("hunt.seed", 1, "the first of them")
)

const (
	huntMemory = 16 << 20
	huntFrame  = 4 << 20 // mean size
	huntChunk  = 1_000_000
)

// noise are bytes of which the values of frames are windows: they cost nothing to make.
var noise = sync.OnceValue(func() []byte {
	b, rng := make([]byte, 16<<20), rand.New(rand.NewPCG(1, 1))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
})

// herd is a partition in which many sensors send frames in chunks at the same time. It makes
// its log while it is read, once.
type herd struct {
	t         *testing.T
	rng       *rand.Rand
	partition int32
	frames    int // to send
	atOnce    int // sensors that are amid a frame
	plain     int // every so many frames one comes in one record, of a tenth of the size; 0: none
	limit     int // bytes of a fetch, if that is less than what is asked for; 0: what is asked for

	sent  int
	under [][]*schemas.Record // chunks to come, of each sensor
	next  int64
	want  []row
	watch func()      // called in each fetch
	ended func() bool // nothing more is sent; nil: frames decide
}

func (h *herd) Check(context.Context, schemas.Position) (schemas.TopicID, error) {
	return schemas.TopicID{}, nil
}

func (h *herd) Committed(context.Context, int64) {}

func (h *herd) Fetch(ctx context.Context, from int64, most int32) (schemas.Fetched, error) {
	if from != h.next {
		h.t.Errorf("partition %d is read at %d, want %d", h.partition, from, h.next)
		return schemas.Fetched{}, io.EOF
	}
	h.watch()
	time.Sleep(time.Duration(h.rng.IntN(3)) * time.Millisecond)
	if ctx.Err() != nil {
		return schemas.Fetched{}, ctx.Err()
	}
	size := int64(most)
	if h.limit > 0 {
		size = min(size, 1+h.rng.Int64N(int64(h.limit)))
	}
	f := schemas.Fetched{From: from}
	var copies [][]byte
	for f.Bytes < size {
		r := h.record()
		if r == nil {
			break
		}
		if n := int64(len(r.Value)); len(f.Messages) > 0 && f.Bytes+n > size {
			h.under[0] = append([]*schemas.Record{r}, h.under[0]...)
			break
		}
		m := schemas.Message{Topic: "t", Partition: h.partition, Offset: h.next, Key: r.Key,
			Value: slices.Clone(r.Value), Headers: r.Headers, Time: time.Unix(1, 0)}
		copies = append(copies, m.Value)
		if chunk, is, _ := schemas.ChunkOf(&m); !is || chunk.Index == 0 {
			h.want = append(h.want, row{Offset: h.next, Value: string(r.Key)})
		}
		f.Bytes += int64(len(m.Value))
		f.Messages = append(f.Messages, m)
		h.next++
	}
	if f.Next, f.End = h.next, h.next; len(f.Messages) == 0 {
		return f, io.EOF
	}
	f.Release = func() {
		for _, c := range copies {
			clear(c[:min(len(c), 64)]) // whoever still reads it gets nonsense
		}
	}
	return f, nil
}

// record returns the next record of the log; nil: it has ended. The first of under is what a
// fetch had no room for.
func (h *herd) record() *schemas.Record {
	if h.under == nil {
		h.under = make([][]*schemas.Record, 1+h.atOnce)
	}
	if back := h.under[0]; len(back) > 0 {
		h.under[0] = back[1:]
		return back[0]
	}
	open := h.open()
	more := h.sent < h.frames && (h.ended == nil || !h.ended())
	if !more && len(open) == 0 {
		return nil
	}
	s := 1 + h.rng.IntN(h.atOnce)
	if !more {
		s = open[h.rng.IntN(len(open))]
	}
	if len(h.under[s]) == 0 {
		h.under[s] = h.frame()
	}
	r := h.under[s][0]
	h.under[s] = h.under[s][1:]
	return r
}

// open returns the sensors that are amid a frame.
func (h *herd) open() (all []int) {
	for i, c := range h.under {
		if i > 0 && len(c) > 0 {
			all = append(all, i)
		}
	}
	return all
}

// frame makes a frame. Its key is the checksum of its value.
func (h *herd) frame() []*schemas.Record {
	h.sent++
	size := huntFrame/2 + h.rng.IntN(huntFrame)
	plain := h.plain > 0 && h.rng.IntN(h.plain) == 0
	if plain {
		size /= 10
	}
	at := h.rng.IntN(len(noise()) - size)
	value := noise()[at : at+size]
	r := &schemas.Record{Key: fmt.Append(nil, crc32.ChecksumIEEE(value)), Value: value}
	if plain {
		return []*schemas.Record{r}
	}
	return schemas.ChunksOf(r, huntChunk, fmt.Sprintf("%08x%08x", h.partition, h.sent))
}

// heard reads until the values are read, and takes a while for some.
func heard(seed uint64) func() Process {
	var workers atomic.Uint64
	return func() Process {
		rng, sum := rand.New(rand.NewPCG(seed, workers.Add(1))), sums()
		return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
			results, rejects := sum(m)
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			results[0].Triangles = make([]int32, rng.IntN(1<<16)) // memory that waits for its commit
			return results, rejects
		}
	}
}

// Law: with sensors whose open frames are many times --memory, every partition comes to its
// end, and every frame has its row, whatever the sizes of fetches, the number of workers, and
// how often batches roll. What the budget counts stays within its limit, the window and a
// fetch of each partition.
func TestManySensorsInLittleMemory(t *testing.T) {
	for _, c := range []struct {
		name       string
		workers    int
		partitions int
		herd       herd
		window     int64
		roll       Roll
	}{
		{"one worker, large fetches", 1, 1, herd{atOnce: 50}, 1 << 30, Roll{Bytes: 1 << 40, Records: 1 << 40}},
		{"four workers, the window by default", 4, 1, herd{atOnce: 5}, 64 << 20, Roll{Bytes: 1 << 40,
			Records: 1 << 40, Age: time.Second}},
		{"two partitions, small fetches, frequent rolls", 4, 2, herd{atOnce: 50, limit: 3 << 20, plain: 5}, 1 << 30,
			Roll{Bytes: 1 << 40, Records: 3, Age: 50 * time.Millisecond}},
		{"three partitions, one worker", 1, 3, herd{atOnce: 50, limit: 40 << 20, plain: 2}, 1 << 30,
			Roll{Bytes: 10 << 20, Records: 1 << 40}},
	} {
		for seed := *huntSeed; seed < *huntSeed+*huntSeeds; seed++ {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					out := make([]*memoryOutput, c.partitions)
					p := newPipeline(byPartition(out), heard(seed), func(cfg *Config) {
						cfg.Memory, cfg.Workers, cfg.Roll = huntMemory, c.workers, c.roll
						cfg.Chunks = Chunks{Window: c.window}
					})
					var peak atomic.Int64
					var all sync.WaitGroup
					herds := make([]*herd, c.partitions)
					for i := range out {
						out[i] = &memoryOutput{slow: 5 * time.Millisecond}
						h := c.herd
						h.t, h.rng, h.partition = t, rand.New(rand.NewPCG(seed, uint64(i))), int32(i)
						h.frames = *huntFrames/c.partitions + 1
						h.watch = func() { peak.Store(max(peak.Load(), p.budget.used())) }
						herds[i] = &h
						all.Go(func() {
							if err := p.Partition(t.Context(), "t", h.partition, &h); err != nil {
								t.Errorf("partition %d: %v", h.partition, err)
							}
						})
					}
					all.Wait()
					for i, h := range herds {
						if d := differ(h.want, chunkRows(t, out[i], h.next)); d != "" || h.sent != h.frames {
							t.Errorf("partition %d, %d frames: -want +got\n%s", i, h.sent, d)
						}
					}
					if n := p.budget.used(); n != 0 {
						t.Errorf("%d bytes are still counted", n)
					}
					bound := huntMemory + int64(c.partitions)*(min(c.window, int64(c.herd.atOnce)*huntFrame*3/2)+
						maxFetch)
					t.Logf("peak %d MiB of %d", peak.Load()>>20, bound>>20)
					if peak.Load() > bound {
						t.Errorf("%d bytes were counted, want at most %d", peak.Load(), bound)
					}
					p.Close()
				})
			})
		}
	}
}

// Law: beside a partition that has more open frames than memory, and never less, another one
// is read to its end.
func TestOpenFramesStarveNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := []*memoryOutput{{countOnly: true}, {}}
		p := newPipeline(byPartition(out), heard(*huntSeed), func(cfg *Config) {
			cfg.Memory, cfg.Workers, cfg.Roll = huntMemory, 2, Roll{Bytes: 8 << 20, Records: 1 << 40}
			cfg.Chunks = Chunks{Window: 1 << 30}
		})
		var read atomic.Bool
		var all sync.WaitGroup
		endless := &herd{t: t, rng: rand.New(rand.NewPCG(*huntSeed, 8)), frames: 4 * *huntFrames, atOnce: 20,
			watch: func() {}, ended: read.Load}
		other := &herd{t: t, rng: rand.New(rand.NewPCG(*huntSeed, 9)), partition: 1, frames: 40, atOnce: 1, plain: 1,
			watch: func() {}}
		all.Go(func() {
			if err := p.Partition(t.Context(), "t", 0, endless); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			defer read.Store(true)
			if err := p.Partition(t.Context(), "t", 1, other); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if endless.sent == endless.frames {
			t.Errorf("the other partition was not read before this one had no more")
		}
		if d := differ(other.want, chunkRows(t, out[1], other.next)); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
		p.Close()
	})
}
