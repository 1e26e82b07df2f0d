package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"entropipe/ingest"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// outbox sends messages: a goroutine for every partition that gets some.
type outbox struct {
	topic      string
	brokers    string
	limit      int64 // of a message, or of a batch of them
	partitions []int
	patience   time.Duration
	log        *slog.Logger
	stats      *counters
	window     *window

	client *kafka.Client
	conns  connections

	// ctx ends when Run's does or a sender fails; hard a moment later, so that
	// requests under way get their answers.
	ctx  context.Context
	stop context.CancelCauseFunc
	hard context.Context
	kill context.CancelFunc

	queues map[int]chan message
	wg     sync.WaitGroup
}

const (
	// grace is how long a request under way may take when everything ends.
	grace = time.Second
	// requestTime is what a request may take, beside a second a megabyte.
	requestTime = 15 * time.Second
	// batchBytes is how large a batch of small messages grows.
	batchBytes = 1 << 20
	queueSize  = 256
	firstPause = 100 * time.Millisecond
	mostPause  = 2 * time.Second
	logEvery   = 10 * time.Second
)

// connect makes sure that the topic is there and learns its partitions and its
// limit.
func (p *Producer) connect(ctx context.Context) (*outbox, error) {
	spec := p.Create
	if spec.Partitions == 0 {
		spec.Partitions = defaultPartitions
	}
	if spec.MaxMessageBytes == 0 {
		spec.MaxMessageBytes = defaultMaxMessageBytes
	}
	o := &outbox{
		topic: p.Topic, brokers: strings.Join(p.Brokers, ","), patience: p.Patience,
		log: p.Log, stats: &p.stats, window: newWindow(p.Window), queues: map[int]chan message{},
	}
	if p.Window <= 0 {
		o.window.size = defaultWindow
	}
	if o.patience <= 0 {
		o.patience = defaultPatience
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if o.limit, err = ensureTopic(ctx, p.Brokers, p.Topic, spec); err != nil {
		return nil, err
	}
	o.open(ctx)
	if err := o.findPartitions(); err != nil {
		o.kill()
		return nil, errors.Join(err, o.close(false))
	}
	return o, nil
}

// ensureTopic creates the topic unless it exists, and returns its limit. A
// topic with a lower limit than ours is good enough for small frames: whether
// a message fits is seen when it is there, by the brokers if they do not tell
// their limit.
func ensureTopic(ctx context.Context, brokers []string, topic string, spec ingest.TopicSpec) (int64, error) {
	err := ingest.EnsureTopic(ctx, brokers, topic, spec)
	var low *ingest.LimitError
	if errors.As(err, &low) {
		return low.Limit, nil
	}
	if errors.Is(err, ingest.ErrNoBroker) {
		return 0, err
	}
	t, failed := ingest.Describe(ctx, brokers, topic)
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

func (o *outbox) open(ctx context.Context) {
	o.ctx, o.stop = context.WithCancelCause(ctx)
	o.hard, o.kill = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(o.ctx, func() { time.AfterFunc(grace, o.kill) })
	o.client = &kafka.Client{
		Addr: kafka.TCP(strings.Split(o.brokers, ",")...),
		Transport: &kafka.Transport{
			ClientID:       "entropipe-produce",
			Dial:           o.conns.dial,
			MetadataTopics: []string{o.topic},
			MetadataTTL:    2 * time.Second,
			Context:        o.hard,
		},
	}
}

// findPartitions waits until the topic, perhaps just made, has its leaders.
func (o *outbox) findPartitions() error {
	ctx, cancel := context.WithTimeout(o.ctx, 30*time.Second)
	defer cancel()
	for {
		r, err := o.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{o.topic}})
		if err == nil && len(r.Topics) == 1 {
			if err = r.Topics[0].Error; err == nil && len(r.Topics[0].Partitions) > 0 {
				for i := range r.Topics[0].Partitions {
					o.partitions = append(o.partitions, i)
				}
				return nil
			}
		}
		if pause(ctx, firstPause) != nil {
			if o.ctx.Err() != nil {
				return context.Cause(o.ctx)
			}
			return fmt.Errorf("produce: the brokers at %s do not name the partitions of topic %s: %w", o.brokers, o.topic, err)
		}
	}
}

// send hands m to the sender of its partition. It waits while too many bytes
// are on their way. Here is where a message that is too large could become
// several, each with a chunk of the frame.
func (o *outbox) send(m message) error {
	if size := m.size() + batchOverhead; size > o.limit {
		return o.tooLarge(&m, size)
	}
	if err := o.window.acquire(o.ctx, int64(len(m.value))); err != nil {
		return err
	}
	partition := (&kafka.Murmur2Balancer{Consistent: true}).Balance(kafka.Message{Key: m.key}, o.partitions...)
	queue := o.queues[partition]
	if queue == nil {
		queue = make(chan message, queueSize)
		o.queues[partition] = queue
		o.wg.Go(func() { o.sender(partition, queue) })
	}
	select {
	case queue <- m:
		return nil
	case <-o.ctx.Done():
		return context.Cause(o.ctx)
	}
}

