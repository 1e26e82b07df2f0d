package replay

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/ingest"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// Producer sends a Source to a topic. Brokers and Topic are required.
//
// Delivery is at least once: a message counts when all replicas in sync have
// it, and a request whose answer was lost is sent again, which may make a
// second record. Messages of one key, the sequence, stay in order: a partition
// has one request under way at a time, and it is repeated before the next one.
// Packs of token sequences have no key and go to the partitions in turn: there
// is no order among texts that a consumer could need.
//
// Memory is bounded by Window and one item of the source, or one for each of Jobs. A Producer
// runs once at a time; Progress may be called beside it.
type Producer struct {
	Brokers  []string
	Security ingest.Security // encryption and login for connections to the brokers
	Topic    string
	// Create is how the topic is made if it does not exist; a zero
	// MaxMessageBytes means 16 MiB, zero Partitions 4.
	Create ingest.TopicSpec
	Play   Play
	Names  Names
	Key    Key
	// Jobs is the number of frames of an *Inputs that are decoded at a time; 0: 1. Inputs are
	// read side by side, in any order among each other, but with Play.Limit one after the
	// other. Where there are more jobs than inputs, the frames of an input are decoded side by
	// side, and sent in their order: of recordings, of Waymo's version 1, and of formats with a
	// file for each frame.
	Jobs int
	// Resume sends only what the topic lacks; nil: everything is sent.
	Resume *Resume
	// Prune leaves out of each cloud what does not matter; nil: it is sent whole.
	// Drawings always are.
	Prune *Pruner
	// Compression of the Arrow body: none, lz4 or zstd.
	Compression string
	// Chunk is how messages become chunks: see ingest.OutboxConfig.
	Chunk int64
	// Window bounds the bytes that are sent and not acknowledged; 0: 32 MiB.
	Window int64
	// Patience is the time after which brokers that are away are an error; 0: three
	// minutes.
	Patience time.Duration
	Log      *slog.Logger // nil: silent

	stats counters
}

// Pruner finds the points of a cloud that the results of the operators For depend on.
type Pruner struct {
	For schemas.OpSet
	// New returns a function for one goroutine.
	New func() Survivors
}

// Survivors returns the numbers of points, ascending, and the number of points that have a
// non-finite coordinate. keep is valid until the next call.
type Survivors func(c *codec.Points) (keep []int32, dropped int)

// Play says how fast, how often and how far a source is read.
type Play struct {
	Rate  Rate
	Loop  int64     // passes over the source; 0: one
	Limit int64     // frames to send; 0: all
	Epoch time.Time // time of the first frame of a source without dates; zero: DefaultEpoch
}

// Names replaces the source's names of data set, sequence and sensor. An empty field
// keeps the source's name.
type Names struct{ Dataset, Sequence, Sensor string }

// Stats counts what brokers have acknowledged.
type Stats struct {
	Messages, Frames, Points int64 // points, or token ids of sequences
	Bytes                    int64 // bytes of the values
	Retries                  int64 // requests that were sent again
	Skipped                  int64 // bad inputs left out, if the source counts them
	There                    int64 // frames that the topic had already, for Producer.Resume
	Elapsed                  time.Duration
}

// Key says which key messages get, and by that which partition.
type Key uint8

const (
	KeySequence Key = iota // name of the sequence: a sequence is one partition, in order
	KeyFrame               // sequence/frame number: a sequence spreads over the partitions
	KeyNone                // no key: messages go to the partitions in turn
)

// UnmarshalText reads sequence, frame or none.
func (k *Key) UnmarshalText(text []byte) error {
	for i, name := range [...]string{"sequence", "frame", "none"} {
		if string(text) == name {
			*k = Key(i)
			return nil
		}
	}
	return fmt.Errorf("key %q: want sequence, frame or none", text)
}

// Run sends the items of src until src or ctx ends, the limit is reached, or a final
// error occurs. When ctx ends, Run waits a second for the answers of unfinished
// requests, and returns ctx's error. The Stats count every acknowledged record; they
// lack a request whose answer was not awaited.
func (p *Producer) Run(ctx context.Context, src Source) (Stats, error) {
	p.stats.begin()
	err := p.run(ctx, src)
	if s, ok := src.(interface{ Skipped() int64 }); ok {
		p.stats.skipped.Store(s.Skipped())
	}
	p.stats.end()
	return p.Progress(), err
}

// Progress returns the Stats so far. Any goroutine may call it.
func (p *Producer) Progress() Stats { return p.stats.snapshot() }

