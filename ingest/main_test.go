package ingest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"entropipe/ops/leaktest"
	"entropipe/schemas"
)

// Most tests wait for groups and brokers and need little of a processor. So eight run at a
// time, on a machine of any size; -parallel still has its say.
func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		parallel.Value.Set("8")
	}
	leaktest.Main(m)
}

// quick are durations for tests: those that a test waits for are short, those
// that only a machine at its limits reaches are not.
var quick = Timing{Session: 10 * time.Second, Rebalance: 30 * time.Second, Heartbeat: 50 * time.Millisecond,
	Poll: 100 * time.Millisecond, Watch: 100 * time.Millisecond, Missing: 500 * time.Millisecond, Connect: time.Minute}

// hangs is after how long a test takes what it waits for to be stuck.
const hangs = 2 * time.Minute

var serial atomic.Int64

// name makes a topic or group name that no other test uses, on any broker.
func name(t *testing.T) string {
	return fmt.Sprintf("t%x-%d-%s", time.Now().UnixNano()&0xffffffffff, serial.Add(1),
		strings.ToLower(strings.ReplaceAll(t.Name(), "/", ".")))
}

// deadline is a context that ends a test which hangs.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	t.Cleanup(cancel)
	return ctx
}

// makeTopic creates a topic on b and returns its name.
func makeTopic(t *testing.T, addr string, partitions int) string {
	t.Helper()
	topic := name(t)
	if err := EnsureTopic(deadline(t), []string{addr}, Security{}, topic,
		TopicSpec{Partitions: partitions, MaxMessageBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	return topic
}

func producer(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(15 << 20),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0), kgo.BrokerMaxReadBytes(1 << 30)},
		opts...)
	c, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// send writes records to partition 0, or the one they name, one batch each call.
func send(t *testing.T, c *kgo.Client, topic string, records ...*kgo.Record) {
	t.Helper()
	for _, r := range records {
		r.Topic = topic
	}
	if err := c.ProduceSync(deadline(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func values(vs ...string) (rs []*kgo.Record) {
	for _, v := range vs {
		rs = append(rs, &kgo.Record{Value: []byte(v)})
	}
	return rs
}

// deleteRecords moves the start of partition 0 to offset.
func deleteRecords(t *testing.T, c *kgo.Client, topic string, offset int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 60_000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	for _, shard := range c.RequestSharded(deadline(t), req) {
		if shard.Err != nil {
			t.Fatal(shard.Err)
		}
		if code := shard.Resp.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Fatalf("DeleteRecords: error %d", code)
		}
	}
}

// settled waits until no transaction is open on partition 0: the brokers write
// how one ended a moment after they have said so.
func settled(t *testing.T, addr, topic string) (end int64) {
	t.Helper()
	eventually(t, "no transaction is open", func() bool {
		info, err := Describe(deadline(t), []string{addr}, Security{}, topic)
		if err != nil {
			t.Fatal(err)
		}
		end = info.Partitions[0].End
		return end == info.Partitions[0].Stable
	})
	return end
}

// ownHost is an address of this machine that no other process chooses ports of:
// one that is free for a moment is not taken meanwhile.
func ownHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64|pid>>16&63, pid>>8&255, pid&255)
}

func deleteTopic(t *testing.T, c *kgo.Client, topic string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 60_000
	req.TopicNames = []string{topic}
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(deadline(t), c)
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("delete topic: %v, %+v", err, resp)
	}
}

func consumer(t *testing.T, addr string, topics []string, change ...func(*Config)) *Consumer {
	t.Helper()
	cfg := Config{Brokers: []string{addr}, Topics: topics, Group: name(t), Timing: quick}
	for _, f := range change {
		f(&cfg)
	}
	c, err := NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func untilEnd(c *Config) { c.UntilEnd = true }

// partition0 is partition 0 of a topic outside any group.
func partition0(t *testing.T, addr, topic string, change ...func(*Config)) *Partition {
	t.Helper()
	return consumer(t, addr, []string{topic}, change...).partition(topic, 0, &generation{})
}

// got is a copy of a message.
type got struct {
	Offset     int64
	Key, Value string
	Null       bool
}

func copied(m schemas.Message) got {
	return got{Offset: m.Offset, Key: string(m.Key), Value: string(m.Value), Null: m.Value == nil}
}

// readUntil reads from offset from on until next reaches end, with at most max
// bytes a fetch, and checks what every fetch promises.
func readUntil(t *testing.T, p *Partition, from, end int64, maxBytes int32) (out []got) {
	t.Helper()
	ctx := deadline(t)
	for next := from; next < end; {
		f, err := p.Fetch(ctx, next, maxBytes)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("fetch at %d: %v", next, err)
		}
		last := next - 1
		for _, m := range f.Messages {
			if m.Offset <= last || m.Offset >= f.Next || m.Topic != p.Topic || m.Partition != p.ID {
				t.Fatalf("fetch [%d, %d) brought %s/%d@%d after %d", next, f.Next, m.Topic, m.Partition, m.Offset, last)
			}
			last = m.Offset
			out = append(out, copied(m))
		}
		if f.From != next || f.Next < next {
			t.Fatalf("fetch at %d says [%d, %d)", next, f.From, f.Next)
		}
		next = f.Next
		if f.Release != nil {
			f.Release()
		}
	}
	return out
}

func big(n int, seed byte) []byte {
	return bytes.Repeat([]byte{seed, seed + 1, seed + 3, seed ^ 5}, n/4)
}

// longAgo is when records were written whose time a test compares: brokers
// refuse the future.
var longAgo = time.UnixMilli(1_700_000_000_000)

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// mechanism is MechanismOf with a password that does not change.
func mechanism(name, user, password string) (sasl.Mechanism, error) {
	return MechanismOf(name, user, func() (string, error) { return password, nil })
}

// topicLimit returns the topic's max.message.bytes.
func topicLimit(ctx context.Context, brokers []string, topic string) (limit int64, err error) {
	err = administer(ctx, brokers, Security{}, topic, func(k *cluster) error {
		limit, err = k.limit(ctx, topic)
		return err
	})
	return limit, err
}
