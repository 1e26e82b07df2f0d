package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"entropipe/ingest"
	"entropipe/ops/live"
)

// grouped is a Feed that shares its partitions with other processes.
type grouped interface {
	View(ctx context.Context) (*ingest.View, error)
	Generation() int32
}

// neighbours knows the other processes of the consumer group while somebody watches this one.
// The zero value, of a feed without group, knows that it stands alone. Any goroutine may call
// known; watch has a goroutine of its own, since brokers may be away.
type neighbours struct {
	mu      sync.Mutex
	grouped bool
	group   live.Group
}

// Of questions for the group.
const (
	viewEvery   = 10 * time.Second // between two of them
	viewSoon    = 2 * time.Second  // the same, after a change
	viewTimeout = 8 * time.Second
	viewKept    = time.Minute // how long an answer is shown, if no other follows
)

// known returns what is known now.
func (n *neighbours) known() live.Group {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.grouped:
		return live.Group{Note: "this page shows its own process; it shares no consumer group with others"}
	case n.group.Note == "" && n.group.Peers == nil:
		return live.Group{Note: "the brokers are asked for the consumer group"}
	}
	return n.group
}

func (n *neighbours) set(g live.Group) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.grouped, n.group = true, g
}

// watch asks for the group while watched says so, until done is closed.
func (n *neighbours) watch(done <-chan struct{}, group grouped, watched func() bool) {
	n.set(live.Group{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var asked, answered time.Time
	var last live.Group
	for seen, soon := group.Generation(), false; ; {
		now := group.Generation()
		soon = soon || now != seen
		seen = now
		switch wait := time.Since(asked); {
		case !watched():
			asked, last = time.Time{}, live.Group{}
			n.set(last)
		case wait >= viewEvery || soon && wait >= viewSoon:
			asked = time.Now()
			asking, stop := context.WithTimeout(ctx, viewTimeout)
			v, err := group.View(asking)
			stop()
			if err == nil {
				last, answered, soon = groupOf(v), time.Now(), !v.Stable
				n.set(last)
			} else if ctx.Err() == nil {
				if time.Since(answered) > viewKept {
					last = live.Group{Peers: []live.Peer{}}
				}
				last.Note = fmt.Sprintf("the consumer group is not known now: %v", err)
				n.set(last)
			}
		}
		select {
		case <-tick.C:
		case <-done:
			return
		}
	}
}

// groupOf returns the other members of v, and the partitions that this one does not read.
func groupOf(v *ingest.View) live.Group {
	g := live.Group{Peers: []live.Peer{}, Elsewhere: []live.Elsewhere{}}
	owned := map[string]int{}
	for i := range v.Partitions {
		p := &v.Partitions[i]
		e := live.Elsewhere{Topic: p.Topic, Partition: p.ID}
		if p.Owner != nil {
			owned[p.Owner.ID]++
			if p.Owner.Self {
				continue
			}
			e.Owner, e.URL = p.Owner.Name, p.Owner.Page
		}
		if p.Committed >= 0 && p.End >= 0 {
			behind := max(p.End-p.Committed, 0)
			e.Records = &behind
		}
		g.Elsewhere = append(g.Elsewhere, e)
	}
	for _, m := range v.Members {
		if m.Ours && !m.Self {
			g.Peers = append(g.Peers, live.Peer{Name: m.Name, URL: m.Page, Partitions: owned[m.ID]})
		}
	}
	slices.SortFunc(g.Peers, func(a, b live.Peer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.URL, b.URL))
	})
	if !v.Stable {
		g.Note = "the consumer group divides its partitions anew"
	}
	if v.OffsetsErr != nil {
		g.ElsewhereNote = fmt.Sprintf("committed offsets are not known: %v", v.OffsetsErr)
	}
	return g
}
