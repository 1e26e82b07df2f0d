package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A group has one output: a member that writes to another is refused, for it
// would take a part of the records. One that the group gives up meanwhile, as
// after a crash elsewhere, is waited for.
func TestMembersOfAGroupShareAnOutput(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 2), name(t)
	consumer := func(output string, session time.Duration) *Consumer {
		return consumer(t, addr, []string{topic}, func(c *Config) {
			c.Group, c.Output = group, output
			c.Timing.Session, c.Timing.Watch = session, 200*time.Millisecond
		})
	}
	r := newReader(t)
	stop, _ := running(t, consumer("a", time.Minute), r.handle("first"))
	eventually(t, "the first member holds all", func() bool { return r.owners()["first"] == 2 })

	err := consumer("b", time.Second).Run(deadline(t), r.handle("other"))
	if err == nil || !strings.Contains(err.Error(), "writes to another output") ||
		!strings.Contains(err.Error(), group) {
		t.Errorf("another output in the group: %v", err)
	}
	if r.owners()["first"] != 2 {
		t.Errorf("the first member holds %v after another was refused", r.owners())
	}

	for _, output := range []string{"a", ""} { // "": a consumer that does not care
		stopOne, _ := running(t, consumer(output, time.Minute), r.handle("joins"))
		eventually(t, "a member of the same output, or of any, gets a share",
			func() bool { return r.owners()["joins"] == 1 })
		stopOne()
	}

	_, late := running(t, consumer("b", 5*time.Minute), r.handle("late"))
	stop()
	eventually(t, "another output follows when the first has left", func() bool { return r.owners()["late"] == 2 })
	select {
	case <-late.done:
		t.Errorf("the member that waited ended: %v", late.err)
	default:
	}
}

// Copies of an output have its name. A member whose copy has another inode is
// refused, and told what to do; the same inode, and members that know of none, as
// those of early programs, are welcome.
func TestMembersOfAGroupShareACopyOfAnOutput(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 2), name(t)
	consumer := func(inode string, session time.Duration) *Consumer {
		return consumer(t, addr, []string{topic}, func(c *Config) {
			c.Group, c.Output, c.OutputInode = group, "a", inode
			c.Timing.Session, c.Timing.Watch = session, 200*time.Millisecond
		})
	}
	r := newReader(t)
	stop, _ := running(t, consumer("17", time.Minute), r.handle("first"))
	eventually(t, "the first member holds all", func() bool { return r.owners()["first"] == 2 })

	err := consumer("18", time.Second).Run(deadline(t), r.handle("copy"))
	var other *OutputError
	if !errors.As(err, &other) || other.Output != "a" || other.Inode != "17" || other.Own != "18" {
		t.Errorf("a copy in the group: %v", err)
	}
	for _, part := range []string{group, "another copy", "store.json", "17", "18", "--group"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if r.owners()["first"] != 2 {
		t.Errorf("the first member holds %v after a copy was refused", r.owners())
	}
	for _, inode := range []string{"17", ""} {
		stopOne, _ := running(t, consumer(inode, time.Minute), r.handle("joins"))
		eventually(t, "a member of the same copy, or of any, gets a share",
			func() bool { return r.owners()["joins"] == 1 })
		stopOne()
	}
	stop()
	running(t, consumer("", time.Minute), r.handle("unknown"))
	eventually(t, "a member that knows no inode holds all", func() bool { return r.owners()["unknown"] == 2 })
	running(t, consumer("18", time.Minute), r.handle("late"))
	eventually(t, "one that knows its inode gets a share beside it", func() bool { return r.owners()["late"] == 1 })
}

// What members say of their output is read as it was written, by early programs
// and later ones too.
func TestWhatMembersSayOfTheirOutput(t *testing.T) {
	for said, want := range map[string][2]string{
		"":                                    {},
		"sticky":                              {},
		"entropipe output a-b":                {"a-b", ""},
		"entropipe output a-b inode 12":       {"a-b", "12"},
		"entropipe output a-b inode 12 and 3": {"a-b", "12"},
		"entropipe output a-b colour blue":    {"a-b", ""},
	} {
		if output, inode := outputOf([]byte(said)); output != want[0] || inode != want[1] {
			t.Errorf("%q: output %q, inode %q", said, output, inode)
		}
	}
	for _, c := range []Config{{Output: "a-b", OutputInode: "12"}, {Output: "a-b"}, {}} {
		if output, inode := outputOf((&Consumer{cfg: c}).ownOutput()); output != c.Output || inode != c.OutputInode {
			t.Errorf("%+v is read as output %q, inode %q", c, output, inode)
		}
	}
}

// Members of different outputs that join at the same moment, before any could
// see another, are told by the division: one output has every partition, the
// others an error.
func TestMembersThatJoinAtOnceShareAnOutput(t *testing.T) {
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 3), name(t)
	outputs := []string{"a", "b", "a", "c"}
	var mu sync.Mutex
	given, refused := map[int32]map[string]int{}, map[string]int{} // partitions by generation and output; errors
	ctx, end := context.WithCancel(deadline(t))
	var members sync.WaitGroup
	for _, output := range outputs {
		members.Go(func() { // as Run, without looking at the group before
			m := &membership{c: consumer(t, addr, []string{topic}, func(c *Config) {
				c.Group = group
				c.Output, c.OutputInode, _ = strings.Cut(output, " ")
			})}
			defer m.leave(ctx)
			for ctx.Err() == nil {
				gen, err := m.join(ctx)
				mu.Lock()
				switch {
				case ctx.Err() != nil:
				case err == nil && given[gen.id] == nil:
					given[gen.id] = map[string]int{output: len(gen.assigned[topic])}
				case err == nil:
					given[gen.id][output] += len(gen.assigned[topic])
				case errors.As(err, new(*OutputError)):
					refused[output]++
				default:
					t.Error(err)
				}
				mu.Unlock()
				for err == nil && m.heartbeat(ctx, gen) == beatFine && sleep(ctx, 20*time.Millisecond) == nil {
				}
				if err != nil {
					return
				}
			}
		})
	}
	eventually(t, "one output has all partitions, the others an error", func() bool {
		mu.Lock()
		defer mu.Unlock()
		newest := given[slices.Max(append(slices.Collect(maps.Keys(given)), -1))]
		for output, n := range newest {
			want := map[string]int{outputs[0]: 2, outputs[1]: 1, outputs[3]: 1}
			delete(want, output)
			return len(newest) == 1 && n == 3 && maps.Equal(refused, want)
		}
		return false
	})
	end()
	members.Wait()
	for generation, by := range given {
		if len(by) > 1 {
			t.Errorf("generation %d is divided among outputs: %v", generation, by)
		}
	}
}
