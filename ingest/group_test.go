package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"entropipe/schemas"
)

// reader is what the pipeline does, in small: it reads partitions from where
// the shared log of what was read stands, and notes who holds what.
type reader struct {
	t     *testing.T
	drain func() // brings a revoked partition to rest

	mu     sync.Mutex
	next   map[string]int64  // position by topic/partition
	holder map[string]string // member that holds it
	values []string
	clash  []string
	held   map[string]int // how often each partition was handed out
}

func newReader(t *testing.T) *reader {
	return &reader{t: t, drain: func() {}, next: map[string]int64{}, holder: map[string]string{},
		held: map[string]int{}}
}

func (r *reader) handle(member string) Handle {
	return func(ctx context.Context, p *Partition) error {
		key := fmt.Sprintf("%s/%d", p.Topic, p.ID)
		r.take(key, member)
		defer r.give(key)
		for {
			f, err := p.Fetch(ctx, r.position(key), 1<<20)
			if err != nil {
				if ctx.Err() != nil {
					r.drain()
					p.Committed(ctx, r.position(key))
					return nil
				}
				if err == io.EOF {
					return nil
				}
				return err
			}
			r.add(key, f)
		}
	}
}

func (r *reader) take(key, member string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.holder[key]; other != "" {
		r.clash = append(r.clash, fmt.Sprintf("%s held by %s is given to %s", key, other, member))
	}
	r.holder[key] = member
	r.held[key]++
}

func (r *reader) give(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holder, key)
}

func (r *reader) position(key string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next[key]
}

func (r *reader) add(key string, f schemas.Fetched) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.From != r.next[key] {
		r.clash = append(r.clash, fmt.Sprintf("%s read from %d while at %d", key, f.From, r.next[key]))
	}
	for _, m := range f.Messages {
		r.values = append(r.values, string(m.Value))
	}
	r.next[key] = f.Next
	if f.Release != nil {
		f.Release()
	}
}

func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.values)
}

// owners tells how many partitions each member holds.
func (r *reader) owners() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for _, m := range r.holder {
		n[m]++
	}
	return n
}

// run is a Run in the background.
type run struct {
	done chan struct{}
	err  error
}

// running starts Run; stop ends it and checks that it ends well and soon,
// unless ended has been asked already.
func running(t *testing.T, c *Consumer, h Handle) (stop func(), r *run) {
	ctx, cancel := context.WithCancel(context.Background())
	r = &run{done: make(chan struct{})}
	go func() { r.err = c.Run(ctx, h); close(r.done) }()
	stop = func() {
		select {
		case <-r.done: // by itself: the test looks at the error
		default:
			cancel()
			if err := ended(t, r); err != nil {
				t.Errorf("Run: %v", err)
			}
		}
		cancel()
	}
	t.Cleanup(stop)
	return stop, r
}

func ended(t *testing.T, r *run) error {
	t.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(hangs):
		t.Error("Run does not end")
		return nil
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(hangs); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func in(group string) func(*Config) { return func(c *Config) { c.Group = group } }

func TestMembersShareThePartitions(t *testing.T) {
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 7), name(t)
	r := newReader(t)
	var stops []func()
	for i := range 3 {
		stop, _ := running(t, consumer(t, addr, []string{topic}, in(group)), r.handle(fmt.Sprint("m", i)))
		stops = append(stops, stop)
		eventually(t, fmt.Sprintf("%d members hold all", i+1), func() bool {
			o, n := r.owners(), 0
			for _, k := range o {
				n += k
			}
			return len(o) == i+1 && n == 7
		})
	}
	c := producer(t, addr)
	for i := range 70 {
		send(t, c, topic, &kgo.Record{Partition: int32(i % 7), Value: []byte(fmt.Sprint(i))})
	}
	eventually(t, "all is read", func() bool { return r.count() == 70 })
	stops[0]()
	eventually(t, "two members hold all", func() bool { o := r.owners(); return o["m1"]+o["m2"] == 7 })
	for _, c := range r.clash {
		t.Error(c)
	}
}

