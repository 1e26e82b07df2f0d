package web

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// textCache holds messages that many clients get at the same time, so that each is made once.
type textCache struct {
	mu      sync.Mutex
	stateAt int64 // TimeNs of the state in state
	state   []byte
	commits int64             // commits that the texts of durable tell of
	durable map[string][]byte // by topics
}

// stateText returns the message of the newest state. The number of those who watch is the one
// of the first client that asked.
func (h *hub) stateText() []byte {
	s := h.state()
	c := &h.texts
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil || c.stateAt != s.TimeNs {
		c.state, c.stateAt = message(map[string]any{"type": "state", "state": &s}), s.TimeNs
	}
	return c.state
}

// durable returns the message of the committed ends of some topics.
func (h *hub) durable(topics map[string]bool) []byte {
	type end struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		End       int64  `json:"end"`
	}
	key := strings.Join(slices.Sorted(maps.Keys(topics)), "\x00")
	c := &h.texts
	c.mu.Lock()
	defer c.mu.Unlock()
	// Commits first: a commit in between is told again.
	if n := h.cfg.Tap.Commits(); c.durable == nil || c.commits != n || len(c.durable) >= maxClients {
		c.commits, c.durable = n, map[string][]byte{}
	}
	if text := c.durable[key]; text != nil {
		return text
	}
	ends := []end{}
	h.cfg.Tap.Ends(func(topic string, id int32, next int64) {
		if topics[topic] {
			ends = append(ends, end{topic, id, next})
		}
	})
	text := message(map[string]any{"type": "durable", "ends": ends})
	c.durable[key] = text
	return text
}
