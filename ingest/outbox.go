package ingest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"entropipe/schemas"

	kafka "github.com/segmentio/kafka-go"
)

// OutboxConfig configures an Outbox. Brokers and Topic are required.
type OutboxConfig struct {
	Brokers  []string
	Security Security // encryption and login for connections to the brokers
	Topic    string
	// Create describes the topic that is created if Topic does not exist; a zero
	// MaxMessageBytes means 16 MiB, zero Partitions 4.
	Create TopicSpec
	// Window bounds the bytes that are sent and not acknowledged; 0: 32 MiB.
	Window int64
	// Chunk parts records into chunks of at most so many bytes of the value: ChunkAuto parts
	// those that are larger than the topic takes, ChunkOff none.
	Chunk int64
	// Patience is the time after which brokers that are away are an error; 0: three
	// minutes.
	Patience time.Duration
	ClientID string       // name in the brokers' logs and quotas; empty: entropipe
	Log      *slog.Logger // nil: no log
	// Complaints are shared with a Consumer of the same brokers; nil: the Outbox's own.
	Complaints *Complaints
	// OnRetry, if not nil, is called for every request that is sent again.
	OnRetry func()

	ending time.Duration // for the chunks of a frame that has begun, when all ends; 0: five seconds
}

// Outbox sends records to a topic, with a goroutine for every partition. Any
// goroutine may call its methods, but for the two that end it.
//
// Delivery is at least once: a record counts when all replicas in sync have it,
// and a request whose answer was lost is sent again, which may make a second
// record. Records of one key stay in order: a partition has one request under
// way at a time, and it is repeated before the next one.
type Outbox struct {
	cfg        OutboxConfig
	brokers    string
	limit      int64 // bytes of the largest message, or batch of messages
	partitions []int
	window     *window

	client *kafka.Client
	conns  connections

	// ctx ends when OpenOutbox's does or a sender fails; finish when no frame is left whose
	// chunks are sent in part; hard a moment later, so that requests under way get their
	// answers.
	ctx    context.Context
	stop   context.CancelCauseFunc
	finish context.Context
	hard   context.Context
	kill   context.CancelFunc
	frames frames

	transactions *transactions // nil: records are sent outside of any

	turn   chan struct{} // holds a token while nobody is in Send
	queues map[int]chan message
	wg     sync.WaitGroup
}

// Values of OutboxConfig.Chunk.
const (
	ChunkOff  = 0
	ChunkAuto = -1
)

const (
	defaultWindow          = 32 << 20
	defaultPatience        = 3 * time.Minute
	defaultEnding          = 5 * time.Second
	defaultPartitions      = 4
	defaultMaxMessageBytes = 16 << 20
)

// OpenOutbox makes sure that the topic is there and learns its partitions and
// its limit. When ctx ends, so does everything that is under way, but for frames that are sent
// in chunks and have begun: these may take some seconds more.
func OpenOutbox(ctx context.Context, cfg OutboxConfig) (*Outbox, error) {
	cfg.setDefaults()
	var err error
	if cfg.Brokers, err = Addresses(cfg.Brokers); err != nil {
		return nil, fmt.Errorf("brokers: %w", err)
	}
	o := &Outbox{cfg: cfg, brokers: strings.Join(cfg.Brokers, ","), window: newWindow(cfg.Window),
		queues: map[int]chan message{}, turn: make(chan struct{}, 1)}
	o.turn <- struct{}{}
	if o.limit, err = ensureTopic(ctx, &cfg); err != nil {
		return nil, err
	}
	o.open(ctx)
	if err := o.findPartitions(); err != nil {
		o.kill()
		return nil, errors.Join(err, o.Abort())
	}
	return o, nil
}

