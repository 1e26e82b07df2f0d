package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// static makes a consumer a static member whose session no test outlasts.
func static(instance string) func(*Config) {
	return func(c *Config) {
		c.Instance, c.Timing.Session, c.Timing.Rebalance = instance, 4*time.Minute, 4*time.Minute
	}
}

func heldBy(r *reader, member string) (keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.holder)) {
		if r.holder[key] == member {
			keys = append(keys, key)
		}
	}
	return keys
}

// Each of three static members, the leader among them, stops and comes back: it gets its own
// partitions, and the others keep theirs without a rebalance.
func TestRestartOfAStaticMemberMovesNoPartition(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 6), name(t)
	r := newReader(t)
	stops, consumers, had := make([]func(), 3), make([]*Consumer, 3), make([][]string, 3)
	begin := func(i int) {
		consumers[i] = consumer(t, addr, []string{topic}, in(group), static(fmt.Sprint("pod-", i)))
		stops[i], _ = running(t, consumers[i], r.handle(fmt.Sprint("pod-", i)))
	}
	for i := range 3 {
		begin(i)
		eventually(t, fmt.Sprintf("%d members hold all", i+1), func() bool {
			o := r.owners()
			return len(o) == i+1 && o["pod-0"]+o["pod-1"]+o["pod-2"] == 6
		})
	}
	var before [3]int64
	for i := range 3 {
		had[i], before[i] = heldBy(r, fmt.Sprint("pod-", i)), consumers[i].Stats().Rebalances
	}
	c := producer(t, addr)
	for i := range 3 {
		stops[i]()
		for p := range 6 {
			send(t, c, topic, &kgo.Record{Partition: int32(p), Value: []byte(fmt.Sprint(i, "/", p))})
		}
		begin(i)
		eventually(t, "it has its partitions again", func() bool {
			return slices.Equal(heldBy(r, fmt.Sprint("pod-", i)), had[i])
		})
		before[i] = 0
	}
	eventually(t, "all is read", func() bool { return r.count() == 18 })
	for i := range 3 {
		if n := consumers[i].Stats().Rebalances; n != before[i] {
			t.Errorf("pod-%d met %d rebalances, want %d", i, n, before[i])
		}
	}
	for _, c := range r.clash {
		t.Error(c)
	}
}

func TestLaterProcessWithTheSameInstanceFencesTheEarlier(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 2), name(t)
	r := newReader(t)
	_, earlier := running(t, consumer(t, addr, []string{topic}, in(group), static("twin")), r.handle("earlier"))
	eventually(t, "the earlier holds all", func() bool { return r.owners()["earlier"] == 2 })
	later := newReader(t)
	running(t, consumer(t, addr, []string{topic}, in(group), static("twin")), later.handle("later"))
	err := ended(t, earlier)
	if fenced := (*InstanceError)(nil); !errors.As(err, &fenced) || fenced.Instance != "twin" ||
		!strings.Contains(err.Error(), "--group-instance twin") {
		t.Errorf("the earlier ends with %v", err)
	}
	eventually(t, "the later holds all", func() bool { return later.owners()["later"] == 2 })
	send(t, producer(t, addr), topic, values("x")...)
	eventually(t, "the later reads", func() bool { return later.count() == 1 })
}

// A static member that is done leaves at once; one that is stopped keeps its place.
func TestStaticMemberLeavesWhenItIsDone(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic := makeTopic(t, addr, 2)
	send(t, producer(t, addr), topic, values("x")...)
	for _, c := range []struct {
		how  string
		more func(*Config)
		end  func(stop func(), r *run)
		want int
	}{
		{"done", untilEnd, func(_ func(), r *run) {
			if err := ended(t, r); err != nil {
				t.Errorf("Run: %v", err)
			}
		}, 0},
		{"stopped", func(*Config) {}, func(stop func(), _ *run) { stop() }, 1},
	} {
		group := name(t) + c.how
		con, r := consumer(t, addr, []string{topic}, in(group), static("one"), c.more), newReader(t)
		stop, result := running(t, con, r.handle("m"))
		eventually(t, c.how+": the record is read", func() bool { return r.count() == 1 })
		c.end(stop, result)
		members, err := Members(deadline(t), []string{addr}, Security{}, group)
		if err != nil || len(members) != c.want {
			t.Errorf("%s: members %v, %v; want %d", c.how, members, err, c.want)
		}
	}
}

// A leader that comes back is no leader, so nobody watches for new partitions but members
// that miss them in the assignments.
func TestPartitionsAddedWhileAStaticMemberIsAway(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 1), name(t)
	r := newReader(t)
	often := func(c *Config) { c.Timing.Watch = 100 * time.Millisecond }
	stop, _ := running(t, consumer(t, addr, []string{topic}, in(group), static("one"), often), r.handle("m"))
	eventually(t, "one partition is held", func() bool { return r.owners()["m"] == 1 })
	stop()
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 60_000
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = topic, 3
	req.Topics = append(req.Topics, rt)
	if resp, err := req.RequestWith(deadline(t), producer(t, addr)); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
	running(t, consumer(t, addr, []string{topic}, in(group), static("one"), often), r.handle("m"))
	eventually(t, "all three are held", func() bool { return r.owners()["m"] == 3 })
}

// A handle that fails leaves the place to the process that a supervisor starts.
func TestStaticMemberThatFailsKeepsItsPlace(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 1), name(t)
	con := consumer(t, addr, []string{topic}, in(group), static("one"))
	_, result := running(t, con, func(context.Context, *Partition) error { return io.ErrUnexpectedEOF })
	if err := ended(t, result); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Run: %v", err)
	}
	if members, err := Members(deadline(t), []string{addr}, Security{}, group); err != nil || len(members) != 1 {
		t.Errorf("members %v, %v; want one", members, err)
	}
}

func TestInstancesThatBrokersTake(t *testing.T) {
	for _, c := range []struct {
		id string
		ok bool
	}{
		{"entropipe-0", true}, {"A.b_9", true}, {"...", true}, {strings.Repeat("x", 249), true},
		{"", false}, {".", false}, {"..", false}, {"a b", false}, {"a/b", false}, {"ä", false},
		{strings.Repeat("x", 250), false},
	} {
		if err := CheckInstance(c.id); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.id, err)
		}
	}
}
