package ingest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/twmb/franz-go/pkg/kmsg"

	"entropipe/schemas"
)

// asKmsg is a request as another library writes it.
func asKmsg(r kmsg.Request, version int16, correlation int32, clientID string) []byte {
	r.SetVersion(version)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, r, correlation)
}

func TestRequestsByIDAreThoseOfAnotherLibrary(t *testing.T) {
	for range 100 {
		part := fetch.RequestPartition{Partition: rand.Int32(), CurrentLeaderEpoch: -1, FetchOffset: rand.Int64(),
			LogStartOffset: -1, PartitionMaxBytes: rand.Int32()}
		f := fetchCall{clientID: "someone", topicID: schemas.TopicID{1, byte(rand.Int()), 3},
			Request: &fetch.Request{ReplicaID: -1, MaxWaitTime: rand.Int32(), MinBytes: 1, MaxBytes: rand.Int32(),
				IsolationLevel: readCommitted, SessionEpoch: -1,
				Topics: []fetch.RequestTopic{{Topic: "t", Partitions: []fetch.RequestPartition{part}}}}}
		want := kmsg.NewFetchRequest()
		want.ReplicaID, want.MaxWaitMillis, want.MinBytes, want.MaxBytes, want.IsolationLevel, want.SessionEpoch = -1,
			f.MaxWaitTime, 1, f.MaxBytes, 1, -1
		rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		rt.TopicID = f.topicID
		rp.Partition, rp.CurrentLeaderEpoch, rp.FetchOffset, rp.LogStartOffset, rp.PartitionMaxBytes = part.Partition,
			-1, part.FetchOffset, -1, part.PartitionMaxBytes
		rt.Partitions = append(rt.Partitions, rp)
		want.Topics = append(want.Topics, rt)
		if diff := cmp.Diff(asKmsg(&want, fetchByIDVersion, correlation, "someone"), f.appendByID(nil)); diff != "" {
			t.Fatalf("fetch (-want +got):\n%s", diff)
		}
	}
	for _, topic := range []string{"t", string(bytes.Repeat([]byte("x"), 249))} {
		for version := int16(metadataWithIDs); version <= metadataMost; version++ {
			want, rt := kmsg.NewMetadataRequest(), kmsg.NewMetadataRequestTopic()
			rt.Topic = &topic
			want.Topics = append(want.Topics, rt)
			if diff := cmp.Diff(asKmsg(&want, version, correlationTopic, "someone"),
				appendTopicRequest(nil, version, topic, "someone")); diff != "" {
				t.Fatalf("metadata %d (-want +got):\n%s", version, diff)
			}
		}
	}
	want := kmsg.NewApiVersionsRequest()
	if diff := cmp.Diff(asKmsg(&want, 0, correlationVersions, "someone"),
		sized(appendHead(nil, protocol.ApiVersions, 0, correlationVersions, "someone"))); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

// tagged are tagged fields that this program does not know.
func tagged() (tags kmsg.Tags) {
	tags.Set(70, []byte("unknown"))
	tags.Set(1<<20, bytes.Repeat([]byte{7}, 300))
	return tags
}

// fetchAnswer is an answer to a fetch by id, after its length.
func fetchAnswer(id schemas.TopicID, set []byte, change ...func(*kmsg.FetchResponse)) []byte {
	r := kmsg.NewFetchResponse()
	r.Version = fetchByIDVersion
	rt, rp := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	rt.TopicID, rt.UnknownTags = id, tagged()
	rp.HighWatermark, rp.LastStableOffset, rp.RecordBatches, rp.UnknownTags = 70, 60, set, tagged()
	for _, tx := range []abortedTx{{7, 30}, {8, 20}} {
		a := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
		a.ProducerID, a.FirstOffset, a.UnknownTags = tx.producer, tx.first, tagged()
		rp.AbortedTransactions = append(rp.AbortedTransactions, a)
	}
	rp.CurrentLeader.LeaderID = 3 // a known tag, of which this program has no use
	rt.Partitions, r.UnknownTags = append(rt.Partitions, rp), tagged()
	r.Topics = append(r.Topics, rt)
	for _, f := range change {
		f(&r)
	}
	return framed(correlation, append([]byte{0}, r.AppendTo(nil)...))
}

// framed puts the length and the number of the request before the rest of an
// answer.
func framed(id uint32, rest []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(rest)+4))
	return append(binary.BigEndian.AppendUint32(b, id), rest...)
}

