package replay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"entropipe/cmd/command"
	"entropipe/ingest"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// outputSource is table rejects of an output.
type outputSource struct {
	*Command
	kafka   cluster
	store   command.Store
	uuid    string
	topics  map[string]*sourceTopic
	letters *letterIndex // nil: not read yet
	steps   atomic.Int64
}

// sourceTopic is the topic that an output has read.
type sourceTopic struct {
	log      *ingest.Lookup // nil: gone says why
	gone     string
	accepted []string // ids that the output may continue with
}

func openOutput(e *command.Env, c *Command, kafka cluster) (source, error) {
	store, err := command.OpenOutput(e.Ctx, c.From, &c.Bucket)
	if err != nil {
		return nil, err
	}
	found, err := read.Identify(e.Ctx, store)
	if err == nil && found.Format != record.FormatVersion {
		err = &record.FormatError{Name: record.StoreFile, Format: found.Format}
	}
	if err != nil {
		store.Close()
		return nil, err
	}
	// A message has one identity in an output and in its compaction, so that neither sends again
	// what the other has sent.
	return &outputSource{Command: c, kafka: kafka, store: store, uuid: cmp.Or(found.Compacts, found.Store),
		topics: map[string]*sourceTopic{}}, nil
}

func (s *outputSource) close() {
	for _, t := range s.topics {
		if t.log != nil {
			t.log.Close()
		}
	}
	s.letters.close()
	s.store.Close()
}

func (s *outputSource) done() int64 { return s.steps.Load() }

func (s *outputSource) extent(ctx context.Context) (int64, time.Time, error) {
	return read.CountRefused(ctx, s.store, s.query())
}

func (s *outputSource) query() read.RefusedQuery {
	return read.RefusedQuery{Reasons: s.Reason, Since: s.Since}
}

func (s *outputSource) state(ctx context.Context, to *ingest.Topic) (*state, error) {
	return openState(ctx, s.store, s.uuid, s.Command, to)
}

func (s *outputSource) each(ctx context.Context, use func(*candidate) error) error {
	s.steps.Store(0)
	return read.Refused(ctx, s.store, s.query(), func(m *read.RefusedMessage) error {
		s.steps.Add(1)
		headers, _ := headersOf(m.Headers)
		_, count, _ := schemas.ReplayOf(headers)
		c := &candidate{stage: m.Stage, reason: m.Reason, partial: m.Accepted, count: count,
			id: schemas.DeadLetterID{Output: s.uuid, Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
				Index: m.Index},
			fetch: func(ctx context.Context) (*schemas.Message, error) { return s.fetch(ctx, m) }}
		return use(c)
	})
}

// fetch returns a message from its topic, else from its row, else from the dead letters.
func (s *outputSource) fetch(ctx context.Context, row *read.RefusedMessage) (*schemas.Message, error) {
	var why []string
	for _, from := range []func(context.Context, *read.RefusedMessage) (*schemas.Message, error){
		s.fromTopic, s.fromRow, s.fromLetter} {
		m, err := from(ctx, row)
		gone := (*goneError)(nil)
		if err == nil || !errors.As(err, &gone) {
			return m, err
		}
		why = append(why, gone.why)
	}
	return nil, &goneError{strings.Join(why, "; ")}
}

// topic opens a source topic.
func (s *outputSource) topic(ctx context.Context, name string) (*sourceTopic, error) {
	if t := s.topics[name]; t != nil {
		return t, nil
	}
	t := &sourceTopic{}
	id, err := sinks.TopicIDIn(ctx, s.store, name)
	if err != nil {
		return nil, err
	}
	if !id.IsZero() {
		t.accepted = append(t.accepted, id.String())
	}
	t.log, err = s.kafka.open(ctx, name)
	if errors.Is(err, ingest.ErrNoTopic) {
		t.log, t.gone, err = nil, fmt.Sprintf("topic %s does not exist any more", name), nil
	}
	if err != nil {
		return nil, err
	}
	s.topics[name] = t
	return t, nil
}

// fromTopic reads a message again.
func (s *outputSource) fromTopic(ctx context.Context, row *read.RefusedMessage) (*schemas.Message, error) {
	t, err := s.topic(ctx, row.Topic)
	if err != nil {
		return nil, err
	}
	if t.log == nil {
		return nil, &goneError{t.gone}
	}
	if id := t.log.ID; !id.IsZero() && row.TopicID != "" && id.String() != row.TopicID &&
		!slices.Contains(t.accepted, id.String()) {
		return nil, &goneError{fmt.Sprintf("topic %s was deleted and created again", row.Topic)}
	}
	m, err := recordAt(ctx, t.log, row.Partition, row.Offset, int64(s.ChunkWindow))
	if err != nil {
		return nil, err
	}
	if why, err := differs(m, row); err != nil || why != "" {
		return nil, orGone(err, fmt.Sprintf("the record at %s/%d@%d is another one: %s", row.Topic, row.Partition,
			row.Offset, why))
	}
	return m, nil
}

func orGone(err error, why string) error {
	if err != nil {
		return err
	}
	return &goneError{why}
}

