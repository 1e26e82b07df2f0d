package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"entropipe/schemas"
)

// age is a version of brokers, by what it knows of topics' ids.
type age struct {
	name   string
	opts   []kfake.Opt
	ids    bool // topics have ids
	fenced bool // fetches can name them
}

var ages = []age{
	{"newest", nil, true, true},
	{"3.1", []kfake.Opt{kfake.MaxVersions(kversion.V3_1_0())}, true, true},
	{"3.0 with ids alone", []kfake.Opt{kfake.MaxVersions(kversion.V3_0_0())}, true, false},
	{"2.8 with ids alone", []kfake.Opt{kfake.MaxVersions(kversion.V2_8_0())}, true, false},
	{"2.7 without ids", []kfake.Opt{kfake.MaxVersions(kversion.V2_7_0())}, false, false},
}

// eachAge runs f on brokers of every age. A real broker has its own: f runs once
// there, on one with everything.
func eachAge(t *testing.T, f func(t *testing.T, a age)) {
	of := ages
	if realBroker {
		of = ages[:1]
	}
	for _, a := range of {
		t.Run(a.name, func(t *testing.T) { f(t, a) })
	}
}

// remake deletes a topic and creates it again.
func remake(t *testing.T, addr, topic string, partitions int) {
	t.Helper()
	deleteTopic(t, producer(t, addr), topic)
	eventually(t, "the topic is gone", func() bool {
		_, err := Describe(deadline(t), []string{addr}, Security{}, topic)
		return errors.Is(err, ErrNoTopic)
	})
	if err := EnsureTopic(deadline(t), []string{addr}, Security{}, topic,
		TopicSpec{Partitions: partitions, MaxMessageBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
}

// numbered makes n records.
func numbered(what string, n int) (rs []*kgo.Record) {
	for i := range n {
		rs = append(rs, values(fmt.Sprint(what, " ", i))...)
	}
	return rs
}

// readOn reads from offset from on until an error comes, and fails for every
// record that is not an old one.
func readOn(t *testing.T, p *Partition, from int64) error {
	t.Helper()
	for {
		f, err := p.Fetch(deadline(t), from, 1<<20)
		if err != nil {
			return err
		}
		for _, m := range f.Messages {
			if !strings.HasPrefix(string(m.Value), "old") {
				t.Fatalf("offset %d of the new topic was read: %s", m.Offset, m.Value)
			}
		}
		if from = f.Next; f.Release != nil {
			f.Release()
		}
	}
}

// The reader has a part of a topic and waits for memory: nothing of it is on its
// way to the brokers. Meanwhile the topic is deleted, created and filled with
// more than there was, so no request ever finds it missing.
func TestTopicRemadeWhileNobodyFetches(t *testing.T) {
	t.Parallel()
	eachAge(t, func(t *testing.T, g age) {
		addr, _ := start(t, g.opts...)
		topic := makeTopic(t, addr, 1)
		send(t, producer(t, addr), topic, numbered("old", 500)...)
		p := partition0(t, addr, topic)
		id, err := p.Check(deadline(t), schemas.Position{})
		if err != nil || id.IsZero() == g.ids {
			t.Fatalf("id %s, %v", id, err)
		}
		f, err := p.Fetch(deadline(t), 0, 1) // one batch
		if err != nil || len(f.Messages) == 0 {
			t.Fatal(f, err)
		}
		last := f.Messages[len(f.Messages)-1].ID()
		f.Release()
		remake(t, addr, topic, 1)
		send(t, producer(t, addr), topic, numbered("new", 900)...)
		var other *schemas.RecreatedError
		if g.ids {
			if err := readOn(t, p, f.Next); !errors.As(err, &other) || other.Was != id ||
				other.Is.IsZero() || other.Is == id {
				t.Errorf("reading on: %v", err)
			}
		}
		// Without ids nothing is to be noticed before the partition is resumed.
		other = nil
		if _, err := p.Check(deadline(t), schemas.Position{Next: f.Next, Last: &last, TopicID: id}); !errors.As(err,
			&other) {
			t.Errorf("resuming: %v", err)
		}
	})
}

// The same while a fetch waits for records at the log's end.
func TestTopicRemadeDuringAFetch(t *testing.T) {
	t.Parallel()
	eachAge(t, func(t *testing.T, g age) {
		addr, fake := start(t, g.opts...)
		topic := makeTopic(t, addr, 2)
		send(t, producer(t, addr), topic, numbered("old", 5)...)
		p := partition0(t, addr, topic)
		if _, err := p.Check(deadline(t), schemas.Position{}); err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int64
		if fake != nil {
			fake.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				fake.KeepControl()
				asked.Add(1)
				return nil, nil, false
			})
		}
		ended := make(chan error, 1)
		go func() { ended <- readOn(t, p, 0) }()
		if fake != nil {
			eventually(t, "a fetch waits at the end", func() bool { return asked.Load() > 3 })
		}
		remake(t, addr, topic, 2)
		send(t, producer(t, addr), topic, numbered("new", 900)...)
		var other *schemas.RecreatedError
		if err := <-ended; !errors.As(err, &other) {
			t.Errorf("%v", err)
		}
	})
}

