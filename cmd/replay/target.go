package replay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/schemas"
)

type logger = *slog.Logger

const (
	// fenceName is followed by the topic: one process at a time sends replays to a topic.
	fenceName = "entropipe-replay-"
	// patience is how long brokers may take nothing.
	patience = time.Minute
	// clockMargin is how much clocks of the hosts that refused, and that sent again, may differ.
	clockMargin = 2 * time.Hour
)

// key identifies a message: a hash of its id without the index. An output has one letter a
// message, whatever its index.
type key [16]byte

func keyOf(id schemas.DeadLetterID) key {
	id.Index = -1
	sum := sha256.Sum256([]byte(id.String()))
	return key(sum[:16])
}

// target is the topic that messages are sent to.
type target struct {
	ingest.Topic // as it was after the fence
	kafka        cluster
	out          *ingest.Outbox // nil: a dry run
	state        *state         // nil: nothing is kept
	there        map[key]struct{}
	read         atomic.Int64 // records of the topic
}

// openTarget fences earlier replays to the topic, and reads what they have sent. No message was
// refused before oldest.
func openTarget(e *command.Env, r *replayer, oldest time.Time) (*target, error) {
	t := &target{kafka: r.kafka, there: map[key]struct{}{}}
	first, err := ingest.Describe(e.Ctx, r.Brokers, r.kafka.security, r.To)
	if errors.Is(err, ingest.ErrNoTopic) {
		return nil, fmt.Errorf("--to %s: %w", r.To, err)
	}
	if err != nil {
		return nil, err
	}
	if !r.DryRun {
		if err := t.fence(e, r); err != nil {
			t.close()
			return nil, err
		}
	}
	err = t.open(e, r, oldest, first.ID)
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// fence makes this process the one that sends replays to the topic.
func (t *target) fence(e *command.Env, r *replayer) (err error) {
	t.out, err = ingest.OpenOutbox(e.Ctx, ingest.OutboxConfig{Brokers: r.Brokers, Security: r.kafka.security,
		Topic: r.To, Chunk: ingest.ChunkAuto, Patience: patience, ClientID: "entropipe-replay", Log: e.Log})
	if err != nil {
		return err
	}
	return t.out.Fence(e.Ctx, fenceName+r.To)
}

// open reads which messages the topic has.
func (t *target) open(e *command.Env, r *replayer, oldest time.Time, id schemas.TopicID) error {
	log, err := t.kafka.open(e.Ctx, r.To)
	if err != nil {
		return err
	}
	defer log.Close()
	t.Topic = log.Topic
	if t.ID != id {
		return errMoved(r.To)
	}
	if t.state, err = r.source.state(e.Ctx, &t.Topic); err != nil {
		return err
	}
	from, err := t.begins(e.Ctx, oldest)
	if err != nil {
		return err
	}
	if t.state != nil {
		for k := range t.state.known {
			t.there[k] = struct{}{}
		}
	}
	show := command.StartProgress(e.Stderr, e.Log, "records of "+r.To, 0,
		func() (int64, string) { return t.read.Load(), "read, for what was sent before" })
	defer show.Stop()
	earliest := map[int32]int64{}
	for _, p := range t.Partitions {
		earliest[p.ID] = p.End
		if err := t.scan(e.Ctx, log, p.ID, from[p.ID], p.End, func(m *schemas.Message) {
			earliest[p.ID] = min(earliest[p.ID], m.Offset)
		}); err != nil {
			return err
		}
	}
	if t.state == nil || r.DryRun {
		return nil
	}
	return t.state.begin(e.Ctx, earliest)
}

// begins returns where each partition is read from.
func (t *target) begins(ctx context.Context, oldest time.Time) (map[int32]int64, error) {
	from := map[int32]int64{}
	for _, p := range t.Partitions {
		from[p.ID] = p.End
	}
	if (t.state == nil || !t.state.begun) && !oldest.IsZero() {
		at, err := ingest.OffsetsAt(ctx, t.kafka.brokers, t.kafka.security, &t.Topic, oldest.Add(-clockMargin))
		if err != nil {
			return nil, err
		}
		from = at
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if t.state != nil && t.state.begun {
			from[p.ID] = min(from[p.ID], t.state.starts[p.ID])
		}
		from[p.ID] = max(from[p.ID], p.Start)
	}
	return from, nil
}

// scan notes the messages that records of a partition send again, and calls use for each such
// record, also for each chunk.
func (t *target) scan(ctx context.Context, log *ingest.Lookup, id int32, from, to int64,
	use func(m *schemas.Message)) error {
	for {
		err := log.Each(ctx, id, from, to, func(m *schemas.Message) (bool, error) {
			t.read.Add(1)
			of, _, ok := schemas.ReplayOf(m.Headers)
			if !ok {
				return true, nil
			}
			k := keyOf(of)
			t.there[k] = struct{}{}
			if t.state != nil && of.Output == t.state.output {
				t.state.saw(of, k, id, m.Offset)
			}
			use(m)
			return true, nil
		})
		gone := (*ingest.GoneError)(nil)
		if err == nil || !errors.As(err, &gone) {
			return err
		}
		now, failed := ingest.Describe(ctx, t.kafka.brokers, t.kafka.security, t.Name)
		if failed != nil || now.ID != t.ID {
			return errMoved(t.Name)
		}
		start := from
		for _, p := range now.Partitions {
			if p.ID == id {
				start = p.Start
			}
		}
		if start <= from { // nothing was deleted meanwhile
			return err
		}
		if from = start; from >= to {
			return nil
		}
	}
}

// has tells whether the topic has a message.
func (t *target) has(id schemas.DeadLetterID) bool {
	_, is := t.there[keyOf(id)]
	return is
}

// note keeps a second candidate of the same message from being sent.
func (t *target) note(id schemas.DeadLetterID) { t.there[keyOf(id)] = struct{}{} }

func errMoved(topic string) error {
	return fmt.Errorf("topic %s was deleted meanwhile, with what was sent to it", topic)
}

// moved returns an error if the topic is another one than before, or gone.
func (t *target) moved(ctx context.Context) error {
	now, err := ingest.Describe(ctx, t.kafka.brokers, t.kafka.security, t.Name)
	if errors.Is(err, ingest.ErrNoTopic) || err == nil && now.ID != t.ID {
		return errMoved(t.Name)
	}
	return nil
}

// finish makes sure that what was sent is there, and keeps it in the records of the output.
func (t *target) finish(ctx context.Context) error {
	if t.out == nil {
		return nil
	}
	err := t.out.Close()
	t.out = nil
	if err != nil {
		return err
	}
	log, err := t.kafka.open(ctx, t.Name)
	if err != nil {
		return err
	}
	defer log.Close()
	if log.ID != t.ID {
		return errMoved(t.Name)
	}
	if t.state == nil {
		return nil
	}
	for _, p := range log.Partitions {
		from := int64(0)
		for _, before := range t.Partitions {
			if before.ID == p.ID {
				from = before.End
			}
		}
		if err := t.scan(ctx, log, p.ID, max(from, p.Start), p.End, func(*schemas.Message) {}); err != nil {
			return err
		}
	}
	return t.state.keep(ctx)
}

func (t *target) close() {
	if t.out != nil {
		t.out.Abort()
	}
}
