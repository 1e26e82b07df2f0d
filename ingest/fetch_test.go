package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"entropipe/schemas"
)

func TestRecordsComeInOrderWhateverTheFetchSize(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	c := producer(t, addr)
	var want []got
	for i := range 40 {
		batch := make([]*kgo.Record, 1+i%5)
		for j := range batch {
			v := fmt.Sprintf("value %d.%d %s", i, j, strings.Repeat("x", i*i))
			batch[j] = &kgo.Record{Key: []byte(fmt.Sprint(i)), Value: []byte(v)}
			want = append(want, got{Offset: int64(len(want)), Key: fmt.Sprint(i), Value: v})
		}
		send(t, c, topic, batch...)
	}
	for _, maxBytes := range []int32{1, 500, 5000, 1 << 20} {
		if diff := cmp.Diff(want, readUntil(t, partition0(t, addr, topic), 0, int64(len(want)), maxBytes)); diff != "" {
			t.Errorf("fetches of %d bytes (-want +got):\n%s", maxBytes, diff)
		}
	}
	p := partition0(t, addr, topic)
	if diff := cmp.Diff(want[57:], readUntil(t, p, 57, int64(len(want)), 1<<20)); diff != "" {
		t.Errorf("from the middle of a batch (-want +got):\n%s", diff)
	}
}