// wire is a connection that yields bytes and swallows what is written.
type wire struct {
	net.Conn
	r io.Reader
}

func (w *wire) Read(b []byte) (int, error)     { return w.r.Read(b) }
func (w *wire) Write(b []byte) (int, error)    { return len(b), nil }
func (*wire) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*wire) SetReadDeadline(time.Time) error  { return nil }
func (*wire) SetWriteDeadline(time.Time) error { return nil }
func (*wire) SetDeadline(time.Time) error      { return nil }

func wired(t testing.TB, b []byte) *guarded {
	return &guarded{Conn: &wire{r: bytes.NewReader(b)}, ctx: t.Context(), each: time.Minute}
}

// answered reads an answer to a fetch by id, as exchange does.
func answered(t testing.TB, id schemas.TopicID, raw []byte) (*fetchCall, error) {
	d := &decoder{topic: "t", maxValue: 1 << 18}
	d.prepare(new(answer), &freeList{limit: freeLimit}, 0, math.MaxInt64, 1<<16)
	f := &fetchCall{topicID: id, version: fetchByIDVersion, dec: d, ans: d.out,
		br: bufio.NewReaderSize(nil, readBuffer)}
	return f, f.read(wired(t, raw))
}

var someID = schemas.TopicID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func TestAnswersByIDAreReadAsAnotherLibraryWritesThem(t *testing.T) {
	set := batchOf(0, 1, [][]byte{rec(0, []byte("a")), rec(1, []byte("b"))})
	f, err := answered(t, someID, fetchAnswer(someID, set, func(r *kmsg.FetchResponse) { r.ThrottleMillis = 3 }))
	if a := f.ans; err != nil || a.err != nil || len(a.messages) != 2 || a.stable != 60 || a.next != 2 ||
		!a.throttled || a.wire != int64(len(set)) {
		t.Errorf("%+v, %v", f.ans, err)
	}
	if diff := cmp.Diff([]abortedTx{{8, 20}, {7, 30}}, f.dec.abortedL, cmp.AllowUnexported(abortedTx{})); diff != "" {
		t.Errorf("aborted transactions (-want +got):\n%s", diff)
	}
	for _, none := range [][]byte{nil, {}} {
		if f, err := answered(t, someID, fetchAnswer(someID, none)); err != nil || f.ans.err != nil ||
			len(f.ans.messages) != 0 || f.ans.next != 0 {
			t.Errorf("without records: %+v, %v", f.ans, err)
		}
	}
	null := func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].AbortedTransactions = nil }
	if f, err := answered(t, someID, fetchAnswer(someID, set, null)); err != nil || len(f.ans.messages) != 2 {
		t.Errorf("with null for no transactions: %+v, %v", f.ans, err)
	}
	refused := func(r *kmsg.FetchResponse) { r.Topics, r.ErrorCode = nil, 29 }
	if f, err := answered(t, someID, fetchAnswer(someID, nil, refused)); err != nil || f.ans.code != 29 {
		t.Errorf("refused as a whole: %+v, %v", f.ans, err)
	}
	failed := func(r *kmsg.FetchResponse) { r.Topics[0].Partitions[0].ErrorCode = 100 }
	if f, err := answered(t, someID, fetchAnswer(someID, nil, failed)); err != nil || f.ans.code != 100 {
		t.Errorf("refused in the partition: %+v, %v", f.ans, err)
	}
}