// Members come and go at random while records arrive: every record is read
// once, in order, and no partition is ever held by two.
func TestRebalancesLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 4), name(t)
	r := newReader(t)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	c := producer(t, addr)
	stops := map[int]func(){}
	for i := range 240 {
		send(t, c, topic, &kgo.Record{Partition: int32(i % 4), Value: []byte(fmt.Sprint(i))})
		time.Sleep(5 * time.Millisecond)
		if i%10 == 0 {
			k := rng.IntN(3)
			if stop := stops[k]; stop != nil {
				stop()
				delete(stops, k)
			} else {
				stops[k], _ = running(t, consumer(t, addr, []string{topic}, in(group)), r.handle(fmt.Sprint("m", k)))
			}
		}
	}
	running(t, consumer(t, addr, []string{topic}, in(group)), r.handle("last"))
	eventually(t, "all is read", func() bool { return r.count() >= 240 })
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.clash {
		t.Errorf("seed %d: %s", seed, c)
	}
	slices.Sort(r.values)
	if n := len(slices.Compact(r.values)); n != 240 || len(r.values) != 240 {
		t.Errorf("seed %d: %d values, %d different, want 240", seed, len(r.values), n)
	}
}

// A member that drains for longer than the session lasts is not dropped, and
// its commit in that time is accepted: kafka-go's group lets it be fenced.
func TestDrainingMemberStaysAlive(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 2), name(t)
	r := newReader(t)
	var drained atomic.Bool
	r.drain = sync.OnceFunc(func() { time.Sleep(4 * time.Second); drained.Store(true) })
	short := func(c *Config) { c.Timing.Session = 3 * time.Second } // heartbeats come every sixth of it
	first := consumer(t, addr, []string{topic}, in(group), short)
	running(t, first, r.handle("first"))
	eventually(t, "first holds all", func() bool { return r.owners()["first"] == 2 })
	running(t, consumer(t, addr, []string{topic}, in(group), short), func(ctx context.Context, p *Partition) error {
		if !drained.Load() {
			t.Error("the second member got its partition before the first had drained")
		}
		return r.handle("second")(ctx, p)
	})
	eventually(t, "second holds one", func() bool { return r.owners()["second"] == 1 && r.owners()["first"] == 1 })
	if n := first.Stats().CommitErrors; n > 0 {
		t.Errorf("%d commits of the draining member failed", n)
	}
	for _, c := range r.clash {
		t.Error(c)
	}
}