func TestHeadersTombstonesAndEmptyValues(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	at := time.UnixMilli(time.Now().UnixMilli() - 5000)
	send(t, producer(t, addr), topic,
		&kgo.Record{Key: []byte("k"), Value: nil, Timestamp: at},
		&kgo.Record{Value: []byte{}, Headers: []kgo.RecordHeader{{Key: "frame-id", Value: []byte("7")}, {Key: "none"},
			{Key: "empty", Value: []byte{}}}})
	f, err := partition0(t, addr, topic).Fetch(deadline(t), 0, 1<<20)
	if err != nil || len(f.Messages) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	defer f.Release()
	tomb, empty := f.Messages[0], f.Messages[1]
	if tomb.Value != nil || string(tomb.Key) != "k" || !tomb.Time.Equal(at) || tomb.Headers != nil {
		t.Errorf("tombstone came as %+v", tomb)
	}
	if empty.Value == nil || len(empty.Value) != 0 || empty.Key != nil {
		t.Errorf("empty value came as %+v", empty)
	}
	want := []schemas.Header{{Key: "frame-id", Value: []byte("7")}, {Key: "none"}, {Key: "empty", Value: []byte{}}}
	if diff := cmp.Diff(want, empty.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestAllCodecs(t *testing.T) {
	addr, _ := start(t)
	for name, codec := range map[string]kgo.CompressionCodec{"gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()} {
		topic := makeTopic(t, addr, 1)
		c := producer(t, addr, kgo.ProducerBatchCompression(codec))
		var want []got
		for round := range 3 {
			var rs []*kgo.Record
			for i := range 20 {
				v := big(4000*(i+1), byte(round*20+i))
				rs = append(rs, &kgo.Record{Value: v})
				want = append(want, got{Offset: int64(len(want)), Value: string(v)})
			}
			send(t, c, topic, rs...)
		}
		p := partition0(t, addr, topic)
		for _, maxBytes := range []int32{1, 100_000, 8 << 20} {
			if diff := cmp.Diff(want, readUntil(t, p, 0, int64(len(want)), maxBytes)); diff != "" {
				t.Errorf("%s, fetches of %d bytes (-want +got):\n%.500s", name, maxBytes, diff)
			}
		}
	}
}

// A record larger than what is asked for must come, whole, and the next after it.
func TestRecordLargerThanTheFetch(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	c := producer(t, addr)
	want := []got{{Offset: 0, Value: "a"}, {Offset: 1, Value: string(big(3<<20, 1))},
		{Offset: 2, Value: string(big(5<<20, 2))}, {Offset: 3, Value: "b"}}
	for _, g := range want {
		send(t, c, topic, &kgo.Record{Value: []byte(g.Value)})
	}
	if diff := cmp.Diff(want, readUntil(t, partition0(t, addr, topic), 0, 4, 1000)); diff != "" {
		t.Errorf("(-want +got):\n%.500s", diff)
	}
}

// Of a value beyond the limit only the beginning comes, whether its batch is
// plain or compressed, alone in it or not; memory stays small.
func TestOversizedRecordIsCut(t *testing.T) {
	addr, _ := start(t)
	for name, codec := range map[string]kgo.CompressionCodec{"plain": kgo.NoCompression(),
		"zstd bomb": kgo.ZstdCompression(), "gzip bomb": kgo.GzipCompression()} {
		topic := makeTopic(t, addr, 1)
		c := producer(t, addr, kgo.ProducerBatchCompression(codec))
		huge := make([]byte, 8<<20)
		send(t, c, topic, &kgo.Record{Value: []byte("a")}, &kgo.Record{Key: []byte("k"), Value: huge},
			&kgo.Record{Value: []byte("b")})
		send(t, c, topic, &kgo.Record{Value: huge[:6<<20], Headers: []kgo.RecordHeader{{Key: "h"}}})
		p := partition0(t, addr, topic, func(c *Config) { c.MaxFrameBytes = 1 << 20 })
		var all []schemas.Message
		for next := int64(0); next < 4; {
			f, err := p.Fetch(deadline(t), next, 1<<20)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if f.Bytes > 4<<20 {
				t.Errorf("%s: a fetch of 1 MiB holds %d bytes", name, f.Bytes)
			}
			all, next = append(all, f.Messages...), f.Next
		}
		if len(all) != 4 {
			t.Fatalf("%s: %d records, want 4", name, len(all))
		}
		for i, size := range []int64{0, 8 << 20, 0, 6 << 20} {
			if all[i].Offset != int64(i) || all[i].Oversize != size || size > 0 && len(all[i].Value) != oversizeKept {
				t.Errorf("%s: record %d has offset %d, oversize %d, %d bytes", name, i, all[i].Offset,
					all[i].Oversize, len(all[i].Value))
			}
		}
		if string(all[1].Key) != "k" || string(all[2].Value) != "b" {
			t.Errorf("%s: key %q, next value %.20q", name, all[1].Key, all[2].Value)
		}
	}
}

func TestLargeValuesAreAligned(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	plain, packed := producer(t, addr), producer(t, addr, kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	for i := range 6 {
		r := &kgo.Record{Key: bytes.Repeat([]byte("k"), i), Value: big(100_000+4*i, byte(i)),
			Headers: []kgo.RecordHeader{{Key: "h", Value: make([]byte, i)}}}
		send(t, plain, topic, r)
		send(t, packed, topic, &kgo.Record{Value: big(50_000, 1)}, &kgo.Record{Value: big(60_004, 2)})
	}
	p := partition0(t, addr, topic)
	for next := int64(0); next < 18; {
		f, err := p.Fetch(deadline(t), next, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.Messages {
			if a := uintptr(unsafe.Pointer(&m.Value[0])) % 64; a != 0 {
				t.Errorf("value of offset %d begins at address %d mod 64", m.Offset, a)
			}
		}
		next = f.Next
		f.Release()
	}
}

// Released memory is used again, and the values of a fetch do not change
// before.
func TestBlocksAreReusedOnlyAfterRelease(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	c := producer(t, addr)
	for i := range 20 {
		send(t, c, topic, &kgo.Record{Value: big(200_000, byte(i))})
	}
	p := partition0(t, addr, topic)
	kept, err := p.Fetch(deadline(t), 0, 300_000)
	if err != nil {
		t.Fatal(err)
	}
	first := &kept.Messages[0].Value[0]
	for range 3 {
		readUntil(t, p, 0, 20, 300_000)
	}
	if !bytes.Equal(kept.Messages[0].Value, big(200_000, 0)) {
		t.Error("a value changed while it was held")
	}
	kept.Release()
	again, err := p.Fetch(deadline(t), 0, 300_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.c.free.blocks) == 0 && &again.Messages[0].Value[0] != first {
		t.Error("no block was kept")
	}
	again.Release()
	defer func() {
		if recover() == nil {
			t.Error("a second release went unnoticed")
		}
	}()
	again.Release()
}

func TestEmptyPartitionAnswersWithinThePollTime(t *testing.T) {
	addr, fake := start(t)
	topic := makeTopic(t, addr, 1)
	p := partition0(t, addr, topic)
	var asked atomic.Int32
	asked.Store(int32(quick.Poll.Milliseconds()))
	if fake != nil {
		fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			asked.Store(r.(*kmsg.FetchRequest).MaxWaitMillis)
			return nil, nil, false
		})
	}
	f, err := p.Fetch(deadline(t), 0, 1<<20)
	if err != nil || len(f.Messages) != 0 || f.Next != 0 || f.End != 0 || f.Bytes != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	if ms := asked.Load(); ms != int32(quick.Poll.Milliseconds()) {
		t.Errorf("the broker was to wait for %d ms", ms)
	}
}

func TestAbortedTransactionsAndControlRecordsAreHoles(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	plain := producer(t, addr)
	tx := producer(t, addr, kgo.TransactionalID(topic))
	ctx := deadline(t)
	var want []string
	transaction := func(v string, commit bool) {
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			mixed := fmt.Sprintf("plain-%s-%d", v, i)
			send(t, tx, topic, values(fmt.Sprintf("%s-%d", v, i))...)
			send(t, plain, topic, values(mixed)...)
			if commit {
				want = append(want, fmt.Sprintf("%s-%d", v, i))
			}
			want = append(want, mixed)
		}
		if err := tx.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		transaction(fmt.Sprintf("C%d", i), true)
		transaction(fmt.Sprintf("ABORTED%d", i), false)
	}
	end := settled(t, addr, topic) // the last record is a control record
	for _, maxBytes := range []int32{1, 200, 1 << 20} {
		var values []string
		for _, g := range readUntil(t, partition0(t, addr, topic), 0, end, maxBytes) {
			values = append(values, g.Value)
		}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("fetches of %d bytes (-want +got):\n%s", maxBytes, diff)
		}
	}
}

