//go:build chaos

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
	"entropipe/ingest"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

const (
	sensorsEach = 8    // sensors of a partition, which send at the same time
	chunkBytes  = 1000 // largest chunk
	doubling    = 0.05 // share of the chunks that come twice
	swapping    = 0.1  // share of the records that change places with the next one
	losing      = 0.01 // share of the chunks that a lossy partition lacks
)

// flock makes the records of one partition: frames of several sensors, in chunks that are
// interleaved. What it makes depends on its generator alone.
type flock struct {
	maker
	lossy  bool
	frames []*schemas.Record // by their numbers, whole
	under  [sensorsEach][]*schemas.Record
	behind *schemas.Record // changes places with the next one
}

// batch returns the next n records, or fewer when no frame begins any more.
func (f *flock) batch(n int, more bool) (records []kafka.Record) {
	for len(records) < n {
		r := f.record(more)
		if r == nil {
			break
		}
		records = append(records, toKafka(r))
	}
	return records
}

func toKafka(r *schemas.Record) kafka.Record {
	k := kafka.Record{Key: value{b: r.Key}, Value: value{b: r.Value}}
	for _, h := range r.Headers {
		k.Headers = append(k.Headers, kafka.Header{Key: h.Key, Value: h.Value})
	}
	return k
}

// record returns the next record; nil: all have been returned.
func (f *flock) record(more bool) *schemas.Record {
	r := f.take(more)
	switch {
	case r == nil || f.behind != nil:
		r, f.behind = f.behind, r
		if r == nil {
			r, f.behind = f.behind, nil
		}
	case f.rng.Float64() < swapping:
		if next := f.take(more); next != nil {
			r, f.behind = next, r
		}
	}
	return r
}

func (f *flock) take(more bool) *schemas.Record {
	s := f.rng.IntN(sensorsEach)
	if !more {
		if s = slices.IndexFunc(f.under[:], func(c []*schemas.Record) bool { return len(c) > 0 }); s < 0 {
			return nil
		}
	}
	for len(f.under[s]) == 0 {
		f.under[s] = f.chunks(s)
	}
	r := f.under[s][0]
	f.under[s] = f.under[s][1:]
	return r
}

// chunks makes the next frame of a sensor, and returns what is sent of it: perhaps nothing.
func (f *flock) chunks(sensor int) (sent []*schemas.Record) {
	whole := f.frame(fmt.Sprintf("p%d-s%d", f.partition, sensor), f.rng.IntN(600))
	for _, c := range schemas.ChunksOf(whole, chunkBytes, chunkID(f.partition, len(f.frames)-1)) {
		switch p := f.rng.Float64(); {
		case f.lossy && p < losing && len(c.Value) < len(whole.Value):
		case p > 1-doubling && len(c.Value) < len(whole.Value):
			sent = append(sent, c)
			sent = slices.Insert(sent, f.rng.IntN(len(sent)+1), c)
		default:
			sent = append(sent, c)
		}
	}
	return sent
}

// frame makes a frame of n points.
func (f *flock) frame(sequence string, n int) *schemas.Record {
	number := int64(len(f.frames))
	b, err := f.enc.AppendPoints(nil, schemas.PointCloud{Points: codec.Points{Cloud32: geom.Cloud[float32]{
		X: coordinates[float32](&f.maker, n), Y: coordinates[float32](&f.maker, n)}}})
	if err != nil {
		panic("chaos: a cloud cannot be encoded: " + err.Error())
	}
	key := schemas.FrameKey{Dataset: "chaos", Sequence: sequence, FrameID: number, TimeNs: 1e18 + number}
	r := &schemas.Record{Key: []byte(sequence), Value: b, Headers: schemas.Headers(key, schemas.SchemaPoints, "/chaos")}
	f.frames = append(f.frames, r)
	return r
}

// chunkID names a frame.
func chunkID(partition int32, number int) string { return fmt.Sprintf("%04x%012x", partition, number) }

// logged is a record as the log has it.
type logged struct {
	schemas.Chunk
	is     bool  // it is a chunk
	number int64 // its frame's
	bytes  int64 // key, value and headers
}