// A partition that the new topic has not.
func TestTopicRemadeWithFewerPartitions(t *testing.T) {
	t.Parallel()
	eachAge(t, func(t *testing.T, g age) {
		if !g.ids {
			t.Skip("another partition count says nothing to brokers without ids")
		}
		addr, _ := start(t, g.opts...)
		topic := makeTopic(t, addr, 2)
		c := consumer(t, addr, []string{topic})
		p, q := c.partition(topic, 1, &generation{}), c.partition(topic, 1, &generation{})
		id, err := p.Check(deadline(t), schemas.Position{})
		if err != nil {
			t.Fatal(err)
		}
		remake(t, addr, topic, 1)
		var other *schemas.RecreatedError
		if err := readOn(t, p, 0); !errors.As(err, &other) {
			t.Errorf("reading on: %v", err)
		}
		other = nil
		if _, err := q.Check(deadline(t), schemas.Position{TopicID: id}); !errors.As(err, &other) {
			t.Errorf("resuming: %v", err)
		}
	})
}

// What comes back under the same name is another topic, also with the same
// records. A mirror looks just so; Holds tells one from the other.
func TestEqualRecordsInAnotherTopic(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	fill := func() {
		rs := numbered("old", 9)
		for i, r := range rs {
			r.Timestamp = longAgo.Add(millis(i))
		}
		send(t, producer(t, addr), topic, rs...)
	}
	fill()
	p := partition0(t, addr, topic)
	id, err := p.Check(deadline(t), schemas.Position{})
	if err != nil {
		t.Fatal(err)
	}
	last, err := p.reread(deadline(t), schemas.RecordID{Offset: 6})
	if err != nil || last == nil {
		t.Fatal(last, err)
	}
	remake(t, addr, topic, 1)
	fill()
	at := schemas.Position{Next: 7, Last: last, TopicID: id}
	var other *schemas.RecreatedError
	if _, err := p.Check(deadline(t), at); !errors.As(err, &other) || other.Was != id ||
		!strings.Contains(err.Error(), "--accept-topic "+topic) {
		t.Errorf("check: %v", err)
	}
	c := consumer(t, addr, []string{topic})
	if _, err := c.Starts(deadline(t), topic, "earliest"); err != nil {
		t.Fatal(err)
	}
	if is := c.TopicID(topic); is != other.Is {
		t.Errorf("Starts has found %s, Check %s", is, other.Is)
	}
	if err := c.Holds(deadline(t), topic, 0, at); err != nil {
		t.Errorf("the mirror does not hold: %v", err)
	}
	if err := c.Holds(deadline(t), topic, 0, schemas.Position{Next: 9}); err != nil {
		t.Errorf("at the end, with nothing read: %v", err)
	}
	for what, at := range map[string]schemas.Position{
		"another record":        {Next: 7, Last: &schemas.RecordID{Offset: 6, CRC32C: last.CRC32C ^ 1}},
		"the record before":     {Next: 6, Last: &schemas.RecordID{Offset: 5, CRC32C: last.CRC32C}},
		"a record that is gone": {Next: 10, Last: &schemas.RecordID{Offset: 9, CRC32C: last.CRC32C}},
		"nothing, beyond":       {Next: 10},
	} {
		if err := c.Holds(deadline(t), topic, 0, at); err == nil {
			t.Errorf("%s holds", what)
		}
	}
}

// An output that was begun without ids takes the id of the topic that continues
// it; one that has an id keeps it where brokers have none.
func TestIDsComeAndGo(t *testing.T) {
	t.Parallel()
	eachAge(t, func(t *testing.T, g age) {
		addr, _ := start(t, g.opts...)
		topic := makeTopic(t, addr, 1)
		send(t, producer(t, addr), topic, numbered("old", 3)...)
		p := partition0(t, addr, topic)
		last, err := p.reread(deadline(t), schemas.RecordID{Offset: 2})
		if err != nil || last == nil {
			t.Fatal(last, err)
		}
		at := schemas.Position{Next: 3, Last: last}
		id, err := p.Check(deadline(t), at)
		if err != nil || id.IsZero() == g.ids {
			t.Errorf("without an id before: %s, %v", id, err)
		}
		var other *schemas.RecreatedError
		at.TopicID = schemas.TopicID{1, 2, 3}
		id, err = p.Check(deadline(t), at)
		if g.ids {
			if !errors.As(err, &other) || other.Was != at.TopicID {
				t.Errorf("with another id before: %v", err)
			}
			return
		}
		if err != nil || id != at.TopicID {
			t.Errorf("with an id before: %s, %v", id, err)
		}
		send(t, producer(t, addr), topic, numbered("old", 1)...)
		if got := readUntil(t, p, 3, 4, 1<<20); len(got) != 1 {
			t.Errorf("%+v", got)
		}
		at.Last.CRC32C ^= 1
		if _, err = p.Check(deadline(t), at); !errors.As(err, &other) {
			t.Errorf("with another record: %v", err)
		}
	})
}