func TestUntilEndReadsWhatWasThere(t *testing.T) {
	addr, _ := start(t)
	topic, other := makeTopic(t, addr, 5), makeTopic(t, addr, 1)
	c := producer(t, addr)
	for i := range 50 {
		send(t, c, topic, &kgo.Record{Partition: int32(i % 4), Value: []byte(fmt.Sprint(i))}) // partition 4 stays empty
	}
	send(t, c, other, values("x")...)
	tx := producer(t, addr, kgo.TransactionalID(other))
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	send(t, tx, other, values("y")...) // and a control record at the end
	if err := tx.EndTransaction(deadline(t), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	settled(t, addr, other)
	con := consumer(t, addr, []string{topic, other}, untilEnd)
	if starts, err := con.Starts(deadline(t), topic, "earliest"); err != nil || len(starts) != 5 || starts[0] != 0 {
		t.Fatalf("starts: %v, %v", starts, err)
	}
	for i := range 8 { // after the target was fixed
		send(t, c, topic, &kgo.Record{Partition: int32(i % 4), Value: []byte("late")})
	}
	r := newReader(t)
	_, result := running(t, con, r.handle("m"))
	if err := ended(t, result); err != nil {
		t.Fatal(err)
	}
	if r.count() != 52 || slices.Contains(r.values, "late") {
		t.Errorf("%d values, want 52 and none that is late: %v", r.count(), r.values)
	}
	if r.next[other+"/0"] != 3 {
		t.Errorf("the partition that ends with a control record ends at %d, want 3", r.next[other+"/0"])
	}
	// Another member of the same group finds nothing left.
	_, result = running(t, con, r.handle("again"))
	if err := ended(t, result); err != nil || r.count() != 52 {
		t.Errorf("a second run: %v, %d values", err, r.count())
	}
}

func TestUntilEndWithSeveralMembers(t *testing.T) {
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 3), name(t)
	c := producer(t, addr)
	for i := range 60 {
		send(t, c, topic, &kgo.Record{Partition: int32(i % 3), Value: []byte(fmt.Sprint(i))})
	}
	r := newReader(t)
	var results []*run
	for i := range 5 { // more members than partitions
		_, result := running(t, consumer(t, addr, []string{topic}, untilEnd, in(group)), r.handle(fmt.Sprint("m", i)))
		results = append(results, result)
	}
	for _, result := range results {
		if err := ended(t, result); err != nil {
			t.Error(err)
		}
	}
	if r.count() != 60 || len(r.clash) > 0 {
		t.Errorf("%d values, want 60; %v", r.count(), r.clash)
	}
}

// A member takes partitions and dies before it reads them. The other one must
// not end before the group has given it these too.
func TestUntilEndOutlivesAMemberThatDied(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 4), name(t)
	c := producer(t, addr)
	for i := range 40 {
		send(t, c, topic, &kgo.Record{Partition: int32(i % 4), Value: []byte(fmt.Sprint(i))})
	}
	ctx := deadline(t)
	dying := &membership{c: consumer(t, addr, []string{topic}, in(group), func(c *Config) {
		c.Timing.Session = 3 * time.Second
	})}
	gen, err := dying.join(ctx)
	if err != nil || len(gen.assigned[topic]) != 4 {
		t.Fatalf("the first member got %v, %v", gen, err)
	}
	r := newReader(t)
	reached := func(_ context.Context, topic string, id int32, end int64) (bool, error) {
		return r.position(fmt.Sprintf("%s/%d", topic, id)) >= end, nil
	}
	_, result := running(t, consumer(t, addr, []string{topic}, untilEnd, in(group), func(c *Config) {
		c.Reached = reached
	}), r.handle("survivor"))
	for dying.heartbeat(ctx, gen) == beatFine {
		time.Sleep(10 * time.Millisecond)
	}
	if gen, err = dying.join(ctx); err != nil || len(gen.assigned[topic]) != 2 {
		t.Fatalf("of two members the first got %v, %v", gen, err)
	}
	// It says nothing from here on.
	if err := ended(t, result); err != nil {
		t.Error(err)
	}
	if r.count() != 40 || len(r.clash) > 0 {
		t.Errorf("%d values, want 40; %v", r.count(), r.clash)
	}
}

// What cannot be asked is no reason to end well.
func TestUntilEndReportsAnOutputThatCannotBeRead(t *testing.T) {
	addr, _ := start(t)
	topic, boom := makeTopic(t, addr, 1), errors.New("disk gone")
	send(t, producer(t, addr), topic, values("x")...)
	_, result := running(t, consumer(t, addr, []string{topic}, untilEnd, func(c *Config) {
		c.Reached = func(context.Context, string, int32, int64) (bool, error) { return false, boom }
	}), newReader(t).handle("m"))
	if err := ended(t, result); !errors.Is(err, boom) || !strings.Contains(err.Error(), topic+"/0") {
		t.Errorf("Run: %v, want one that names %s/0 and says %v", err, topic, boom)
	}
}