// Records behind an open transaction are not stable: neither fetched nor part
// of the end.
func TestOpenTransactionHidesWhatFollows(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	plain := producer(t, addr)
	send(t, plain, topic, values("before")...)
	tx := producer(t, addr, kgo.TransactionalID(topic))
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	send(t, tx, topic, values("open")...)
	send(t, plain, topic, values("behind")...)
	ctx := deadline(t)
	p := partition0(t, addr, topic, untilEnd)
	if err := p.c.aim(ctx, p); err != nil || p.target != 1 {
		t.Fatalf("target is %d, %v; want 1", p.target, err)
	}
	p.target = 1 << 40
	f, err := p.Fetch(ctx, 0, 1<<20)
	if err != nil || len(f.Messages) != 1 || f.Next != 1 || f.End != 1 {
		t.Fatalf("with a transaction open: %+v, %v", f, err)
	}
	f.Release()
	if err := tx.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	if got := readUntil(t, p, 1, 3, 1<<20); len(got) != 2 || got[1].Value != "behind" {
		t.Errorf("after the commit: %+v", got)
	}
}

// --until-end: exactly the records below the target, whatever stands there,
// and then io.EOF.
func TestTargetInsideABatch(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	c := producer(t, addr)
	send(t, c, topic, values("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")...)
	for target := int64(0); target <= 10; target++ {
		for _, maxBytes := range []int32{1, 1 << 20} {
			p := partition0(t, addr, topic)
			p.target = target
			got := readUntil(t, p, 0, 100, maxBytes)
			if int64(len(got)) != target {
				t.Errorf("target %d: %d records", target, len(got))
			}
			if _, err := p.Fetch(deadline(t), target, maxBytes); err != io.EOF {
				t.Errorf("target %d: error at the end is %v, want io.EOF", target, err)
			}
		}
	}
}