func (o *outbox) tooLarge(m *message, size int64) error {
	frame := ""
	for _, h := range m.headers {
		if h.Key == "frame-id" {
			frame = "frame " + string(h.Value)
		}
	}
	return &TooLargeError{Topic: o.topic, Sequence: string(m.key), Frame: frame, Size: size, Limit: o.limit, Brokers: o.brokers}
}

// close waits until everything is acknowledged, if drain, or at once; and ends
// all goroutines and connections.
func (o *outbox) close(drain bool) error {
	if !drain {
		o.stop(errStopped)
	}
	for _, q := range o.queues {
		close(q)
	}
	o.wg.Wait()
	err := context.Cause(o.ctx)
	o.stop(errStopped)
	o.kill()
	o.client.Transport.(*kafka.Transport).CloseIdleConnections()
	o.conns.close()
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// errStopped is the cause of ctx when nothing failed here.
var errStopped = errors.New("stopped")

// sender sends the messages of one partition, in order.
func (o *outbox) sender(partition int, queue <-chan message) {
	var batch []message
	var carry *message
	for {
		batch, carry = o.collect(batch[:0], carry, queue)
		if len(batch) == 0 {
			return
		}
		if err := o.deliver(partition, batch); err != nil {
			o.stop(err)
			return
		}
		o.stats.acknowledged(batch)
		for i := range batch {
			o.window.release(int64(len(batch[i].value)))
			if !batch[i].tried {
				o.window.recycle(batch[i].value)
			}
			batch[i] = message{}
		}
	}
}

// collect waits for a message, adds what is queued already as far as it fits
// into a batch, and returns the first that does not. An empty batch: it is over.
func (o *outbox) collect(batch []message, carry *message, queue <-chan message) ([]message, *message) {
	if o.ctx.Err() != nil {
		return nil, nil
	}
	if carry == nil {
		select {
		case m, ok := <-queue:
			if !ok {
				return nil, nil
			}
			carry = &m
		case <-o.ctx.Done():
			return nil, nil
		}
	}
	batch = append(batch, *carry)
	total := batchOverhead + carry.size()
	for total < batchBytes {
		select {
		case m, ok := <-queue:
			if !ok {
				return batch, nil
			}
			if total += m.size(); total > min(batchBytes, o.limit) {
				return batch, &m
			}
			batch = append(batch, m)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// deliver sends a batch until it is acknowledged, patience ends, or an answer
// says that it never will be.
func (o *outbox) deliver(partition int, batch []message) error {
	sent := time.Now() // Kafka's timestamp, the same in every attempt
	var failing, logged time.Time
	for wait := firstPause; ; wait = min(2*wait, mostPause) {
		err := o.produce(partition, batch, sent)
		if err == nil {
			return nil
		}
		if o.ctx.Err() != nil {
			return context.Cause(o.ctx)
		}
		for i := range batch {
			batch[i].tried = true
		}
		if err := o.permanent(err, batch); err != nil {
			return err
		}
		now := time.Now()
		if failing.IsZero() {
			failing = now
		}
		if now.Sub(failing) > o.patience {
			return fmt.Errorf("produce: %s/%d: the brokers at %s took nothing for %s: %w", o.topic, partition, o.brokers, o.patience, err)
		}
		if now.Sub(logged) > logEvery {
			logged = now
			o.log.Warn("brokers do not take messages; trying again", "topic", o.topic, "partition", partition, "for", o.patience-now.Sub(failing), "error", err)
		}
		o.stats.retries.Add(1)
		if pause(o.ctx, wait) != nil {
			return context.Cause(o.ctx)
		}
	}
}

// permanent returns what to report if sending again cannot help.
func (o *outbox) permanent(err error, batch []message) error {
	var code kafka.Error
	if !errors.As(err, &code) || code.Temporary() || code == kafka.Unknown {
		return nil
	}
	if code == kafka.MessageSizeTooLarge {
		size := int64(batchOverhead)
		for i := range batch {
			size += batch[i].size()
		}
		return fmt.Errorf("%w (the brokers refused it)", o.tooLarge(&batch[0], size))
	}
	return fmt.Errorf("produce: topic %s: %w", o.topic, err)
}

// produce makes one attempt.
func (o *outbox) produce(partition int, batch []message, sent time.Time) error {
	records := make([]kafka.Record, len(batch))
	bytes := 0
	for i := range batch {
		m := &batch[i]
		records[i] = kafka.Record{Time: sent, Key: kafka.NewBytes(m.key), Value: kafka.NewBytes(m.value), Headers: m.headers}
		bytes += len(m.value)
	}
	ctx, cancel := context.WithTimeout(o.hard, requestTime+time.Duration(bytes>>20)*time.Second)
	defer cancel()
	r, err := o.client.Produce(ctx, &kafka.ProduceRequest{
		Topic:        o.topic,
		Partition:    partition,
		RequiredAcks: kafka.RequireAll,
		Records:      protocol.NewRecordReader(records...),
	})
	if err != nil {
		return err
	}
	return r.Error
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
