package ingest

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"

	"entropipe/schemas"
)

// The batches are those of kafka-go, byte by byte, whatever of a record is null, empty, small
// or large.
func TestBatchPartsAreKafkas(t *testing.T) {
	sent := time.UnixMilli(1_700_000_000_123)
	large := bytes.Repeat([]byte("0123456789abcde"), 10_000)
	whole := make([]byte, wholeValue)
	headers := []schemas.Header{{Key: "schema", Value: []byte("points/1")}, {Key: "", Value: nil},
		{Key: "empty", Value: []byte{}}}
	for name, records := range map[string][]schemas.Record{
		"small":      {{Key: []byte("k"), Value: []byte("v")}},
		"null":       {{}},
		"empty":      {{Key: []byte{}, Value: []byte{}}},
		"headers":    {{Value: []byte("v"), Headers: headers}},
		"large":      {{Key: []byte("drive"), Value: large, Headers: headers}},
		"just whole": {{Value: whole}, {Value: whole[1:]}},
		"large and small": {{Value: []byte("a")}, {Value: large, Headers: headers}, {Value: large},
			{Value: []byte("b")}},
		"many": make([]schemas.Record, 300),
	} {
		batch := make([]message, len(records))
		theirs := make([]kafka.Record, len(records))
		for i := range records {
			r := &records[i]
			batch[i] = message{Record: r}
			theirs[i] = kafka.Record{Time: sent, Key: kafka.NewBytes(r.Key), Value: kafka.NewBytes(r.Value)}
			for _, h := range r.Headers {
				theirs[i].Headers = append(theirs[i].Headers, kafka.Header{Key: h.Key, Value: h.Value})
			}
		}
		var want bytes.Buffer
		set := protocol.RecordSet{Version: 2, Records: protocol.NewRecordReader(theirs...)}
		if _, err := set.WriteTo(&want); err != nil {
			t.Fatal(err)
		}
		got := bytes.Join(batchParts(batch, sent, nil), nil)
		if behind := want.Bytes()[4:]; !bytes.Equal(got, behind) { // kafka-go writes the size before it
			t.Errorf("%s: %d bytes, want %d\n%.200x\n%.200x", name, len(got), len(behind), got, behind)
		}
	}
}

// A broker of before Kafka 0.11 is named, instead of a request that it cannot read.
func TestProduceNamesOldBrokers(t *testing.T) {
	p := newProduceCall("t", 0, "c", []message{{Record: &schemas.Record{Value: []byte("v")}}}, time.Now(), nil)
	p.Required(map[protocol.ApiKey]int16{protocol.Produce: 2})
	if _, err := p.RawExchange(new(bytes.Buffer)); err == nil ||
		err.Error() != "the broker is older than Kafka 0.11 (produce version 2)" {
		t.Error(err)
	}
}

// The request is one that kafka-go reads, in every version that it may be sent in.
func TestProduceRequestIsKafkas(t *testing.T) {
	for version := int16(minProduceVersion); version <= 8; version++ {
		p := newProduceCall("topic", 3, "client", []message{{Record: &schemas.Record{Key: []byte("k"),
			Value: make([]byte, 100_000)}}}, time.UnixMilli(1), nil)
		p.version = version
		b := bytes.Join(append([][]byte{p.head()}, p.parts...), nil)
		if size := binary.BigEndian.Uint32(b); int(size) != len(b)-4 {
			t.Fatalf("version %d: the size is %d of %d bytes", version, size, len(b))
		}
		_, _, client, m, err := protocol.ReadRequest(bytes.NewReader(b))
		if err != nil || client != "client" {
			t.Fatalf("version %d: %v of client %q", version, err, client)
		}
		r := m.(*produce.Request)
		if len(r.Topics) != 1 || r.Topics[0].Topic != "topic" || len(r.Topics[0].Partitions) != 1 ||
			r.Topics[0].Partitions[0].Partition != 3 || r.Acks != -1 || r.Timeout != 10_000 {
			t.Errorf("version %d: %+v", version, r)
		}
	}
}
