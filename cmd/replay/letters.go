package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/schemas"
)

// letterSource is a topic of dead letters.
type letterSource struct {
	*Command
	list  *ingest.Lookup // lists the letters
	chunk *ingest.Lookup // reads letters that come in chunks
	from  map[int32]int64
	steps atomic.Int64
}

func openLetters(e *command.Env, c *Command, kafka cluster) (source, error) {
	list, err := kafka.open(e.Ctx, c.From)
	if err != nil {
		return nil, err
	}
	s := &letterSource{Command: c, list: list, from: map[int32]int64{}}
	if s.chunk, err = kafka.open(e.Ctx, c.From); err != nil {
		list.Close()
		return nil, err
	}
	for _, p := range list.Partitions {
		s.from[p.ID] = p.Start
	}
	if !c.Since.IsZero() {
		if s.from, err = ingest.OffsetsAt(e.Ctx, kafka.brokers, kafka.security, &list.Topic, c.Since); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *letterSource) close() {
	s.list.Close()
	s.chunk.Close()
}

func (s *letterSource) done() int64 { return s.steps.Load() }

func (s *letterSource) state(context.Context, *ingest.Topic) (*state, error) { return nil, nil }

// extent takes the times of the first letters: those behind them are younger.
func (s *letterSource) extent(ctx context.Context) (steps int64, oldest time.Time, err error) {
	for _, p := range s.list.Partitions {
		steps += max(p.Stable-s.from[p.ID], 0)
		err = s.list.Each(ctx, p.ID, s.from[p.ID], p.Stable, func(m *schemas.Message) (bool, error) {
			if oldest.IsZero() || m.Time.Before(oldest) {
				oldest = m.Time
			}
			return false, nil
		})
		if err != nil {
			return 0, oldest, err
		}
	}
	return steps, oldest, nil
}

func (s *letterSource) each(ctx context.Context, use func(*candidate) error) error {
	s.steps.Store(0)
	before := int64(0)
	for _, p := range s.list.Partitions {
		from := s.from[p.ID]
		err := eachLetter(ctx, s.list, p.ID, from, p.Stable, func(m *schemas.Message, l *schemas.DeadLetter) error {
			s.steps.Store(before + m.Offset - from + 1)
			if len(s.Reason) > 0 && !slices.Contains(s.Reason, l.Reason) || m.Time.Before(s.Since) {
				return nil
			}
			return use(s.candidate(m, l))
		})
		if err != nil {
			return err
		}
		before += max(p.Stable-from, 0)
		s.steps.Store(before)
	}
	return nil
}

// candidate returns the message of a letter, of which m is the record or the first chunk.
func (s *letterSource) candidate(m *schemas.Message, l *schemas.DeadLetter) *candidate {
	_, count, _ := schemas.ReplayOf(m.Headers)
	c := &candidate{id: l.DeadLetterID, stage: l.Stage, reason: l.Reason, count: count, partial: l.Index >= 0}
	c.fetch = func(ctx context.Context) (*schemas.Message, error) {
		if l.ValueBytes >= 0 {
			return nil, &goneError{"its letter has no value; replay of the output reads it from its topic"}
		}
		if _, chunk, _ := schemas.ChunkOf(m); chunk {
			return recordAt(ctx, s.chunk, m.Partition, m.Offset, int64(s.ChunkWindow))
		}
		return m.Clone(), nil
	}
	return c
}

// eachLetter gives use the letters of a partition: the record, or the first chunk. Records that
// are no letters pass.
func eachLetter(ctx context.Context, log *ingest.Lookup, partition int32, from, to int64,
	use func(*schemas.Message, *schemas.DeadLetter) error) error {
	chunks := map[string]struct{}{}
	return log.Each(ctx, partition, from, to, func(m *schemas.Message) (bool, error) {
		if c, chunk, err := schemas.ChunkOf(m); chunk && err == nil {
			if _, seen := chunks[c.ID]; seen {
				return true, nil
			}
			chunks[c.ID] = struct{}{}
		}
		l, err := schemas.ParseDeadLetter(m.Headers)
		if errors.Is(err, schemas.ErrNoDeadLetter) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s/%d@%d: %w", log.Name, m.Partition, m.Offset, err)
		}
		return true, use(m, &l)
	})
}

// letterIndex finds the letters of a topic by their ids. A nil index has nothing to close.
type letterIndex struct {
	log *ingest.Lookup
	at  map[key]place
}

// place is where a letter begins.
type place struct {
	partition int32
	offset    int64
}

// readLetterIndex reads a topic of dead letters. Memory: about 60 bytes a letter.
func readLetterIndex(ctx context.Context, kafka cluster, topic string) (*letterIndex, error) {
	log, err := kafka.open(ctx, topic)
	if err != nil {
		return nil, err
	}
	index := &letterIndex{log: log, at: map[key]place{}}
	for _, p := range log.Partitions {
		err := eachLetter(ctx, log, p.ID, p.Start, p.Stable, func(m *schemas.Message, l *schemas.DeadLetter) error {
			if l.ValueBytes < 0 {
				index.at[keyOf(l.DeadLetterID)] = place{m.Partition, m.Offset}
			}
			return nil
		})
		if err != nil {
			log.Close()
			return nil, err
		}
	}
	return index, nil
}

func (x *letterIndex) close() {
	if x != nil {
		x.log.Close()
	}
}

// fetch returns the message of a letter.
func (x *letterIndex) fetch(ctx context.Context, id schemas.DeadLetterID, window int64) (*schemas.Message, error) {
	at, ok := x.at[keyOf(id)]
	if !ok {
		return nil, &goneError{fmt.Sprintf("topic %s has no letter with its value", x.log.Name)}
	}
	return recordAt(ctx, x.log, at.partition, at.offset, window)
}