func (c *OutboxConfig) setDefaults() {
	if c.Create.Partitions == 0 {
		c.Create.Partitions = defaultPartitions
	}
	if c.Create.MaxMessageBytes == 0 {
		c.Create.MaxMessageBytes = defaultMaxMessageBytes
	}
	if c.Window <= 0 {
		c.Window = defaultWindow
	}
	if c.Patience <= 0 {
		c.Patience = defaultPatience
	}
	if c.ending <= 0 {
		c.ending = defaultEnding
	}
	if c.ClientID == "" {
		c.ClientID = defaultClientID
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Complaints == nil {
		c.Complaints = new(Complaints)
	}
	if c.OnRetry == nil {
		c.OnRetry = func() {}
	}
}

// Context returns a context that ends when the outbox has failed; its cause is the
// reason.
func (o *Outbox) Context() context.Context { return o.ctx }

// Done returns a channel that is closed when the outbox has failed; Err then returns
// the reason.
func (o *Outbox) Done() <-chan struct{} { return o.ctx.Done() }

// Err returns why the outbox has failed, or nil if it has not.
func (o *Outbox) Err() error { return context.Cause(o.ctx) }

// Buffer returns an empty slice for a value, with the memory of one that has
// been sent if some is left over.
func (o *Outbox) Buffer() []byte { return o.window.buffer() }

// ensureTopic creates the topic unless it exists, and returns its limit. A
// topic with a lower limit than ours is good enough for small frames: whether
// a message fits is seen when it is there, by the brokers if they do not tell
// their limit.
func ensureTopic(ctx context.Context, c *OutboxConfig) (int64, error) {
	err := EnsureTopic(ctx, c.Brokers, c.Security, c.Topic, c.Create)
	var low *LimitError
	if errors.As(err, &low) {
		return low.Limit, nil
	}
	if errors.Is(err, ErrNoBroker) {
		return 0, err
	}
	t, failed := Describe(ctx, c.Brokers, c.Security, c.Topic)
	switch {
	case failed != nil && err == nil:
		return 0, failed
	case failed != nil:
		return 0, err
	case t.MaxMessageBytes < 0:
		return math.MaxInt64, nil
	}
	return t.MaxMessageBytes, nil
}

func (o *Outbox) open(ctx context.Context) {
	o.ctx, o.stop = context.WithCancelCause(ctx)
	o.hard, o.kill = context.WithCancel(context.WithoutCancel(ctx))
	o.finish, o.frames.finished = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(o.ctx, func() { o.frames.stop(o.cfg.ending) })
	context.AfterFunc(o.finish, func() { time.AfterFunc(grace, o.kill) })
	o.client = &kafka.Client{
		Addr: kafka.TCP(strings.Split(o.brokers, ",")...),
		Transport: &discreet{security: o.cfg.Security, Transport: &kafka.Transport{
			ClientID:       o.cfg.ClientID,
			Dial:           o.conns.dial,
			MetadataTopics: []string{o.cfg.Topic},
			MetadataTTL:    2 * time.Second,
			Context:        o.hard,
			TLS:            o.cfg.Security.TLS,
			SASL:           o.cfg.Security.SASL,
		}},
	}
}

// findPartitions waits until the topic, perhaps just made, has its leaders.
func (o *Outbox) findPartitions() error {
	ctx, cancel := context.WithTimeout(o.ctx, 30*time.Second)
	defer cancel()
	for {
		r, err := o.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{o.cfg.Topic}})
		if err == nil && len(r.Topics) == 1 {
			if err = r.Topics[0].Error; err == nil && len(r.Topics[0].Partitions) > 0 {
				for i := range r.Topics[0].Partitions {
					o.partitions = append(o.partitions, i)
				}
				return nil
			}
		}
		if sleep(ctx, firstPause) != nil {
			if o.ctx.Err() != nil {
				return context.Cause(o.ctx)
			}
			return fmt.Errorf("the brokers at %s do not name the partitions of topic %s: %w",
				o.brokers, o.cfg.Topic, err)
		}
	}
}

// Send hands r, which it keeps, to the sender of its partition: the one of its
// key, or that of r.From without one. It waits while too many bytes are on their
// way. acked is called once all replicas in sync have it, from any goroutine; if
// the outbox fails first, never.
//
// A record may be sent as several, its chunks (OutboxConfig.Chunk): acked is called once all
// are acknowledged. Records of other calls may come between them. Once a chunk is on its way the
// others follow, even if ctx or the outbox's ends, for five seconds at most; a frame that is cut
// then is logged by Close. Send may be called from any goroutine.
func (o *Outbox) Send(ctx context.Context, r *schemas.Record, acked func()) error {
	if chunks := o.chunks(r); len(chunks) > 1 {
		return o.sendChunks(ctx, chunks, acked)
	}
	return o.send(ctx, o.ctx, message{Record: r, acked: acked})
}