func TestErrorOfAHandleEndsTheRun(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 3)
	boom := errors.New("disk full")
	var mu sync.Mutex
	stopped := 0
	_, result := running(t, consumer(t, addr, []string{topic}), func(ctx context.Context, p *Partition) error {
		if p.ID == 1 {
			return boom
		}
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		stopped++
		return ctx.Err()
	})
	err := ended(t, result)
	if !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), topic+"/1: ") ||
		strings.Count(err.Error(), topic) != 1 {
		t.Errorf("Run: %v", err)
	}
	if stopped != 2 {
		t.Errorf("%d of the 2 other handles had been stopped", stopped)
	}
}

func TestPartitionsAddedLaterAreRead(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic := makeTopic(t, addr, 1)
	r := newReader(t)
	running(t, consumer(t, addr, []string{topic}), r.handle("m"))
	eventually(t, "one partition is held", func() bool { return r.owners()["m"] == 1 })
	c := producer(t, addr)
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 60_000
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = topic, 3
	req.Topics = append(req.Topics, rt)
	if resp, err := req.RequestWith(deadline(t), c); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
	eventually(t, "three partitions are held", func() bool { return r.owners()["m"] == 3 })
	fresh := producer(t, addr)
	send(t, fresh, topic, &kgo.Record{Partition: 2, Value: []byte("new")})
	eventually(t, "the new partition is read", func() bool { return r.count() == 1 })
}

func TestTopicDeletedWhileItIsRead(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic := makeTopic(t, addr, 2)
	r := newReader(t)
	_, result := running(t, consumer(t, addr, []string{topic}), r.handle("m"))
	eventually(t, "the partitions are held", func() bool { return r.owners()["m"] == 2 })
	c := producer(t, addr)
	deleteTopic(t, c, topic)
	if err := ended(t, result); err == nil || !strings.Contains(err.Error(), topic) ||
		!strings.Contains(err.Error(), "deleted") {
		t.Errorf("Run: %v", err)
	}
	if _, err := Describe(deadline(t), []string{addr}, Security{}, topic); !errors.Is(err, ErrNoTopic) {
		t.Errorf("the consumer has created the topic again: %v", err)
	}
}

func TestTopicThatDoesNotExist(t *testing.T) {
	addr, _ := start(t, kfake.AllowAutoTopicCreation())
	topic := name(t)
	c := consumer(t, addr, []string{topic})
	for range 2 { // asking must not create it
		_, err := c.Starts(deadline(t), topic, "earliest")
		if !errors.Is(err, ErrNoTopic) || !strings.Contains(err.Error(), topic) ||
			!strings.Contains(err.Error(), "entropipe produce") {
			t.Errorf("Starts: %v", err)
		}
		err = c.Run(deadline(t), newReader(t).handle("m"))
		if !errors.Is(err, ErrNoTopic) {
			t.Errorf("Run: %v", err)
		}
	}
}

