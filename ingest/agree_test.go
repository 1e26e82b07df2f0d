package ingest

import (
	"strings"
	"testing"
	"time"
)

// A group has one output: a member that writes to another is refused, for it
// would take a part of the records. One that the group gives up meanwhile, as
// after a crash elsewhere, is waited for.
func TestMembersOfAGroupShareAnOutput(t *testing.T) {
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 2), name(t)
	consumer := func(output string, session time.Duration) *Consumer {
		return consumer(t, addr, []string{topic}, func(c *Config) {
			c.Group, c.Output = group, output
			c.Timing.Session, c.Timing.Watch = session, 200*time.Millisecond
		})
	}
	r := newReader(t)
	stop, _ := running(t, consumer("a", 6*time.Second), r.handle("first"))
	eventually(t, "the first member holds all", func() bool { return r.owners()["first"] == 2 })

	err := consumer("b", time.Second).Run(deadline(t, 20*time.Second), r.handle("other"))
	if err == nil || !strings.Contains(err.Error(), "writes to another output") || !strings.Contains(err.Error(), group) {
		t.Errorf("another output in the group: %v", err)
	}
	if r.owners()["first"] != 2 {
		t.Errorf("the first member holds %v after another was refused", r.owners())
	}

	for _, output := range []string{"a", ""} { // "": a consumer that does not care
		stopOne, _ := running(t, consumer(output, 6*time.Second), r.handle("joins"))
		eventually(t, "a member of the same output, or of any, gets a share", func() bool { return r.owners()["joins"] == 1 })
		stopOne()
	}

	_, late := running(t, consumer("b", 15*time.Second), r.handle("late"))
	stop()
	eventually(t, "another output follows when the first has left", func() bool { return r.owners()["late"] == 2 })
	select {
	case <-late.done:
		t.Errorf("the member that waited ended: %v", late.err)
	default:
	}
}