func (p *Producer) run(ctx context.Context, src Source) error {
	if p.Play.Loop < 0 || p.Play.Limit < 0 {
		return fmt.Errorf("produce: --loop %d, --limit %d: want at least 0", p.Play.Loop, p.Play.Limit)
	}
	if _, err := p.timeline(nil, 0); err != nil {
		return err
	}
	out, err := ingest.OpenOutbox(ctx, ingest.OutboxConfig{Brokers: p.Brokers, Security: p.Security, Topic: p.Topic,
		Create: p.Create, Window: p.Window, Chunk: p.Chunk,
		Patience: p.Patience, ClientID: "entropipe-produce", Log: p.Log, OnRetry: func() { p.stats.retries.Add(1) }})
	if err != nil {
		return err
	}
	err = p.send(ctx, src, out)
	// Items that were read before the source failed are sent, too. An outbox that has
	// failed itself closes at once.
	if failed := out.Close(); err == nil {
		return failed
	}
	return err
}

// send sends the items of src, or those of its inputs.
func (p *Producer) send(ctx context.Context, src Source, out *ingest.Outbox) error {
	var there *resumer
	if p.Resume != nil {
		var err error
		if there, err = p.openResumer(ctx); err != nil {
			return err
		}
		defer there.close()
	}
	if in, ok := src.(*Inputs); ok {
		return p.sendInputs(in, out, there)
	}
	_, err := p.pump(out.Context(), src, p.Play.Limit, 0, out, there)
	return err
}

func (p *Producer) timeline(src Source, limit int64) (*timeline, error) {
	epoch := p.Play.Epoch
	if epoch.IsZero() {
		epoch = DefaultEpoch
	}
	if y := epoch.Year(); y < 1700 || y > 2200 {
		return nil, fmt.Errorf("produce: epoch %s: want a year from 1700 to 2200", epoch.Format(time.RFC3339))
	}
	return &timeline{source: src, loops: max(1, p.Play.Loop), limit: limit, epoch: epoch.UnixNano(),
		names: p.Names}, nil
}

// pump moves items from a source to their partitions until ctx ends, and returns how many
// frames there were. turn is the partition of the first message without a key.
func (p *Producer) pump(ctx context.Context, src Source, limit int64, turn int, out *ingest.Outbox,
	there *resumer) (int64, error) {
	t, err := p.timeline(src, limit)
	if err != nil {
		return 0, err
	}
	pace := pacer{rate: p.Play.Rate}
	enc := p.encoder()
	passed := there.begin(ctx)
	var it Item
	for ; ; turn = (turn + 1) & math.MaxInt32 {
		err := t.next(&it)
		if err == io.EOF {
			return t.frames, passed.finished()
		}
		if err != nil {
			return t.frames, err
		}
		r := p.record(&it, turn)
		if is, err := passed.has(&it, out.PartitionOf(r)); err != nil {
			return t.frames, err
		} else if is {
			p.stats.there.Add(it.Frames())
			if ctx.Err() != nil {
				return t.frames, context.Cause(ctx)
			}
			continue
		}
		if err := pace.wait(ctx, it.TimeNs, it.Clock, it.Frames()); err != nil {
			return t.frames, context.Cause(ctx)
		}
		var buffer []byte
		if it.encoded == nil {
			buffer = out.Buffer()
		}
		if r.Value, r.Headers, err = enc.append(buffer, &it); err != nil {
			return t.frames, badItem(&it, err)
		}
		frames, points, bytes := it.Frames(), it.Points(), int64(len(r.Value))
		if err := out.Send(ctx, r, func() { p.stats.acknowledged(frames, points, bytes) }); err != nil {
			return t.frames, err
		}
	}
}

// badItem is the error of an item that cannot be a message.
func badItem(it *Item, err error) error {
	return fmt.Errorf("produce: %s, frame %d: %w", it.Sequence, it.Number, err)
}

// record returns a message for it, with its key and without its value. Messages without a
// key go to the partitions in turn.
func (p *Producer) record(it *Item, turn int) *schemas.Record {
	switch {
	case it.Sequences != nil || p.Key == KeyNone:
		return &schemas.Record{From: int32(turn)}
	case p.Key == KeyFrame:
		return &schemas.Record{Key: strconv.AppendInt([]byte(it.Sequence+"/"), it.Number, 10)}
	}
	return &schemas.Record{Key: []byte(it.Sequence)}
}

// counters are the Stats while they change.
type counters struct {
	messages, frames, points, bytes, retries, skipped, there atomic.Int64

	mu      sync.Mutex
	started time.Time
	ended   time.Time
}