// recordAt reads the message that begins at an offset, and its other chunks within a window of
// bytes behind it.
func recordAt(ctx context.Context, log *ingest.Lookup, partition int32, offset, window int64) (*schemas.Message,
	error) {
	end := int64(0)
	for _, p := range log.Partitions {
		if p.ID == partition {
			end = p.Stable
		}
	}
	var whole *schemas.Message
	var parts pipeline.Single
	var broken error
	read, there := int64(0), false
	err := log.Each(ctx, partition, offset, end, func(m *schemas.Message) (bool, error) {
		if !there && m.Offset != offset {
			return false, nil
		}
		if _, chunk, _ := schemas.ChunkOf(m); !there && !chunk {
			whole, there = m.Clone(), true
			return false, nil
		}
		there = true
		done, err := parts.Add(m, maxValue)
		if done && err == nil {
			whole = parts.Message()
		}
		broken = err
		read += m.Bytes()
		return err == nil && !done && read < window, nil
	})
	gone := (*ingest.GoneError)(nil)
	switch missing, all := parts.Missing(); {
	case errors.As(err, &gone):
		return nil, &goneError{gone.Why}
	case err != nil:
		return nil, err
	case whole != nil && whole.Oversize > 0:
		return nil, &goneError{fmt.Sprintf("the record at %s/%d@%d has %d bytes", log.Name, partition, offset,
			whole.Oversize)}
	case whole != nil:
		return whole, nil
	case broken != nil:
		return nil, &goneError{"its chunks are broken: " + broken.Error()}
	case !there:
		return nil, &goneError{fmt.Sprintf("there is no record at %s/%d@%d any more", log.Name, partition, offset)}
	default:
		return nil, &goneError{fmt.Sprintf("%d of its %d chunks are not within %d bytes (--chunk-window)", missing, all,
			window)}
	}
}

// maxValue is the largest value that is sent.
const maxValue = 1 << 30

// differs says how a record differs from the row of a reject; empty: nothing is known to differ.
func differs(m *schemas.Message, row *read.RefusedMessage) (string, error) {
	key := m.Key[:min(len(m.Key), schemas.MaxRejectValue)]
	switch {
	case int64(len(m.Value)) != row.ValueSize:
		return fmt.Sprintf("it has %d bytes, the row says %d", len(m.Value), row.ValueSize), nil
	case !bytes.Equal(key, row.Key):
		return "its key is another one", nil
	case row.ValueSHA != "":
		if sum := sha256.Sum256(m.Value); hex.EncodeToString(sum[:]) != row.ValueSHA {
			return "its SHA-256 is another one", nil
		}
		return "", nil
	}
	begin, err := row.Value()
	if err == nil && !bytes.HasPrefix(m.Value, begin) {
		return "its first bytes are others", nil
	}
	return "", err
}

// fromRow takes the message from its row, if that has the whole of it.
func (s *outputSource) fromRow(_ context.Context, row *read.RefusedMessage) (*schemas.Message, error) {
	if row.Stage == schemas.StageAssemble || row.ValueSize > schemas.MaxRejectValue ||
		len(row.Key) >= schemas.MaxRejectValue {
		return nil, &goneError{"its row has not the whole of it"}
	}
	value, err := row.Value()
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(value); int64(len(value)) != row.ValueSize ||
		value != nil && hex.EncodeToString(sum[:]) != row.ValueSHA {
		return nil, &goneError{"its row has not the whole of it"}
	}
	headers, err := headersOf(row.Headers)
	if err != nil {
		return nil, &goneError{"the headers of its row cannot be read: " + err.Error()}
	}
	return &schemas.Message{Topic: row.Topic, Partition: row.Partition, Offset: row.Offset, Time: timeOf(row),
		Key: row.Key, Value: value, Headers: headers}, nil
}

func timeOf(row *read.RefusedMessage) time.Time {
	if row.TimeNs == 0 {
		return time.Time{}
	}
	return time.Unix(0, row.TimeNs)
}

// headersOf reads column headers of table rejects.
func headersOf(text string) ([]schemas.Header, error) {
	if text == "" {
		return nil, nil
	}
	var object map[string]*string
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return nil, err
	}
	var hs []schemas.Header
	for name, text := range object {
		h := schemas.Header{Key: name}
		if text != nil {
			h.Value = []byte(*text)
			if packed, ok := strings.CutPrefix(*text, "data:;base64,"); ok {
				if raw, err := base64.StdEncoding.DecodeString(packed); err == nil {
					h.Value = raw
				}
			}
		}
		hs = append(hs, h)
	}
	slices.SortFunc(hs, func(a, b schemas.Header) int { return strings.Compare(a.Key, b.Key) })
	return hs, nil
}

// fromLetter takes the message from the topic of dead letters.
func (s *outputSource) fromLetter(ctx context.Context, row *read.RefusedMessage) (*schemas.Message, error) {
	if s.DeadLetter == "" {
		return nil, &goneError{"no --dead-letter is given"}
	}
	if s.letters == nil {
		index, err := readLetterIndex(ctx, s.kafka, s.DeadLetter)
		if err != nil {
			return nil, fmt.Errorf("--dead-letter %s: %w", s.DeadLetter, err)
		}
		s.letters = index
	}
	m, err := s.letters.fetch(ctx, schemas.DeadLetterID{Output: s.uuid, Topic: row.Topic, Partition: row.Partition,
		Offset: row.Offset}, int64(s.ChunkWindow))
	if err != nil {
		return nil, err
	}
	m.Time = timeOf(row)
	return m, nil
}