// A broker that does not know the id for a moment, as while a leader moves, is
// asked again.
func TestIDUnknownForAMoment(t *testing.T) {
	t.Parallel()
	addr, fake := start(t)
	if fake == nil {
		t.Skip("needs a broker that can be told to answer so")
	}
	topic := makeTopic(t, addr, 1)
	send(t, producer(t, addr), topic, numbered("old", 3)...)
	codes := []int16{100, 103, 3, 6, 100, 100, 100, 100, 100, 3} // more in a row than other ids may come
	var asked atomic.Int64
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		n := int(asked.Add(1)) - 1
		if n >= len(codes) {
			return nil, nil, false
		}
		req := r.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		rt, rp := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		rt.TopicID, rp.ErrorCode, rp.HighWatermark, rp.LastStableOffset = req.Topics[0].TopicID, codes[n], -1, -1
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	if got := readUntil(t, partition0(t, addr, topic), 0, 3, 1<<20); len(got) != 3 ||
		asked.Load() != int64(len(codes))+1 {
		t.Errorf("%d fetches brought %+v", asked.Load(), got)
	}
}

// withID makes the broker tell another id for a topic, n times.
func withID(fake *kfake.Cluster, topic string, id schemas.TopicID, n int64) {
	var told atomic.Int64
	fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		req := r.(*kmsg.MetadataRequest)
		if req.Version < metadataWithIDs || len(req.Topics) != 1 || *req.Topics[0].Topic != topic || told.Add(1) > n {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		rt := kmsg.NewMetadataResponseTopic()
		rt.Topic, rt.TopicID = &topic, id
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
}

// A broker that lags behind names the id that a topic had before: one answer
// proves nothing.
func TestBrokerThatLagsBehind(t *testing.T) {
	t.Parallel()
	addr, fake := start(t)
	if fake == nil {
		t.Skip("needs a broker that can be told to answer so")
	}
	for lag := range int64(otherEnough + 1) {
		topic := makeTopic(t, addr, 1)
		c := consumer(t, addr, []string{topic})
		if _, err := c.Starts(deadline(t), topic, "earliest"); err != nil {
			t.Fatal(err)
		}
		withID(fake, topic, schemas.TopicID{9}, lag)
		id, err := c.partition(topic, 0, &generation{}).Check(deadline(t), schemas.Position{TopicID: c.TopicID(topic)})
		var other *schemas.RecreatedError
		if lag < otherEnough && (err != nil || id != c.TopicID(topic)) ||
			lag >= otherEnough && !errors.As(err, &other) {
			t.Errorf("after %d answers with another id: %s, %v", lag, id, err)
		}
	}
}

// The start of a topic and its id belong together, although they come from
// different requests.
func TestTopicRemadeBetweenItsIDAndItsStart(t *testing.T) {
	addr, fake := start(t)
	if fake == nil {
		t.Skip("needs a broker that can be told to answer so")
	}
	topic := makeTopic(t, addr, 1)
	c := consumer(t, addr, []string{topic})
	withID(fake, topic, schemas.TopicID{9}, 1)
	if _, err := c.Starts(deadline(t), topic, "earliest"); err != nil || c.TopicID(topic) == (schemas.TopicID{9}) {
		t.Errorf("the topic is %s, %v", c.TopicID(topic), err)
	}
}

// Who reads without Check, as train does, reads the topic that Starts has found.
func TestTopicRemadeBetweenStartsAndTheFirstFetch(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	send(t, producer(t, addr), topic, numbered("old", 3)...)
	c := consumer(t, addr, []string{topic}, untilEnd)
	if _, err := c.Starts(deadline(t), topic, "earliest"); err != nil {
		t.Fatal(err)
	}
	remake(t, addr, topic, 1)
	send(t, producer(t, addr), topic, numbered("new", 9)...)
	var other *schemas.RecreatedError
	err := c.Run(deadline(t), func(_ context.Context, p *Partition) error {
		if err := readOn(t, p, 0); !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	})
	if !errors.As(err, &other) {
		t.Errorf("%v", err)
	}
}
