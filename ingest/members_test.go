package ingest

import (
	"strings"
	"testing"
)

// Members lists who is in a group, with what it calls itself, and nobody where
// there is no such group.
func TestMembers(t *testing.T) {
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 2), name(t)
	if found, err := Members(deadline(t), []string{addr}, Security{}, group); err != nil || len(found) > 0 {
		t.Errorf("a group that nobody has joined: %+v, %v", found, err)
	}
	r := newReader(t)
	one := func(c *Config) { c.Group = group }
	stop, _ := running(t, consumer(t, addr, []string{topic}, one), r.handle("one"))
	running(t, consumer(t, addr, []string{topic}, one), r.handle("two"))
	eventually(t, "both have a share", func() bool { return r.owners()["one"] == 1 && r.owners()["two"] == 1 })
	found, err := Members(deadline(t), []string{addr}, Security{}, group)
	if err != nil || len(found) != 2 || found[0].ID == found[1].ID ||
		!strings.HasPrefix(found[0].ClientID, "entropipe") || found[0].Host == "" {
		t.Errorf("two members: %+v, %v", found, err)
	}
	stop()
	eventually(t, "one has left", func() bool {
		found, err := Members(deadline(t), []string{addr}, Security{}, group)
		return err == nil && len(found) == 1
	})
	if _, err := Members(deadline(t), []string{addr}, Security{}, ""); err == nil {
		t.Error("no group is taken for one")
	}
}
