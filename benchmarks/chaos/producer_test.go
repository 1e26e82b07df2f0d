//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// producer writes records at a steady rate, one goroutine a partition, and
// remembers which offset the broker acknowledged for which record. A request
// whose answer is lost is sent again: the log may then hold its records twice,
// which is the log's truth and nobody's fault.
type producer struct {
	client *rig.Client
	topic  string
	every  time.Duration // between the requests of a partition
	batch  int           // records of a request

	mu      sync.Mutex
	acked   map[Place]Sent
	retries int
}

// run writes to the first n partitions until ctx ends, then waits for the
// requests under way.
func (p *producer) run(ctx context.Context, n int, seed uint64) {
	var all sync.WaitGroup
	for id := range n {
		all.Go(func() {
			p.partition(ctx, int32(id), rand.New(rand.NewPCG(seed, uint64(id)+1)))
		})
	}
	all.Wait()
}

// count returns the number of acknowledged records.
func (p *producer) count() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.acked))
}

func (p *producer) partition(ctx context.Context, id int32, rng *rand.Rand) {
	m := maker{partition: id, rng: rng}
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		records, sent := m.records(p.batch)
		base, err := p.insist(ctx, id, records)
		if err != nil {
			return
		}
		p.mu.Lock()
		for i, s := range sent {
			p.acked[Place{id, base + int64(i)}] = s
		}
		p.mu.Unlock()
	}
}

// insist sends the records until they are acknowledged, or ctx ends.
func (p *producer) insist(ctx context.Context, id int32, records []kafka.Record) (int64, error) {
	base, err := p.send(ctx, id, records)
	for err != nil && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		p.mu.Lock()
		p.retries++
		p.mu.Unlock()
		base, err = p.send(ctx, id, records)
	}
	return base, err
}

// send writes the records in one request and returns the offset of the first.
// It does not end with ctx: an answer that comes is an answer to remember.
func (p *producer) send(ctx context.Context, id int32, records []kafka.Record) (int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	r, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: p.topic, Partition: int(id), RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(renew(records)...),
	})
	if err != nil {
		return 0, err
	}
	return r.BaseOffset, r.Error
}

// renew gives every record readers of its own: a request reads them up.
func renew(records []kafka.Record) []kafka.Record {
	out := make([]kafka.Record, len(records))
	for i, r := range records {
		out[i] = r
		if v, ok := r.Value.(value); ok {
			out[i].Value = kafka.NewBytes(v.b)
		}
		if k, ok := r.Key.(value); ok {
			out[i].Key = kafka.NewBytes(k.b)
		}
	}
	return out
}

// value keeps the bytes of a value or a key for a second request.
type value struct {
	kafka.Bytes
	b []byte
}

// maker makes the records of one partition: mostly small clouds, some packs of
// drawings, some values that are to be refused, and tombstones.
type maker struct {
	partition int32
	rng       *rand.Rand
	enc       schemas.Encoder
	next      int64 // frame_id of the next frame
}

func (m *maker) records(n int) ([]kafka.Record, []Sent) {
	records, sent := make([]kafka.Record, n), make([]Sent, n)
	for i := range records {
		v, schema, frames := m.value()
		key := schemas.FrameKey{Dataset: "chaos", Sequence: fmt.Sprintf("p%d", m.partition), FrameID: m.next,
			TimeNs: time.Now().UnixNano()}
		for _, h := range schemas.Headers(key, schema, "/chaos") {
			records[i].Headers = append(records[i].Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		if v != nil {
			records[i].Value = value{b: v}
		}
		sent[i] = Sent{Number: m.next, Frames: frames}
		m.next += int64(max(frames, 1))
	}
	return records, sent
}

// value returns a record's value, its schema and how many frames are in it.
func (m *maker) value() ([]byte, string, int) {
	switch r := m.rng.Float64(); {
	case r < 0.03:
		return nil, schemas.SchemaPoints, 0
	case r < 0.06:
		// Cut off the beat: a stream that ends between two messages is whole,
		// and all lengths in it are multiples of eight.
		whole := m.points()
		return whole[:8*m.rng.IntN(len(whole)/8-1)+1+m.rng.IntN(7)], schemas.SchemaPoints, 0
	case r < 0.15:
		n := 1 + m.rng.IntN(5)
		return m.drawings(n), schemas.SchemaSketches, n
	default:
		return m.points(), schemas.SchemaPoints, 1
	}
}

func (m *maker) points() []byte {
	n := m.rng.IntN(60)
	c := geom.Cloud[float32]{X: coordinates[float32](m, n), Y: coordinates[float32](m, n)}
	b, err := m.enc.AppendPoints(nil, schemas.PointCloud{Points: codec.Points{Cloud32: c}})
	if err != nil {
		panic("chaos: a cloud cannot be encoded: " + err.Error())
	}
	return b
}

// coordinates lie on a small grid, so that ties and equal points are common.
func coordinates[T geom.Float](m *maker, n int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = T(m.rng.IntN(50))
	}
	return v
}

func (m *maker) drawings(n int) []byte {
	var ds []schemas.Sketch
	for i := range n {
		k := 1 + m.rng.IntN(30)
		ds = append(ds, schemas.Sketch{Drawing: schemas.Drawing{ID: int64(i) + 1, Label: "scrawl"},
			Strokes: []schemas.Stroke{{X: coordinates[float64](m, k), Y: coordinates[float64](m, k)}}})
	}
	b, err := m.enc.AppendSketches(nil, ds)
	if err != nil {
		panic("chaos: drawings cannot be encoded: " + err.Error())
	}
	return b
}
