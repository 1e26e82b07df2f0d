package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// pinned is a request of a fixed version. kafka-go would take the newest
// version that both sides know, but its encodings of the newest group requests
// are wrong (SyncGroup 5), and so is its order of a heartbeat's answer from
// version 1 on; and it serves metadata from a cache. Kafka 4.3 still knows all
// versions that are pinned here.
type pinned struct {
	protocol.Message
	ctx      context.Context
	version  int16
	clientID string
	wait     time.Duration // how long the broker may take
}

// Required tells kafka-go to leave the exchange to RawExchange.
func (p *pinned) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange sends the request and reads the answer.
func (p *pinned) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	conn, release := guard(p.ctx, rw, p.wait)
	defer release()
	if err := protocol.WriteRequest(conn, p.version, correlation, p.clientID, p.Message); err != nil {
		return nil, from(conn, err)
	}
	id, m, err := protocol.ReadResponse(conn, p.ApiKey(), p.version)
	if err == nil && id != correlation {
		err = fmt.Errorf("an answer to request %d", id)
	}
	return reply{m}, from(conn, err)
}

// reply hides the type of an answer: kafka-go takes every answer about metadata
// for one to a request of its own.
type reply struct{ protocol.Message }

// toGroup is a request for the coordinator of a group.
type toGroup struct {
	pinned
	group string
}

// Group names the group whose coordinator gets the request.
func (g *toGroup) Group() string { return g.group }

// call sends a pinned request to the coordinator of group, or to any broker if
// that is empty, and waits for at most wait.
func (k *cluster) call(ctx context.Context, group string, version int16, wait time.Duration,
	m protocol.Message) (protocol.Message, error) {
	return k.callAs(ctx, k.clientID, group, version, wait, m)
}

// callAs is call by another name.
func (k *cluster) callAs(ctx context.Context, clientID, group string, version int16, wait time.Duration,
	m protocol.Message) (protocol.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+callTimeout)
	defer cancel()
	p := pinned{Message: m, ctx: ctx, version: version, clientID: clientID, wait: wait}
	var req protocol.Message = &p
	if group != "" {
		req = &toGroup{p, group}
	}
	r, err := k.transport.RoundTrip(ctx, k.addr, req)
	if k.heard(ctx, err); err != nil {
		return nil, err
	}
	return r.(reply).Message, nil
}

// partitions asks for the number of partitions of each topic, not from a cache.
// A topic that does not exist is left out; asking does not create it.
func (k *cluster) partitions(ctx context.Context, topics []string) (map[string]int32, error) {
	const version = 5
	m, err := k.call(ctx, "", version, callTimeout, &metadata.Request{TopicNames: topics})
	if err != nil {
		return nil, err
	}
	n := map[string]int32{}
	for _, t := range m.(*metadata.Response).Topics {
		switch code := kafka.Error(t.ErrorCode); code {
		case 0:
			n[t.Name] = int32(len(t.Partitions))
		case kafka.UnknownTopicOrPartition:
		case kafka.LeaderNotAvailable:
			return nil, fmt.Errorf("topic %s: %w", t.Name, code)
		default:
			if err := k.denied(code, "Describe", t.Name); err != code {
				return nil, err
			}
			return nil, fmt.Errorf("topic %q: the broker refuses it: %w", t.Name, code)
		}
	}
	return n, nil
}

// extent is the part of the log that is there: [start, end).
type extent struct{ start, end int64 }

// offsets asks the leaders for the extents of partitions. With stable, end is
// the last stable offset, else the high watermark. It fails unless all answer.
func (k *cluster) offsets(ctx context.Context, topic string, ids []int32, stable bool) (map[int32]extent, error) {
	starts, err := k.listOffsets(ctx, topic, ids, kafka.FirstOffset, false)
	if err != nil {
		return nil, err
	}
	ends, err := k.listOffsets(ctx, topic, ids, kafka.LastOffset, stable)
	if err != nil {
		return nil, err
	}
	out := map[int32]extent{}
	for _, id := range ids {
		out[id] = extent{starts[id], ends[id]}
	}
	return out, nil
}

func (k *cluster) listOffsets(ctx context.Context, topic string, ids []int32, at int64,
	stable bool) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req := &listoffsets.Request{ReplicaID: -1, Topics: []listoffsets.RequestTopic{{Topic: topic}}}
	if stable {
		req.IsolationLevel = readCommitted
	}
	for _, id := range ids {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions,
			listoffsets.RequestPartition{Partition: id, CurrentLeaderEpoch: -1, Timestamp: at})
	}
	m, err := k.transport.RoundTrip(ctx, k.addr, req)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, t := range m.(*listoffsets.Response).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return nil, k.denied(fmt.Errorf("%s/%d: %w", topic, p.Partition, kafka.Error(p.ErrorCode)), "Describe",
					topic)
			}
			out[p.Partition] = p.Offset
		}
	}
	if len(out) != len(ids) {
		return nil, fmt.Errorf("%s: %d of %d partitions told their offsets", topic, len(out), len(ids))
	}
	return out, nil
}

// extents returns where the partitions of topic begin, and where they end for a
// reader of committed records, trying for as long as a first answer may take:
// a topic that was just created has no leader yet.
func (k *cluster) extents(ctx context.Context, topic string, within time.Duration) (map[int32]extent, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var b backoff
	for {
		counts, err := k.partitions(ctx, []string{topic})
		if err == nil && counts[topic] == 0 {
			return nil, k.noTopic(topic)
		}
		if err == nil {
			ids := make([]int32, counts[topic])
			for i := range ids {
				ids[i] = int32(i)
			}
			var e map[int32]extent
			if e, err = k.offsets(ctx, topic, ids, true); err == nil {
				return e, nil
			}
		}
		if no := (*DeniedError)(nil); errors.As(err, &no) {
			return nil, no
		}
		if stopped := b.wait(ctx); errors.Is(stopped, context.Canceled) {
			// err only says that ctx ended, too
			return nil, fmt.Errorf("topic %s: its offsets were not read: %w", topic, stopped)
		} else if stopped != nil {
			return nil, fmt.Errorf("topic %s: its offsets cannot be read: %w", topic, err)
		}
	}
}

// ErrNoTopic says that the brokers do not know a topic.
var ErrNoTopic = errors.New("the topic does not exist")

func (k *cluster) noTopic(topic string) error {
	return fmt.Errorf("topic %q: %w on %s; \"entropipe produce … --topic %s\" creates it, as does kafka-topics.sh "+
		"--bootstrap-server %s --create --topic %s",
		topic, ErrNoTopic, strings.Join(k.brokers, ","), topic, k.brokers[0], topic)
}
