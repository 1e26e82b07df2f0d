package ingest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"entropipe/schemas"
)

// Topics have ids from version 10 of Metadata on. kafka-go ends at version 8 and
// answers from a cache, so the request is written and read here.
const (
	metadataWithIDs = 10 // Kafka 2.8
	metadataMost    = 12 // from here on the name may be null
)

// identity says which topic a name means now.
type identity struct {
	exists  bool
	id      schemas.TopicID // zero: the broker has no ids
	cluster string          // id of the cluster, for logs; "": not told
}

// identify asks a broker, past every cache, which topic a name means. A topic
// that does not exist is no error, and asking does not create it. A broker that
// has just started may not have heard of the newest topics.
func (k *cluster) identify(ctx context.Context, topic string) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	r, err := k.transport.RoundTrip(ctx, k.addr, &topicCall{ctx: ctx, topic: topic, clientID: k.clientID})
	if k.heard(ctx, err); err != nil {
		return identity{}, err
	}
	a := r.(*topicAnswer)
	if a.withIDs {
		found, err := a.identity()
		return found, k.denied(err, "Describe", topic)
	}
	counts, err := k.partitions(ctx, []string{topic})
	return identity{exists: counts[topic] > 0}, err
}

// identified returns the extents of a topic's partitions and the topic that they
// are of: ids never come back, so one that is the same before and after holds for
// what was told between.
func (k *cluster) identified(ctx context.Context, topic string, within time.Duration) (map[int32]extent, identity,
	error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var b backoff
	for {
		before, err := k.identify(limited, topic)
		if err == nil {
			extents, wrong := k.extents(ctx, topic, within)
			if wrong != nil {
				return nil, before, wrong
			}
			var after identity
			if after, err = k.identify(limited, topic); err == nil && after.id == before.id {
				return extents, after, nil
			}
		}
		if no := (*DeniedError)(nil); errors.As(err, &no) {
			return nil, identity{}, no
		}
		if b.wait(limited) != nil {
			return nil, identity{}, fmt.Errorf("topic %s: its id cannot be read: %w", topic, cmp.Or(err, errChanging))
		}
	}
}

var errChanging = errors.New("brokers name one id and then another")

// topicCall asks for the metadata of one topic.
type topicCall struct {
	ctx      context.Context
	topic    string
	clientID string
}

// topicAnswer is the answer. It is no answer about metadata to kafka-go, which
// would take it for one of its own.
type topicAnswer struct {
	withIDs bool // the broker gives ids; else nothing was asked
	topic   string
	code    int16 // Kafka's error
	id      schemas.TopicID
	cluster string
}

// ApiKey makes a request pass through kafka-go's Transport.
func (*topicCall) ApiKey() protocol.ApiKey { return protocol.Metadata }

// ApiKey makes an answer pass through kafka-go's Transport.
func (*topicAnswer) ApiKey() protocol.ApiKey { return protocol.Metadata }

// Required tells kafka-go to leave the exchange to RawExchange.
func (*topicCall) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange sends the request and reads the answer.
func (t *topicCall) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	conn, release := guard(t.ctx, rw, callTimeout)
	defer release()
	a, err := askTopic(conn, bufio.NewReader(nil), t.topic, t.clientID)
	return a, from(conn, err)
}

// askTopic asks the broker at the other end of conn for a topic's id.
func askTopic(conn *guarded, br *bufio.Reader, topic, clientID string) (*topicAnswer, error) {
	defer conn.patience(callTimeout)()
	offered, err := linkOf(conn).offers(conn, br, protocol.Metadata, clientID)
	if err != nil {
		return nil, err
	}
	version := min(offered.most, metadataMost)
	if !offered.has(version) || version < metadataWithIDs {
		return &topicAnswer{topic: topic}, nil
	}
	if _, err := conn.Write(appendTopicRequest(nil, version, topic, clientID)); err != nil {
		return nil, err
	}
	h, err := receive(conn, br, correlationTopic)
	if err != nil {
		return nil, err
	}
	h.version = version
	a := &topicAnswer{withIDs: true, topic: topic}
	if h.topic(a); h.err != nil {
		return nil, fmt.Errorf("an answer about topic %s that cannot be read: %w", topic, h.err)
	}
	return a, h.end()
}

// appendTopicRequest appends a Metadata request of version 10 to 12 for one
// topic, by its name.
func appendTopicRequest(b []byte, version int16, topic, clientID string) []byte {
	b = appendHead(b, protocol.Metadata, version, correlationTopic, clientID)
	b = append(b, 0)                   // tags of the head
	b = append(b, 2)                   // one topic
	b = append(b, make([]byte, 16)...) // by name, not by id
	b = appendCompact(b, topic)
	b = append(b, 0) // tags of the topic
	b = append(b, 0) // do not create it
	if version == 10 {
		b = append(b, 0) // no authorized operations of the cluster
	}
	b = append(b, 0) // nor of the topic
	return sized(append(b, 0))
}

// appendCompact appends a string as flexible versions write it.
func appendCompact(b []byte, s string) []byte {
	return append(appendUvarint(b, uint64(len(s))+1), s...)
}

func appendUvarint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

const (
	maxEntries  = 1 << 20 // brokers or partitions in one answer
	maxTextSize = 1 << 15 // bytes of a name
)

// topic reads the answer's fields up to those of the one topic. An answer
// without that topic is an error.
func (h *header) topic(a *topicAnswer) {
	h.tags()
	h.int(4) // throttle time
	for range h.compact(maxEntries) {
		if h.err != nil {
			return
		}
		h.int(4) // node
		h.skip(h.compact(maxTextSize))
		h.int(4) // port
		h.skip(h.compact(maxTextSize))
		h.tags()
	}
	a.cluster = h.text(maxTextSize)
	h.int(4) // controller
	if n := h.compact(1); n != 1 && h.err == nil {
		h.err = errors.New("it lacks the topic")
	}
	a.code = int16(h.int(2))
	if name := h.text(maxTextSize); name != a.topic && h.err == nil {
		h.err = fmt.Errorf("it is about topic %.100q", name)
	}
	a.id = h.topicID()
	// The rest is the partitions, which nobody needs here.
}

// topicID reads an id.
func (h *header) topicID() (id schemas.TopicID) {
	if b := h.peek(len(id)); b != nil {
		copy(id[:], b)
		h.r.Discard(len(id))
	}
	return id
}

func (a *topicAnswer) identity() (identity, error) {
	found := identity{exists: a.code == 0, id: a.id, cluster: a.cluster}
	switch code := kafka.Error(a.code); {
	case code == 0:
		return found, nil
	case code == kafka.UnknownTopicOrPartition, code == kafka.UnknownTopicID:
		return identity{cluster: a.cluster}, nil
	case passes(code):
		return found, fmt.Errorf("topic %s: %w", a.topic, code)
	default:
		return found, fmt.Errorf("topic %q: the broker refuses it: %w", a.topic, code)
	}
}