// Nothing that an answer says of itself is believed.
func TestImpossibleAnswersByID(t *testing.T) {
	set := batchOf(0, 0, [][]byte{rec(0, []byte("a"))})
	good := fetchAnswer(someID, set)
	head := append([]byte{0}, make([]byte, 10)...) // no tags, throttle time, code, session
	topic := append(append(bytes.Clone(head), 2), someID[:]...)
	part := append(append(bytes.Clone(topic), 2), make([]byte, 30)...) // number, code, watermarks, log start
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	with := func(b []byte, more ...byte) []byte { return framed(correlation, append(bytes.Clone(b), more...)) }
	for name, raw := range map[string][]byte{
		"nothing":                {},
		"another request's":      framed(correlation+1, good[8:]),
		"a negative length":      {0xff, 0xff, 0xff, 0xff, 0, 0, 0, correlation},
		"another topic's":        fetchAnswer(schemas.TopicID{9}, set),
		"no topic and no reason": fetchAnswer(someID, nil, func(r *kmsg.FetchResponse) { r.Topics = nil }),
		"no partition": fetchAnswer(someID, nil,
			func(r *kmsg.FetchResponse) { r.Topics[0].Partitions = nil }),
		"two topics": fetchAnswer(someID, nil,
			func(r *kmsg.FetchResponse) { r.Topics = append(r.Topics, r.Topics...) }),
		"4 billion tags":               with(huge),
		"a tag of 4 GB":                with([]byte{1, 0}, huge...),
		"an endless count":             with(head, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"a count of more than 32 bits": with(head, 0xff, 0xff, 0xff, 0xff, 0x1f),
		"4 billion topics":             with(head, huge...),
		"4 billion partitions":         with(topic, huge...),
		"4 billion transactions":       with(part, huge...),
		"a million transactions":       with(part, 0x80, 0x80, 0x40),
		"a record set of 4 GB":         with(append(append(bytes.Clone(part), 1), 0, 0, 0, 0), huge...),
		"a record set of 2 GB, cut off": with(append(append(bytes.Clone(part), 1), 0, 0, 0, 0), 0xff,
			0xff, 0xff, 0xff, 0x07),
	} {
		f, err := answered(t, someID, raw)
		if err == nil && f.ans.err == nil && f.ans.wire < 1<<30 || len(f.ans.messages) > 0 {
			t.Errorf("%s: %+v, %v", name, f.ans, err)
		}
		if held := f.dec.arena.held() + int64(cap(f.dec.abortedL))*16; held > 1<<20 {
			t.Errorf("%s: holds %d bytes", name, held)
		}
	}
	for cut := range good { // at any byte
		if f, err := answered(t, someID, good[:cut]); err == nil {
			t.Errorf("cut after %d of %d bytes: %+v", cut, len(good), f.ans)
		}
	}
}

// topicInfo is an answer about a topic, after its length.
func topicInfo(version int16, topic string, id schemas.TopicID, code int16) []byte {
	r, cluster := kmsg.NewMetadataResponse(), "the cluster"
	r.Version, r.ClusterID, r.UnknownTags = version, &cluster, tagged()
	for i := range int32(3) {
		b, rack := kmsg.NewMetadataResponseBroker(), "rack"
		if b.NodeID, b.Host, b.Port, b.UnknownTags = i, "host", 9092, tagged(); i > 0 {
			b.Rack = &rack
		}
		r.Brokers = append(r.Brokers, b)
	}
	rt, rp := kmsg.NewMetadataResponseTopic(), kmsg.NewMetadataResponseTopicPartition()
	rp.Replicas, rp.ISR, rp.UnknownTags = []int32{0, 1, 2}, []int32{0}, tagged()
	rt.Topic, rt.TopicID, rt.ErrorCode, rt.Partitions, rt.UnknownTags = &topic, id, code,
		append(rt.Partitions, rp), tagged()
	r.Topics = append(r.Topics, rt)
	return framed(correlationTopic, append([]byte{0}, r.AppendTo(nil)...))
}

// spoken is what a broker answers about its versions, after its length.
func spoken(keys ...kmsg.ApiVersionsResponseApiKey) []byte {
	r := kmsg.NewApiVersionsResponse()
	r.ApiKeys = keys
	return framed(correlationVersions, r.AppendTo(nil))
}

func key(k protocol.ApiKey, least, most int16) kmsg.ApiVersionsResponseApiKey {
	return kmsg.ApiVersionsResponseApiKey{ApiKey: int16(k), MinVersion: least, MaxVersion: most}
}

func TestTopicsAreAskedInTheVersionThatBrokersHave(t *testing.T) {
	cases := []struct {
		least, most, version int16
		ids                  bool
	}{{0, 13, 12, true}, {0, 12, 12, true}, {0, 11, 11, true}, {0, 10, 10, true}, {12, 14, 12, true}, {0, 9, 0, false},
		{13, 15, 0, false}}
	for _, c := range cases {
		raw := bytes.Join([][]byte{spoken(key(protocol.Produce, 0, 9), key(protocol.Metadata, c.least, c.most),
			key(-1, 1, 2), key(999, 0, 1)), topicInfo(c.version, "t", someID, 0)}, nil)
		a, err := askTopic(wired(t, raw), bufio.NewReader(nil), "t", "me")
		if err != nil || a.withIDs != c.ids || c.ids && (a.id != someID || a.cluster != "the cluster" || a.code != 0) {
			t.Errorf("versions %d to %d: %+v, %v", c.least, c.most, a, err)
		}
	}
}

func TestImpossibleAnswersAboutTopics(t *testing.T) {
	versions := spoken(key(protocol.Metadata, 0, 12))
	good := topicInfo(12, "t", someID, 0)
	nobody := kmsg.NewMetadataResponse()
	nobody.Version = 12
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	for name, raw := range map[string][]byte{
		"about another topic":   topicInfo(12, "u", someID, 0),
		"about none":            framed(correlationTopic, append([]byte{0}, nobody.AppendTo(nil)...)),
		"of another request":    framed(correlation, good[8:]),
		"4 billion tags":        framed(correlationTopic, huge),
		"4 billion brokers":     framed(correlationTopic, append([]byte{0, 0, 0, 0, 0}, huge...)),
		"a cluster's id of 4 G": framed(correlationTopic, append([]byte{0, 0, 0, 0, 0, 1}, huge...)),
	} {
		if a, err := askTopic(wired(t, append(bytes.Clone(versions), raw...)), bufio.NewReader(nil), "t",
			"me"); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	all := append(bytes.Clone(versions), good...)
	for cut := range all {
		if a, err := askTopic(wired(t, all[:cut]), bufio.NewReader(nil), "t", "me"); err == nil {
			t.Errorf("cut after %d of %d bytes: %+v", cut, len(all), a)
		}
	}
	if _, err := askTopic(wired(t, framed(correlationVersions, []byte{0, 35, 0, 0, 0, 0})), bufio.NewReader(nil), "t",
		"me"); err == nil {
		t.Error("a broker that does not tell its versions passes")
	}
}

// FuzzAnswerByID: no answer may panic the parser, hang it, or make it hold more
// than a small multiple of what it was given.
func FuzzAnswerByID(f *testing.F) {
	f.Add(fetchAnswer(someID, batchOf(0, 1, [][]byte{rec(0, []byte("a")), rec(1, nil)})))
	f.Add(fetchAnswer(someID, nil))
	f.Add(fetchAnswer(someID, nil, func(r *kmsg.FetchResponse) { r.Topics, r.ErrorCode = nil, 3 }))
	f.Add(topicInfo(12, "t", someID, 0))
	f.Add(spoken(key(protocol.Metadata, 0, 12)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) >= 8 { // past the length and the number
			raw = framed(correlation, raw[8:])
		}
		got, err := answered(t, someID, raw)
		if err == nil && got.ans.code == 0 && got.ans.next < 0 {
			t.Fatalf("%+v", got.ans)
		}
		if held := got.dec.arena.held() + got.ans.extra + int64(cap(got.dec.abortedL))*16; held > int64(len(raw))*4+
			4<<20 {
			t.Fatalf("%d bytes make it hold %d", len(raw), held)
		}
		if len(raw) < 8 {
			return
		}
		for _, version := range []int16{10, 11, 12} {
			h := header{r: bufio.NewReader(bytes.NewReader(raw[8:])), version: version}
			h.topic(&topicAnswer{topic: "t"})
		}
		new(link).ask(wired(t, framed(correlationVersions, raw[8:])), bufio.NewReader(nil), "me")
	})
}
