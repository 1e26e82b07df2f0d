package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"entropipe/schemas"
)

// transactional returns an outbox of topic survivors, with one partition, that fences name.
func transactional(t *testing.T, addr, name string) *Outbox {
	t.Helper()
	o := openOutbox(t, addr, func(c *OutboxConfig) { c.Create.Partitions = 1; c.Chunk = 1000 })
	if err := o.Fence(deadline(t), name); err != nil {
		t.Fatal(err)
	}
	return o
}

// some are n records, of which one in three comes in chunks.
func some(what string, n int) (rs []*schemas.Record) {
	for i := range n {
		r := &schemas.Record{Value: fmt.Appendf(nil, "%s %d", what, i)}
		if i%3 == 0 {
			r.Value = fmt.Appendf(nil, "%-2500s", r.Value)
		}
		rs = append(rs, r)
	}
	return rs
}

// committed returns the values of topic survivors.
func committed(t *testing.T, addr string) (values []string) {
	t.Helper()
	l, err := OpenLookup(deadline(t), []string{addr}, Security{}, "survivors", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = l.Each(deadline(t), 0, 0, l.Partitions[0].End, func(m *schemas.Message) (bool, error) {
		values = append(values, string(m.Value))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// Of two outboxes of one name the later one alone may send, and what the earlier one had not
// committed is never there. Other names are left alone.
func TestFencedOutboxSendsNothing(t *testing.T) {
	b := tellingBroker(t)
	ctx := deadline(t)
	first, other := transactional(t, b.Addr(), "one"), transactional(t, b.Addr(), "two")
	for round := range 2 {
		if err := first.Transact(ctx, some("first", 4)); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if err := first.Send(ctx, &schemas.Record{Value: []byte("open")}, func() {}); err != nil {
		t.Fatal(err)
	}
	second := transactional(t, b.Addr(), "one")
	var fenced *FencedError
	if err := first.Transact(ctx, some("late", 2)); !errors.As(err, &fenced) || fenced.Name != "one" {
		t.Errorf("the fenced one: %v", err)
	}
	first.Abort()
	for _, o := range []*Outbox{second, other} {
		if err := o.Transact(ctx, some("more", 4)); err != nil {
			t.Fatal(err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const whole, chunked = 2, 2 * 3 // of 4 records two are in three chunks
	if got := committed(t, b.Addr()); len(got) != 4*(whole+chunked) {
		t.Errorf("%d records are there, want %d", len(got), 4*(whole+chunked))
	}
}

// What a dead process had under way holds back consumers until the next one fences it.
func TestDeadTransactionIsEnded(t *testing.T) {
	b := tellingBroker(t)
	ctx, cancel := context.WithCancel(deadline(t))
	o, err := OpenOutbox(ctx, OutboxConfig{Brokers: []string{b.Addr()}, Topic: "survivors",
		Create: TopicSpec{Partitions: 1}})
	if err == nil {
		err = o.Fence(ctx, "one")
	}
	if err != nil {
		t.Fatal(err)
	}
	acked := make(chan struct{})
	if err := o.Send(ctx, &schemas.Record{Value: []byte("open")}, func() { close(acked) }); err != nil {
		t.Fatal(err)
	}
	<-acked
	cancel() // as SIGKILL: nothing is told to the brokers
	o.Abort()
	d, err := Describe(deadline(t), []string{b.Addr()}, Security{}, "survivors")
	if err != nil || d.Partitions[0].Stable != 0 || d.Partitions[0].End != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	var log bytes.Buffer
	c := consumer(t, b.Addr(), []string{"survivors"}, func(c *Config) {
		c.UntilEnd, c.Log = true, slog.New(slog.NewTextHandler(&log, nil))
	})
	if err := c.Run(deadline(t), newReader(t).handle("a")); err != nil {
		t.Fatal(err)
	}
	if want := "topic=survivors partition=0 end=0 offsets_left=1"; !strings.Contains(log.String(), want) {
		t.Errorf("a run until the end does not say %q: %s", want, &log)
	}
	next := transactional(t, b.Addr(), "one")
	defer next.Abort()
	if got := committed(t, b.Addr()); len(got) != 0 {
		t.Errorf("%q are there", got)
	}
	if err := next.Transact(deadline(t), some("next", 2)); err != nil {
		t.Fatal(err)
	}
	if got := committed(t, b.Addr()); len(got) != 4 {
		t.Errorf("%q are there", got)
	}
}

// A Lookup finds records in any order, and says what is gone.
func TestLookup(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	send(t, producer(t, addr), topic, numbered("r", 50)...)
	l, err := OpenLookup(deadline(t), []string{addr}, Security{}, topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all := []string{}
	for _, offset := range []int64{7, 8, 49, 0, 7} {
		m, err := l.At(deadline(t), 0, offset)
		if err != nil || m.Offset != offset {
			t.Fatalf("%d: %+v, %v", offset, m, err)
		}
		all = append(all, string(m.Value))
	}
	if all[0] != all[4] || all[0] == all[1] {
		t.Errorf("%q", all)
	}
	gone := (*GoneError)(nil)
	if m, err := l.At(deadline(t), 1, 0); !errors.As(err, &gone) {
		t.Errorf("a partition that is not there: %v, %v", m, err)
	}
	remake(t, addr, topic, 1)
	send(t, producer(t, addr), topic, numbered("other", 50)...)
	if m, err := l.At(deadline(t), 0, 30); err == nil && string(m.Value) != "r 30" {
		t.Errorf("a record of another topic: %q", m.Value)
	}
	if m, err := fresh(t, l).At(deadline(t), 0, 30); !errors.As(err, &gone) {
		t.Errorf("the topic is another one: %v, %v", m, err)
	}
	if at, err := OffsetsAt(deadline(t), []string{addr}, Security{}, &l.Topic, time.Now().Add(time.Hour)); err != nil ||
		at[0] != l.Partitions[0].End {
		t.Errorf("in an hour: %v, %v", at, err)
	}
}

// fresh returns l without what it holds.
func fresh(t *testing.T, l *Lookup) *Lookup {
	c := &Lookup{Topic: l.Topic, brokers: l.brokers, consumer: l.consumer, held: map[int32]*heldFetch{}}
	t.Cleanup(func() {
		for _, h := range c.held {
			h.release()
		}
	})
	return c
}

// The last committed record is recognized under another limit of sizes.
func TestCheckUnderAnotherLimit(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	send(t, producer(t, addr), topic, values("small", string(make([]byte, 200_000)))...)
	at := func(limit int64) *Partition {
		p := partition0(t, addr, topic)
		p.c.cfg.MaxFrameBytes, p.dec.maxValue = limit, limit
		return p
	}
	for _, c := range []struct{ before, now int64 }{{100_000, 1 << 20}, {1 << 20, 100_000}, {70_000, 100_000}} {
		p := at(c.before)
		last, err := p.identify(deadline(t), 1, c.before, (*schemas.Message).ID)
		if err != nil || last == nil {
			t.Fatal(last, err)
		}
		if _, err := at(c.now).Check(deadline(t), schemas.Position{Next: 2, Last: last}); err != nil {
			t.Errorf("%d bytes, then %d: %v", c.before, c.now, err)
		}
		last.CRC32C++
		var other *schemas.RecreatedError
		if _, err := at(c.now).Check(deadline(t), schemas.Position{Next: 2, Last: last}); !errors.As(err, &other) {
			t.Errorf("%d bytes, then %d: another record: %v", c.before, c.now, err)
		}
	}
}
