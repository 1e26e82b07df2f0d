package ingest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Members see each other with their pages and partitions, a stranger without a page, and the
// one that left no more.
func TestViewShowsMembers(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 3), name(t)
	member := func(output, page string) *Consumer {
		return consumer(t, addr, []string{topic}, func(c *Config) {
			c.Group, c.Output, c.Page = group, output, page
		})
	}
	send(t, producer(t, addr), topic, values("a", "b", "c", "d", "e", "f")...)
	r := newReader(t)
	one := member("out", "http://127.0.0.1:8421/")
	running(t, one, r.handle("one"))
	eventually(t, "the first member holds all", func() bool { return r.owners()["one"] == 3 })
	stop, _ := running(t, member("out", "http://127.0.0.1:8422/"), r.handle("two"))
	eventually(t, "the second member has a share", func() bool { return r.owners()["two"] > 0 })
	running(t, member("", "http://127.0.0.1:9/"), r.handle("stranger")) // says nothing of an output
	eventually(t, "each has one", func() bool { return r.owners()["stranger"] == 1 && r.owners()["two"] == 1 })

	var v *View
	look := func() *View {
		t.Helper()
		var err error
		if v, err = one.View(deadline(t)); err != nil {
			t.Fatal(err)
		}
		return v
	}
	eventually(t, "the group is stable", func() bool { return look().Stable && len(v.Members) == 3 })
	pages, selfs, owned := map[string]int{}, 0, map[string]bool{}
	for _, m := range v.Members {
		if m.Self {
			selfs++
		}
		if m.Ours != (m.Page != "") {
			t.Errorf("member %+v", m)
		}
		pages[m.Page]++
	}
	if selfs != 1 || pages["http://127.0.0.1:8421/"] != 1 || pages["http://127.0.0.1:8422/"] != 1 || pages[""] != 1 {
		t.Errorf("members %+v", v.Members)
	}
	for i, p := range v.Partitions {
		if p.Topic != topic || p.ID != int32(i) || p.Owner == nil || p.End < 0 {
			t.Fatalf("partition %+v", p)
		}
		owned[p.Owner.ID] = true
	}
	if len(v.Partitions) != 3 || len(owned) != 3 || v.OffsetsErr != nil {
		t.Errorf("%d partitions of %d members: %v", len(v.Partitions), len(owned), v.OffsetsErr)
	}
	stop()
	eventually(t, "two members are left, and know their partitions", func() bool {
		look()
		for _, p := range v.Partitions {
			if p.Owner == nil {
				return false
			}
		}
		return len(v.Members) == 2
	})
	eventually(t, "what was handed back is committed", func() bool {
		for _, p := range look().Partitions {
			if p.Committed > 0 && p.Committed <= p.End {
				return true
			}
		}
		return false
	})
}

// What the brokers refuse is told: the group as an error, offsets beside the members.
func TestViewTellsWhatIsRefused(t *testing.T) {
	t.Parallel()
	const user, password = "viewer", "secret"
	admin, adminPassword := "admin", "admin"
	c := kfake.MustCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", admin, adminPassword), kfake.User("PLAIN", user, password, kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: "seen", Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: kmsg.ACLOperationRead, Allow: true}), kfake.SeedTopics(1, "seen"))
	t.Cleanup(c.Close)
	m, err := mechanism("plain", user, password)
	if err != nil {
		t.Fatal(err)
	}
	reads, err := NewConsumer(Config{Brokers: c.ListenAddrs(), Topics: []string{"seen"}, Group: "closed",
		Security: Security{SASL: m}})
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = reads.View(ctx)
	var denied *DeniedError
	if !errors.As(err, &denied) || denied.Resource != "group" || denied.Name != "closed" {
		t.Errorf("a group that may not be described: %v", err)
	}
}

// Metadata of strangers harms nobody.
func TestViewReadsStrangers(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	topic, group := makeTopic(t, addr, 1), name(t)
	stranger, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ClientID("<script>alert(1)</script>"))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	c := consumer(t, addr, []string{topic}, func(c *Config) { c.Group, c.Output = group, "out" })
	eventually(t, "the stranger owns the partition", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		stranger.PollFetches(ctx)
		v, err := c.View(deadline(t))
		if err != nil || len(v.Members) != 1 || len(v.Partitions) != 1 || v.Partitions[0].Owner == nil {
			return false
		}
		m := v.Members[0]
		if m.Self || m.Ours || m.Page != "" || len([]rune(m.Name)) > 17 {
			t.Errorf("a stranger is %+v", m)
		}
		return true
	})
}

func TestPageOf(t *testing.T) {
	for said, want := range map[string]string{
		"":                                       "",
		"entropipe output a":                     "",
		"entropipe output a inode 7":             "",
		"entropipe output a page http://x/":      "http://x/",
		"page http://x/":                         "",
		"somebody else page http://x/":           "",
		"entropipe output a inode 7 page ":       "",
		"entropipe output a inode 7 page h more": "h",
	} {
		if got := pageOf([]byte(said)); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
	said := []byte("entropipe output a inode 7 page http://x/")
	if output, inode := outputOf(said); output != "a" || inode != "7" {
		t.Errorf("output %q, inode %q", output, inode)
	}
}

// Only addresses that lead to a page become links.
func TestReachable(t *testing.T) {
	for _, c := range []struct {
		page, host string
		here       bool
		want       string
	}{
		{"http://127.0.0.1:8421/", "127.0.0.1", true, "http://127.0.0.1:8421/"},
		{"http://127.0.0.1:8421/", "10.0.0.7", false, ""},
		{"http://localhost:8421/", "10.0.0.7", false, ""},
		{"http://[::1]:8421/", "10.0.0.7", false, ""},
		{"http://0.0.0.0:8421/", "10.0.0.7", false, "http://10.0.0.7:8421/"},
		{"http://0.0.0.0:8421/", "10.0.0.7", true, "http://127.0.0.1:8421/"},
		{"http://[::]:8421/", "fd00::7", false, "http://[fd00::7]:8421/"},
		{"http://[::]/", "fd00::7", false, "http://[fd00::7]/"},
		{"http://0.0.0.0:8421/", "not an address", false, ""},
		{"http://10.0.0.9:8421/", "10.0.0.7", false, "http://10.0.0.9:8421/"},
		{"https://lidar.example/pages/2", "10.0.0.7", false, "https://lidar.example/pages/2"},
		{"javascript:alert(1)", "10.0.0.7", true, ""},
		{"data:text/html,x", "10.0.0.7", true, ""},
		{"http://user:password@x/", "10.0.0.7", true, ""},
		{"http://x/?token=secret", "10.0.0.7", true, ""},
		{"http://x/?", "10.0.0.7", true, ""},
		{"http://x/#y", "10.0.0.7", true, ""},
		{"http:///x", "10.0.0.7", true, ""},
		{"http:x", "10.0.0.7", true, ""},
		{"//x/", "10.0.0.7", true, ""},
		{"http://x/\u202e", "10.0.0.7", true, ""},
		{"http://" + strings.Repeat("x", 300) + "/", "10.0.0.7", true, ""},
		{"", "10.0.0.7", true, ""},
	} {
		if got := reachable(c.page, c.host, c.here); got != c.want {
			t.Errorf("%q seen at %s, here %v: %q, want %q", c.page, c.host, c.here, got, c.want)
		}
	}
}