func TestUnreachableBrokersAreNamedSoon(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	// Nobody listens where a connection begins, and nobody else gets its port.
	conn, err := net.Dial("tcp", mute.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, addr := range []string{conn.LocalAddr().String(), mute.Addr().String()} {
		c := consumer(t, addr, []string{"t"}, func(c *Config) { c.Timing.Connect = 700 * time.Millisecond })
		_, err := c.Starts(deadline(t), "t", "earliest")
		if err == nil || !strings.Contains(err.Error(), addr+" within 700ms") ||
			!strings.Contains(err.Error(), "--brokers") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Brokers: []string{"h:1"}, Topics: []string{"t"}, Group: "g"}
	for name, change := range map[string]func(*Config){
		"no broker": func(c *Config) { c.Brokers = nil }, "no host": func(c *Config) { c.Brokers = []string{":9092"} },
		"no topic": func(c *Config) { c.Topics = nil }, "empty topic": func(c *Config) { c.Topics = []string{""} },
		"no group": func(c *Config) { c.Group = "" }, "huge frames": func(c *Config) { c.MaxFrameBytes = 1 << 40 },
	} {
		cfg := good
		change(&cfg)
		if _, err := NewConsumer(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	c, err := NewConsumer(good)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Starts(context.Background(), "t", "yesterday"); err == nil {
		t.Error("start yesterday: accepted")
	}
	if s := c.Stats(); s.Generation != -1 || s.Assigned != 0 || s.Connected {
		t.Errorf("before the start: %+v", s)
	}
}

// An idle consumer is gone at once, and the group does not wait for it: neither
// for a fetch nor for a session, which would take longer than eventually waits.
func TestIdleConsumerEndsAtOnce(t *testing.T) {
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 2), name(t)
	r := newReader(t)
	slow := func(c *Config) { c.Timing.Poll, c.Timing.Session = 5*time.Minute, 5*time.Minute }
	stop, _ := running(t, consumer(t, addr, []string{topic}, in(group), slow), r.handle("first"))
	eventually(t, "first holds all", func() bool { return r.owners()["first"] == 2 })
	stop()
	running(t, consumer(t, addr, []string{topic}, in(group), slow), r.handle("second"))
	eventually(t, "second holds all", func() bool { return r.owners()["second"] == 2 })
}

// The broker dies and comes back on its port: reading goes on where it was.
func TestBrokerGoesAwayAndReturns(t *testing.T) {
	if addr, fake := start(t); fake == nil {
		t.Skip("needs a broker that may be killed: ", addr)
	}
	dir, addr := t.TempDir(), ownHost()+":0"
	up := func() *kfake.Cluster {
		listen := func(network, _ string) (net.Listener, error) { return net.Listen(network, addr) }
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(listen), kfake.DataDir(dir),
			kfake.GroupMinSessionTimeout(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	fake := up()
	addr = fake.ListenAddrs()[0]
	topic := makeTopic(t, addr, 2)
	r := newReader(t)
	c := consumer(t, addr, []string{topic})
	running(t, c, r.handle("m"))
	total := 0
	for range 3 {
		p := producer(t, addr)
		for i := range 10 {
			send(t, p, topic, &kgo.Record{Partition: int32(i % 2), Value: []byte("v")})
		}
		p.Close()
		total += 10
		eventually(t, "all is read", func() bool { return r.count() == total })
		fake.Close()
		eventually(t, "the consumer notices", func() bool { return !c.Stats().Connected })
		fake = up()
	}
	eventually(t, "the consumer is a member again",
		func() bool { s := c.Stats(); return s.Connected && s.Assigned == 2 })
	defer fake.Close()
	if r.count() != total || len(r.clash) > 0 {
		t.Errorf("%d values, want %d; %v", r.count(), total, r.clash)
	}
}

// Committed offsets are visible to lag tools.
func TestCommittedOffsets(t *testing.T) {
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 1), name(t)
	c := producer(t, addr)
	send(t, c, topic, values("a", "b", "c")...)
	con := consumer(t, addr, []string{topic}, in(group), untilEnd)
	_, result := running(t, con, func(ctx context.Context, p *Partition) error { p.Committed(ctx, 3); return nil })
	if err := ended(t, result); err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{0}
	req.Topics = append(req.Topics, rt)
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	rgt := kmsg.NewOffsetFetchRequestGroupTopic()
	rgt.Topic, rgt.Partitions = topic, []int32{0}
	rg.Topics = append(rg.Topics, rgt)
	req.Groups = append(req.Groups, rg)
	resp, err := req.RequestWith(deadline(t), c)
	if err != nil {
		t.Fatal(err)
	}
	offset := int64(-2)
	for _, g := range resp.Groups {
		offset = g.Topics[0].Partitions[0].Offset
	}
	for _, rt := range resp.Topics {
		offset = rt.Partitions[0].Offset
	}
	if s := con.Stats(); offset != 3 || s.CommitErrors != 0 {
		t.Errorf("the group's offset is %d, want 3 (%+v)", offset, s)
	}
}