func (c *counters) begin() {
	for _, n := range []*atomic.Int64{&c.messages, &c.frames, &c.points, &c.bytes, &c.retries, &c.skipped,
		&c.there} {
		n.Store(0)
	}
	c.mu.Lock()
	c.started, c.ended = time.Now(), time.Time{}
	c.mu.Unlock()
}

func (c *counters) end() {
	c.mu.Lock()
	c.ended = time.Now()
	c.mu.Unlock()
}

func (c *counters) acknowledged(frames, points, bytes int64) {
	c.messages.Add(1)
	c.frames.Add(frames)
	c.points.Add(points)
	c.bytes.Add(bytes)
}

func (c *counters) snapshot() Stats {
	s := Stats{
		Messages: c.messages.Load(), Frames: c.frames.Load(), Points: c.points.Load(),
		Bytes: c.bytes.Load(), Retries: c.retries.Load(), Skipped: c.skipped.Load(),
		There: c.there.Load(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.started.IsZero():
	case c.ended.IsZero():
		s.Elapsed = time.Since(c.started)
	default:
		s.Elapsed = c.ended.Sub(c.started)
	}
	return s
}

// encoder turns items into the values and headers of messages.
type encoder struct {
	schemas.Encoder
	prune    schemas.OpSet
	survive  Survivors // nil: clouds are sent whole
	points   schemas.Survivors
	sketches []schemas.Sketch
	strokes  []schemas.Stroke
}

func (p *Producer) encoder() *encoder {
	e := &encoder{Encoder: schemas.Encoder{Compression: p.Compression}}
	if p.Prune != nil {
		e.prune, e.survive = p.Prune.For, p.Prune.New()
	}
	return e
}

// encodedCloud is a sweep as a value, with the headers that tell how it was pruned.
type encodedCloud struct {
	value  []byte
	pruned []schemas.Header
	err    error
}

// cloud appends a sweep to dst.
func (e *encoder) cloud(dst []byte, c *codec.Points) (s encodedCloud) {
	if e.survive == nil {
		s.value, s.err = e.AppendPoints(dst, schemas.PointCloud{Points: *c})
		return s
	}
	keep, dropped := e.survive(c)
	p := schemas.Pruned{For: e.prune, NPoints: int32(c.Len()), NDropped: int32(dropped)}
	s.value, s.err = e.AppendPoints(dst, e.points.Of(&schemas.Frame{Points: *c}, keep))
	s.pruned = p.Headers()
	return s
}

// append appends the value of the message that it becomes to dst, and returns
// its headers beside. A sweep that was encoded before is its value, and dst is not used.
func (e *encoder) append(dst []byte, it *Item) (value []byte, hs []schemas.Header, err error) {
	switch {
	case it.Sequences != nil && it.Sequences[0].IsText:
		value, err = e.AppendText(dst, it.Sequences)
		return value, headers(it, schemas.SchemaText), err
	case it.Sequences != nil:
		var v schemas.Vocabulary
		if it.Vocabulary != nil {
			v = *it.Vocabulary
		}
		value, err = e.AppendTokens(dst, it.Sequences, v)
		return value, headers(it, schemas.SchemaTokens), err
	case it.Drawings != nil:
		e.sketches, e.strokes = e.sketches[:0], e.strokes[:0]
		for i := range it.Drawings {
			e.sketches = append(e.sketches, e.sketch(&it.Drawings[i]))
		}
		value, err = e.AppendSketches(dst, e.sketches)
		return value, headers(it, schemas.SchemaSketches), err
	}
	s := it.encoded
	if s == nil {
		own := e.cloud(dst, &it.Cloud)
		s = &own
	}
	return s.value, append(headers(it, schemas.SchemaPoints), s.pruned...), s.err
}

// sketch is d as schemas wants it: its strokes are views of d.
func (e *encoder) sketch(d *Drawing) schemas.Sketch {
	first, from := len(e.strokes), int32(0)
	for _, to := range d.Ends {
		s := schemas.Stroke{X: d.X[from:to], Y: d.Y[from:to]}
		if d.T != nil {
			s.T = d.T[from:to]
		}
		e.strokes = append(e.strokes, s)
		from = to
	}
	return schemas.Sketch{
		Drawing: schemas.Drawing{ID: d.ID, Label: d.Label},
		TimeNs:  d.TimeNs,
		Strokes: e.strokes[first:len(e.strokes):len(e.strokes)],
	}
}

func headers(it *Item, schema string) []schemas.Header {
	key := schemas.FrameKey{Dataset: it.Dataset, Sequence: it.Sequence, Sensor: it.Sensor,
		FrameID: it.Number, TimeNs: it.TimeNs, Pose: it.Pose}
	return schemas.Headers(key, schema, "/produce/"+it.Dataset)
}
