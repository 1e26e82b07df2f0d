//go:build !race

package ingest

import (
	"bufio"
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What is read around the records of a fetch by id takes no memory beyond that
// of a fetch by name.
func TestFetchesByIDAllocateNoMore(t *testing.T) {
	byID := fetchAnswer(someID, nil)
	named := kmsg.NewFetchResponse()
	named.Version = 11
	rt, rp := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
	rt.Topic, rt.Partitions = "t", append(rt.Partitions, rp)
	named.Topics = append(named.Topics, rt)
	byName := framed(correlation, named.AppendTo(nil))
	d := &decoder{topic: "t", maxValue: 1 << 18}
	free := &freeList{limit: freeLimit}
	in := bytes.NewReader(nil)
	conn := &guarded{Conn: &wire{r: in}, ctx: t.Context(), each: time.Minute}
	f := &fetchCall{topicID: someID, dec: d, ans: new(answer), br: bufio.NewReaderSize(nil, readBuffer),
		Request: &fetch.Request{
			Topics: []fetch.RequestTopic{{Topic: "t", Partitions: make([]fetch.RequestPartition, 1)}}}}
	measure := func(version int16, raw []byte) float64 {
		return testing.AllocsPerRun(5, func() {
			in.Reset(raw)
			f.version = version
			d.prepare(f.ans, free, 0, math.MaxInt64, 1<<16)
			if version == fetchByIDVersion {
				f.buf = f.appendByID(f.buf[:0])
			}
			if err := f.read(conn); err != nil {
				t.Fatal(err)
			}
		})
	}
	if id, name := measure(fetchByIDVersion, byID), measure(11, byName); id > name {
		t.Errorf("%v allocations by id, %v by name", id, name)
	}
}