// readLogs reads the first n partitions of a topic, each as a list by offset.
func readLogs(ctx context.Context, broker, topic string, n int) ([][]logged, error) {
	c, err := ingest.NewConsumer(ingest.Config{Brokers: []string{broker}, Topics: []string{topic}, UntilEnd: true,
		Group: fmt.Sprintf("reads-%s-%016x", topic, rand.Uint64())})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var mu sync.Mutex
	logs := make([][]logged, n)
	return logs, c.Run(ctx, func(ctx context.Context, p *ingest.Partition) error {
		log, err := readLog(ctx, p)
		mu.Lock()
		defer mu.Unlock()
		logs[p.ID] = log
		return err
	})
}

func readLog(ctx context.Context, p *ingest.Partition) (log []logged, err error) {
	for {
		f, err := p.Fetch(ctx, int64(len(log)), 4<<20)
		if errors.Is(err, io.EOF) {
			return log, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range f.Messages {
			m := &f.Messages[i]
			l := logged{bytes: m.Bytes()}
			if l.Chunk, l.is, err = schemas.ChunkOf(m); err != nil || m.Offset != int64(len(log)) {
				return nil, fmt.Errorf("%d@%d behind offset %d: %w", m.Partition, m.Offset, len(log)-1, err)
			}
			for _, h := range m.Headers {
				if h.Key == schemas.HeaderFrameID {
					if l.number, err = strconv.ParseInt(string(h.Value), 10, 64); err != nil {
						return nil, err
					}
				}
			}
			log = append(log, l)
		}
		if f.Release != nil {
			f.Release()
		}
	}
}

// meaning is what logs say by the rules of chunks, in their simplest form.
type meaning struct {
	want   Expected
	frames [][]int64 // numbers of the frames that are whole, by partition, in order
	broken int64     // frames that are not
	chunks int64
	twice  int64 // chunks that had been there
}

// meaningOf reads the logs with a window.
func meaningOf(topic string, logs [][]logged, window int64) meaning {
	m := meaning{want: Expected{Topic: topic, Logs: map[int32]rig.Range{}, Acked: map[Place]Sent{},
		Further: map[Place]bool{}}}
	for p, log := range logs {
		m.want.Logs[int32(p)] = rig.Range{End: int64(len(log))}
		m.frames = append(m.frames, m.partition(int32(p), log, window))
	}
	return m
}

// partition enters one partition, and returns its whole frames.
func (m *meaning) partition(id int32, log []logged, window int64) []int64 {
	type open struct {
		at   Place
		from int64
		have map[int]bool
	}
	var begun []string
	all := map[string]*open{}
	read := int64(0)
	for o, l := range log {
		at := Place{id, int64(o)}
		before := read
		read += l.bytes
		f := all[l.ID]
		if f != nil && before-f.from >= window { // it was given up meanwhile
			delete(all, l.ID)
			f = nil
		}
		switch {
		case !l.is:
			m.want.Acked[at] = Sent{Number: l.number, Frames: 1}
			continue
		case f == nil && slices.Contains(begun[max(0, len(begun)-schemas.MaxClosed):], l.ID):
			m.want.Further[at] = true
			m.twice++
		case f == nil:
			f = &open{at: at, from: before, have: map[int]bool{}}
			all[l.ID], begun = f, append(begun, l.ID)
			m.want.Acked[at] = Sent{}
		default:
			m.want.Further[at] = true
		}
		m.chunks++
		if f == nil {
			continue
		}
		if f.have[l.Index] {
			m.twice++
		}
		if f.have[l.Index] = true; len(f.have) == l.Count {
			m.want.Acked[f.at] = Sent{Number: l.number, Frames: 1}
			delete(all, l.ID)
		}
	}
	type placed struct{ at, number int64 }
	var frames []placed
	for at, s := range m.want.Acked {
		switch {
		case at.Partition != id:
		case s.Frames > 0:
			frames = append(frames, placed{at.Offset, s.Number})
		default:
			m.broken++
		}
	}
	slices.SortFunc(frames, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	numbers := make([]int64, len(frames))
	for i := range frames {
		numbers[i] = frames[i].number
	}
	return numbers
}
