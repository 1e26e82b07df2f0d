package ingest

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// mayTell skips a test where the system does not say what a process is.
func mayTell(t *testing.T) process {
	t.Helper()
	self := thisProcess()
	if self.place == "" {
		t.Skip("this system does not tell one process from a later one")
	}
	return self
}

// deadProcess is one of this place that has been killed, and not waited for
// before the test ends.
func deadProcess(t *testing.T) process {
	t.Helper()
	p := mayTell(t)
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { child.Wait() })
	p.pid = child.Process.Pid
	_, p.start, _ = statOf(p.pid)
	if p.dead() {
		t.Fatal("a process that runs is dead")
	}
	child.Process.Kill()
	eventually(t, "a killed process is dead", p.dead)
	return p
}

func TestTheLivingAndTheDead(t *testing.T) {
	p := mayTell(t)
	if p.dead() {
		t.Error("this process is dead")
	}
	p.start++
	if !p.dead() {
		t.Error("a later process of the same number is taken for an earlier one")
	}
	p = deadProcess(t)
	if p.pid = 1 << 22; !p.dead() {
		t.Error("a process beyond all numbers lives")
	}
}

// member joins the group of c as process p, and says nothing from then on.
func member(t *testing.T, c *Consumer, p process) {
	t.Helper()
	c.self = p
	if _, err := (&membership{c: c}).join(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

// A process that was killed does not hold up the next one until its session
// ends: neither as a member nor where it was about to become one.
func TestDeadMembersAreSentAway(t *testing.T) {
	dead := deadProcess(t)
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 4), name(t)
	patient := func(c *Config) { c.Group, c.Timing.Session = group, 5*time.Minute } // longer than eventually waits
	consumer := func() *Consumer { return consumer(t, addr, []string{topic}, patient) }
	member(t, consumer(), dead)

	r := newReader(t)
	running(t, consumer(), r.handle("next"))
	eventually(t, "the next member holds all", func() bool { return r.owners()["next"] == 4 })

	// Beside a member that lives, one joins that is dead before it learns of it:
	// the other may send it away before the group has answered.
	ghost := &membership{c: consumer()}
	ghost.c.self = dead
	for range 2 { // for a name, and for a place
		ghost.tryJoin(deadline(t))
	}
	eventually(t, "the partitions of the dead came back", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.holder) == 4 && r.held[topic+"/0"] >= 2
	})
}

// Who lives, is elsewhere, or goes by another name stays.
func TestOthersAreNotSentAway(t *testing.T) {
	dead := deadProcess(t)
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 1), name(t)
	for i, c := range []struct {
		name string
		p    process
		left int
	}{
		{"entropipe", thisProcess(), 1},
		{"entropipe", process{"0123456789abcdef", dead.pid, dead.start}, 1},
		{"entropipe", process{}, 1},
		{"other", dead, 1},
		{"entropipe", dead, 0},
	} {
		group := fmt.Sprint(group, i)
		as := func(name string) *Consumer {
			return consumer(t, addr, []string{topic},
				func(cfg *Config) { cfg.Group, cfg.ClientID, cfg.Timing.Session = group, name, 5*time.Minute })
		}
		member(t, as(c.name), c.p)
		looker := as("entropipe")
		looker.dismiss(t.Context())
		if n := members(t, looker); n != c.left {
			t.Errorf("%s as %+v: %d members are left, want %d", c.name, c.p, n, c.left)
		}
	}
}

// members counts those of the group.
func members(t *testing.T, c *Consumer) (n int) {
	t.Helper()
	r, err := c.cluster.call(deadline(t), c.cfg.Group, describeVersion, callTimeout,
		&describegroups.Request{Groups: []string{c.cfg.Group}})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.(*describegroups.Response).Groups {
		n += len(g.Members)
	}
	return n
}
