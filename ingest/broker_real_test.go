//go:build kafka

package ingest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// realBroker: the tests run on a broker whose versions they do not choose.
const realBroker = true

// start returns the address of the real broker that ENTROPIPE_KAFKA names.
// Tests that must do things to a broker itself are skipped.
func start(t *testing.T, _ ...kfake.Opt) (string, *kfake.Cluster) {
	t.Helper()
	addr := os.Getenv("ENTROPIPE_KAFKA")
	if addr == "" {
		t.Skip("ENTROPIPE_KAFKA does not name a broker (HOST:PORT)")
	}
	return addr, nil
}

// ENTROPIPE_KAFKA_RESTART is a shell command that kills the broker and starts
// it again on the same data.
func TestRealBrokerIsKilledAndReturns(t *testing.T) {
	addr, _ := start(t)
	restart := os.Getenv("ENTROPIPE_KAFKA_RESTART")
	if restart == "" {
		t.Skip("ENTROPIPE_KAFKA_RESTART does not say how to kill and start the broker")
	}
	topic := makeTopic(t, addr, 3)
	r := newReader(t)
	c := consumer(t, addr, []string{topic})
	running(t, c, r.handle("m"))
	total := 0
	for range 2 {
		p := producer(t, addr)
		for i := range 30 {
			send(t, p, topic, &kgo.Record{Partition: int32(i % 3), Value: big(100_000, byte(i))})
		}
		p.Close()
		total += 30
		eventually(t, "all is read", func() bool { return r.count() == total })
		if out, err := exec.Command("sh", "-c", restart).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", restart, err, out)
		}
		began := time.Now()
		eventually(t, "the consumer is a member again",
			func() bool { s := c.Stats(); return s.Connected && s.Assigned == 3 })
		t.Logf("a member again after %v", time.Since(began))
	}
	if r.count() != total || len(r.clash) > 0 {
		t.Errorf("%d values, want %d; %v", r.count(), total, r.clash)
	}
}

// What the log cleaner leaves: holes, batches without records, transactions
// without data. The last value of every key must still come, and the reader
// must get through to the end with fetches of any size.
func TestRealCompaction(t *testing.T) {
	addr, _ := start(t)
	topic := name(t)
	setup := producer(t, addr)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 60_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, 1, 1
	for k, v := range map[string]string{"cleanup.policy": "compact", "segment.bytes": "1048576",
		"min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "100"} {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, kmsg.StringPtr(v)
		rt.Configs = append(rt.Configs, c)
	}
	req.Topics = append(req.Topics, rt)
	if resp, err := req.RequestWith(deadline(t), setup); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
	eventually(t, "the topic can be used", func() bool {
		_, err := Describe(deadline(t), []string{addr}, Security{}, topic)
		return err == nil
	})
	rng := rand.New(rand.NewPCG(1, 2))
	newest, n := map[string]string{}, 0
	keyed := func(c *kgo.Client, count, keys int) {
		var rs []*kgo.Record
		for i := range count {
			k, v := fmt.Sprint("k", i%keys), fmt.Sprint(n, strings.Repeat(string(rune('a'+rng.IntN(26))), 900))
			rs, newest[k], n = append(rs, &kgo.Record{Key: []byte(k), Value: []byte(v)}), v, n+1
		}
		send(t, c, topic, rs...)
	}
	first := producer(t, addr)
	for range 3 {
		keyed(first, 200, 200)
		keyed(first, 2, 2) // the cleaner keeps a producer's last batch, empty
	}
	tx := producer(t, addr, kgo.TransactionalID(topic))
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	keyed(tx, 20, 20)
	if err := tx.EndTransaction(deadline(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	last := producer(t, addr, kgo.DisableIdempotentWrite())
	for range 20 {
		keyed(last, 190, 190)
	}
	end := settled(t, addr, topic)
	var left []got
	for until := time.Now().Add(25 * time.Second); ; time.Sleep(time.Second) {
		if left = readUntil(t, partition0(t, addr, topic), 0, end, 1<<20); len(left) < n/2 || time.Now().After(until) {
			break
		}
	}
	if len(left) >= n/2 {
		t.Skipf("the broker has not compacted within 25 s (%d of %d records left)", len(left), n)
	}
	for _, size := range []int32{1, 5000, 64 << 10} {
		p := partition0(t, addr, topic, untilEnd)
		p.target = end
		values := map[string]string{}
		for _, g := range readUntil(t, p, 0, end, size) {
			values[g.Key] = g.Value
		}
		for k, v := range newest {
			if values[k] != v {
				t.Fatalf("fetches of %d bytes: the last value of %s is %.10q, want %.10q", size, k, values[k], v)
			}
		}
	}
	t.Logf("%d of %d records left, end %d", len(left), n, end)
}