// chunks parts r, if it is too large.
func (o *Outbox) chunks(r *schemas.Record) []*schemas.Record {
	m := message{Record: r}
	limit := o.cfg.Chunk
	switch size := m.size() + batchOverhead; {
	case limit == ChunkOff, limit == ChunkAuto && size <= o.limit:
		return []*schemas.Record{r}
	case limit == ChunkAuto:
		limit = math.MaxInt64
	}
	var id [8]byte
	rand.Read(id[:])
	return schemas.ChunksOf(r, min(limit, schemas.ChunkLimit(r, o.limit)), hex.EncodeToString(id[:]))
}

// send sends one record as it is, unless ctx or end, which is of the outbox, ends before.
func (o *Outbox) send(ctx, end context.Context, m message) error {
	if size := m.size() + batchOverhead; size > o.limit {
		return o.tooLarge(&m, size)
	}
	select {
	case <-o.turn:
		defer func() { o.turn <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if end.Err() != nil {
		return o.Err()
	}
	if err := o.window.acquire(ctx, end, int64(len(m.Value))); err != nil {
		return cmp.Or(o.Err(), err)
	}
	select {
	case o.queue(m.Record) <- m:
		return nil
	case <-end.Done():
		return o.Err()
	case <-ctx.Done():
		o.window.release(int64(len(m.Value)))
		return context.Cause(ctx)
	}
}

// PartitionOf returns the partition that Send sends r to.
func (o *Outbox) PartitionOf(r *schemas.Record) int {
	if len(r.Key) > 0 {
		return (&kafka.Murmur2Balancer{Consistent: true}).Balance(kafka.Message{Key: r.Key}, o.partitions...)
	}
	return o.partitions[int(r.From)%len(o.partitions)]
}

// queue returns where the sender of r's partition takes records from.
func (o *Outbox) queue(r *schemas.Record) chan<- message {
	partition := o.PartitionOf(r)
	queue := o.queues[partition]
	if queue == nil {
		queue = make(chan message, queueSize)
		o.queues[partition] = queue
		o.wg.Go(func() { o.sender(partition, queue) })
	}
	return queue
}

func (o *Outbox) tooLarge(m *message, size int64) error {
	e := &TooLargeError{Topic: o.cfg.Topic, Sequence: string(m.Key), Size: size, Limit: o.limit, Brokers: o.brokers}
	what, number := "frame ", ""
	for _, h := range m.Headers {
		switch h.Key {
		case schemas.HeaderFrameID:
			number = string(h.Value)
		case schemas.HeaderSequence: // messages of texts have no key
			e.Sequence = string(h.Value)
		case schemas.HeaderSchema:
			switch string(h.Value) {
			case schemas.SchemaText:
				what = "text "
			case schemas.SchemaTokens:
				what = "sequence "
			}
		}
	}
	e.Frame = what + number
	return e
}

// Abort ends all goroutines and connections without waiting for acknowledgements, but for some
// seconds for those of frames whose chunks are in the topic in part. Every Send must have returned.
// The error is the one that the outbox failed with before, if it did.
func (o *Outbox) Abort() error {
	o.stop(errStopped)
	return o.Close()
}

// Close waits until every record is acknowledged, and ends all goroutines and
// connections. Every Send must have returned. The error is the one that the outbox
// failed with, if it did.
func (o *Outbox) Close() error {
	for _, q := range o.queues {
		close(q)
	}
	o.wg.Wait()
	o.warnOfCuts()
	err := context.Cause(o.ctx)
	o.stop(errStopped)
	o.frames.finished()
	o.kill()
	o.client.Transport.(*discreet).CloseIdleConnections()
	o.conns.close()
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// errStopped is the cause of ctx when nothing failed here.
var errStopped = errors.New("stopped")