func TestRetentionGap(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	c := producer(t, addr)
	for i := range 10 {
		send(t, c, topic, values(fmt.Sprint(i))...)
	}
	deleteRecords(t, c, topic, 6)
	p := partition0(t, addr, topic)
	ctx := deadline(t)
	var gap *schemas.GapError
	if _, err := p.Fetch(ctx, 2, 1<<20); !errors.As(err, &gap) || gap.Next != 2 || gap.LogStart != 6 {
		t.Errorf("fetch at 2: %v, want a gap up to 6", err)
	}
	gap = nil
	if _, err := p.Check(ctx, schemas.Position{Next: 2}); !errors.As(err, &gap) || gap.LogStart != 6 {
		t.Errorf("check at 2: %v, want a gap up to 6", err)
	}
	// What was committed last may be gone when nothing after it is.
	if _, err := p.Check(ctx, schemas.Position{Next: 6, Last: &schemas.RecordID{Offset: 5}}); err != nil {
		t.Errorf("check at 6: %v", err)
	}
	if got := readUntil(t, p, 6, 10, 1<<20); len(got) != 4 {
		t.Errorf("from 6 on: %+v", got)
	}
}

func TestRecreatedTopicIsNoticed(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	c := producer(t, addr)
	send(t, c, topic, values("a", "b", "c")...)
	p := partition0(t, addr, topic)
	ctx := deadline(t)
	id, err := p.reread(ctx, schemas.RecordID{Offset: 2})
	if err != nil || id == nil {
		t.Fatal(id, err)
	}
	at := schemas.Position{Next: 3, Last: id}
	if _, err := p.Check(ctx, at); err != nil {
		t.Fatalf("the same topic: %v", err)
	}
	if _, err := p.Check(ctx, schemas.Position{Next: 3}); err != nil {
		t.Fatalf("nothing to compare: %v", err)
	}
	deleteTopic(t, c, topic)
	eventually(t, "the topic is gone", func() bool {
		_, err := Describe(ctx, []string{addr}, Security{}, topic)
		return errors.Is(err, ErrNoTopic)
	})
	if err := EnsureTopic(ctx, []string{addr}, Security{}, topic, TopicSpec{Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	var other *schemas.RecreatedError
	if _, err := p.Check(ctx, at); !errors.As(err, &other) || !strings.Contains(err.Error(), "ends at offset 0") {
		t.Errorf("check of an empty new topic: %v", err)
	}
	other = nil
	if _, err := p.Fetch(ctx, 3, 1<<20); !errors.As(err, &other) {
		t.Errorf("fetch beyond the end of a new topic: %v", err)
	}
	send(t, producer(t, addr), topic, values("x", "y", "z", "w")...)
	other = nil
	if _, err := p.Check(ctx, at); !errors.As(err, &other) || !strings.Contains(err.Error(), "offset 2") {
		t.Errorf("check of a filled new topic: %v", err)
	}
}

// Compaction leaves holes, and batches without records.
func TestCompactionHoles(t *testing.T) {
	addr, fake := start(t)
	if fake == nil {
		t.Skip("a real broker compacts when it pleases; TestCompactedBatches holds the bytes it leaves")
	}
	topic := name(t)
	if err := fake.CreateTopic(topic, 1, map[string]string{"cleanup.policy": "compact",
		"segment.bytes": "400"}); err != nil {
		t.Fatal(err)
	}
	c := producer(t, addr)
	for i := range 60 {
		send(t, c, topic, &kgo.Record{Key: []byte(fmt.Sprint(i % 7)), Value: []byte(fmt.Sprint(i))},
			&kgo.Record{Key: []byte("x"), Value: []byte("y")})
	}
	fake.Compact()
	p := partition0(t, addr, topic)
	info, err := Describe(deadline(t), []string{addr}, Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	got := readUntil(t, p, info.Partitions[0].Start, 120, 1<<20)
	if n := len(got); n < 2 || got[n-1].Offset != 119 || got[1].Offset == got[0].Offset+1 {
		t.Fatalf("no hole after the first of the %d of 120 records that are left: %+v", n, got)
	}
	hole := got[0].Offset + 1
	if _, err := p.Check(deadline(t), schemas.Position{Next: hole + 1,
		Last: &schemas.RecordID{Offset: hole}}); err != nil {
		t.Errorf("a record that compaction removed: %v", err)
	}
}

// A log whose tail compaction has removed entirely sends nothing below its end.
func TestUntilEndOverATailWithoutBatches(t *testing.T) {
	addr, fake := start(t)
	if fake == nil {
		t.Skip("needs a broker that can be told to answer so")
	}
	topic := makeTopic(t, addr, 1)
	send(t, producer(t, addr), topic, values("a", "b")...)
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		req := r.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].FetchOffset < 2 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		rt, rp := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		rt.Topic, rt.TopicID, rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = topic,
			req.Topics[0].TopicID, 9, 9, 0
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	p := partition0(t, addr, topic)
	p.target = 9
	if got := readUntil(t, p, 0, 100, 1<<20); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestDamagedBatchIsAnErrorThatNamesTheOffset(t *testing.T) {
	addr, fake := start(t)
	if fake == nil {
		t.Skip("needs a broker that damages its log")
	}
	topic := makeTopic(t, addr, 1)
	for _, v := range []string{"record a", "record b", "record c"} {
		send(t, producer(t, addr), topic, values(v)...)
	}
	raw := rawBatches(t, addr, topic)
	damaged := bytes.Replace(raw, []byte("record b"), []byte("record B"), 1)
	fake.ControlKey(int16(kmsg.Fetch), serve(fake, topic, damaged))
	p := partition0(t, addr, topic)
	f, err := p.Fetch(deadline(t), 0, 1<<20)
	if err != nil || len(f.Messages) != 1 || f.Next != 1 {
		t.Fatalf("before the damage: %+v, %v", f, err)
	}
	f.Release()
	var bad *CorruptError
	_, err = p.Fetch(deadline(t), 1, 1<<20)
	if !errors.As(err, &bad) || bad.Offset != 1 || !strings.Contains(err.Error(), topic+"/0@1") ||
		!strings.Contains(err.Error(), "checksum") {
		t.Errorf("at the damage: %v", err)
	}
}

// serve answers fetches of a topic with the given record set.
func serve(fake *kfake.Cluster, topic string, set []byte) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		resp := r.(*kmsg.FetchRequest).ResponseKind().(*kmsg.FetchResponse)
		rt, rp := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		rt.Topic, rt.TopicID, rp.HighWatermark, rp.LastStableOffset, rp.RecordBatches = topic,
			r.(*kmsg.FetchRequest).Topics[0].TopicID, 1000, 1000, set
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	}
}

// rawBatches returns the record set of partition 0.
func rawBatches(t *testing.T, addr, topic string) []byte {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MinBytes, req.MaxWaitMillis, req.ReplicaID, req.SessionEpoch = 64<<20, 1, 500, -1, -1
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rt.Topic, rp.PartitionMaxBytes = topic, 64<<20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	c := producer(t, addr, kgo.MaxVersions(kversion.V2_4_0()))
	r, err := c.Broker(0).Request(deadline(t), req)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(r.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches)
}

// A leader that moves is found again without an error.
func TestLeaderChange(t *testing.T) {
	t.Parallel()
	addr, fake := start(t, kfake.NumBrokers(2))
	if fake == nil {
		t.Skip("needs two brokers that can be told to swap")
	}
	topic := makeTopic(t, addr, 1)
	c := producer(t, addr)
	p := partition0(t, addr, topic)
	for i := range int64(3) {
		if err := fake.MoveTopicPartition(topic, 0, int32(i%2)); err != nil {
			t.Fatal(err)
		}
		send(t, c, topic, values(fmt.Sprint(i))...)
		if got := readUntil(t, p, i, i+1, 1<<20); len(got) != 1 || got[0].Value != fmt.Sprint(i) {
			t.Fatalf("after move %d: %+v", i, got)
		}
	}
}

// A fetch ends at once with its context, and not when the broker answers.
func TestFetchEndsWithItsContext(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	p := partition0(t, addr, topic, func(c *Config) { c.Timing.Poll = 2 * hangs })
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	began := time.Now()
	if _, err := p.Fetch(ctx, 0, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if d := time.Since(began); d > hangs {
		t.Errorf("a fetch went on for %v after its context had ended", d-300*time.Millisecond)
	}
}
