package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"entropipe/ops/live"
)

// client is one WebSocket. Its handler's goroutine writes, a second one reads, a third one
// pings. The hub leaves what is new in the fields behind the lock and never waits.
type client struct {
	h    *hub
	wake chan struct{} // something is new

	mu       sync.Mutex
	views    map[live.Stream]*place
	topics   map[string]bool // topics of the views
	replies  [][]byte        // scenes that the client asked for: a history or one whole scene
	period   time.Duration   // least time between two scenes of a stream
	streams  int             // number of streams that are known
	commits  int64           // number of commits that were seen
	told     int             // the same, that the client was told
	heard    int64
	problem  string
	hurrying bool // all commits are to be told at once: the views changed
}

// place is the slot of one stream: the newest scene that was not yet sent.
type place struct {
	data  []byte
	since time.Time // when data came to an empty place
	due   time.Time
}

// stalledAfter is the time after which a scene that is due and unsent means that the client
// does not read.
const stalledAfter = time.Second

// sendBuffer bounds what the system keeps of a client that does not read: two scenes or three.
// With the default, which is some megabytes, a slow client would see what is long over.
const sendBuffer = 256 << 10

// connKey is the key of the connection in a request's context.
type connKey struct{}

// maxRequest bounds a message of a client.
const maxRequest = 32 << 10

// request is a message of a client.
type request struct {
	Op      string        `json:"op"`
	Streams []live.Stream `json:"streams"`
	Stream  live.Stream   `json:"stream"`
	Hz      float64       `json:"hz"`
}

// ServeHTTP serves one WebSocket until the client goes or does not read.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &client{h: h, wake: make(chan struct{}, 1), views: map[live.Stream]*place{}}
	if !h.add(c) {
		http.Error(w, tooMany, http.StatusServiceUnavailable)
		return
	}
	defer h.remove(c)
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the guard has looked
	if err != nil {
		return // it has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxRequest)
	if tcp, ok := r.Context().Value(connKey{}).(*net.TCPConn); ok {
		tcp.SetWriteBuffer(sendBuffer)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer conn.CloseNow() // ends the goroutines below
	tasks.Go(func() { defer cancel(); c.read(ctx, conn) })
	tasks.Go(func() { defer cancel(); ping(ctx, conn, c.h.cfg.Patience) })
	c.write(ctx, conn)
	cancel()
}

// ping drops a client that is away.
func ping(ctx context.Context, conn *websocket.Conn, patience time.Duration) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		wait, cancel := context.WithTimeout(ctx, patience)
		err := conn.Ping(wait)
		cancel()
		if err != nil {
			return
		}
	}
}

// read obeys the client's messages until the connection ends.
func (c *client) read(ctx context.Context, conn *websocket.Conn) {
	for {
		kind, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			c.fail("messages are JSON texts")
			continue
		}
		c.obey(text)
	}
}

// obey does what a message says. A message that is wrong is answered with an error.
func (c *client) obey(text []byte) {
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		c.fail("a message is no JSON object of op, streams, stream and hz")
		return
	}
	switch r.Op {
	case "view":
		if len(r.Streams) > maxViews {
			c.fail("too many streams; at most 64 can be viewed at once")
			return
		}
		c.setViews(r.Streams, r.Hz)
	case "history":
		c.reply(historyOf(c.h.history(r.Stream)))
	case "exact":
		if c.h.cfg.Tap == nil {
			return
		}
		scene := c.h.cfg.Tap.Newest(r.Stream)
		if scene == nil {
			c.fail("the stream has no scene")
			return
		}
		whole := c.h.exact.get(scene, func(s *live.Scene) []byte { return c.h.encoded(s, EncodeExact) })
		if whole == nil {
			c.fail("the scene cannot be shown")
			return
		}
		c.reply([][]byte{whole})
	default:
		c.fail("unknown op; view, history and exact are known")
	}
}

// historyOf returns copies of scenes that say that they are history.
func historyOf(scenes [][]byte) [][]byte {
	was, is := []byte(`"history":false`), []byte(`"history":true `)
	marked := make([][]byte, len(scenes))
	for i, s := range scenes {
		marked[i] = bytes.Clone(s)
		if at := bytes.Index(marked[i], was); at >= 0 { // the field stands before all text of producers
			copy(marked[i][at:], is)
		}
	}
	return marked
}

// setViews replaces the views. A new one begins with the newest scene that is kept.
func (c *client) setViews(streams []live.Stream, hz float64) {
	views, topics := make(map[live.Stream]*place, len(streams)), map[string]bool{}
	c.h.mu.Lock() // a scene that is encoded meanwhile is either kept before, or offered after
	c.mu.Lock()
	for _, of := range streams {
		if views[of] != nil {
			continue
		}
		topics[of.Topic] = true
		if p := c.views[of]; p != nil {
			views[of] = p
			continue
		}
		views[of] = &place{data: c.h.view(of), since: time.Now()}
	}
	for of := range c.views {
		if views[of] == nil {
			c.h.unview(of)
		}
	}
	c.views, c.topics, c.hurrying, c.period = views, topics, true, 0
	if hz > 0 {
		c.period = time.Duration(float64(time.Second) / max(min(hz, 100), .01))
	}
	c.mu.Unlock()
	c.h.mu.Unlock()
	c.h.notify()
	c.stir()
}

// offer leaves a scene for the client, if it views the stream.
func (c *client) offer(of live.Stream, data []byte) {
	c.mu.Lock()
	p := c.views[of]
	if p != nil {
		if p.data == nil {
			p.since = time.Now()
		}
		p.data = data
	}
	c.mu.Unlock()
	if p != nil {
		c.stir()
	}
}

// stalls reports whether the client views a stream, and whether it does not read its scenes.
func (c *client) stalls(of live.Stream) (views, stalls bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.views[of]
	if p == nil {
		return false, false
	}
	begin := p.since
	if p.due.After(begin) {
		begin = p.due
	}
	return true, p.data != nil && time.Since(begin) > stalledAfter
}

// news leaves the numbers of streams and commits.
func (c *client) news(streams int, commits int64) {
	c.mu.Lock()
	changed := streams != c.streams || commits != c.commits
	c.streams, c.commits = streams, commits
	c.mu.Unlock()
	if changed {
		c.stir()
	}
}

// reply leaves scenes that the client asked for, in place of earlier ones that were not sent.
func (c *client) reply(scenes [][]byte) {
	c.mu.Lock()
	c.replies = scenes
	c.mu.Unlock()
	c.stir()
}

// fail leaves an error.
func (c *client) fail(problem string) {
	c.mu.Lock()
	c.problem = problem
	c.mu.Unlock()
	c.stir()
}

// stir wakes the goroutine that writes.
func (c *client) stir() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake
	}
}

// write sends what is new until ctx ends or a message cannot be sent in time.
func (c *client) write(ctx context.Context, conn *websocket.Conn) {
	send := func(kind websocket.MessageType, data []byte) bool {
		wait, cancel := context.WithTimeout(ctx, c.h.cfg.Patience)
		defer cancel()
		return conn.Write(wait, kind, data) == nil
	}
	if !send(websocket.MessageText, message(map[string]any{"type": "hello", "version": c.h.cfg.Version,
		"epoch": c.h.epoch})) {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	soon := time.NewTimer(0)
	defer soon.Stop()
	var durable time.Time // when commits were told
	state := true
	for {
		if state && c.h.cfg.Numbers != nil {
			if !send(websocket.MessageText, c.h.stateText()) {
				return
			}
		}
		for _, text := range c.texts(&durable) {
			if !send(websocket.MessageText, text) {
				return
			}
		}
		for data, ok := c.scene(); ok; data, ok = c.scene() {
			if !send(websocket.MessageBinary, data) {
				return
			}
		}
		if wait := c.pause(durable); wait > 0 {
			soon.Reset(wait)
		}
		state = false
		select {
		case <-c.wake:
		case <-soon.C:
		case <-tick.C:
			state = true
		case <-c.h.stop: // without the handshake of an end, for which a stalled client would be waited
			return
		case <-ctx.Done():
			return
		}
	}
}

// texts returns the messages of text that are due.
func (c *client) texts(durable *time.Time) (all [][]byte) {
	c.mu.Lock()
	streams := c.streams != c.told
	c.told = c.streams
	commits := c.hurrying || c.commits != c.heard && time.Since(*durable) >= durableEvery
	if commits {
		c.heard, c.hurrying, *durable = c.commits, false, time.Now()
	}
	topics, problem := c.topics, c.problem
	c.problem = ""
	c.mu.Unlock()
	if c.h.cfg.Tap == nil {
		streams, commits = false, false
	}
	if problem != "" {
		all = append(all, message(map[string]any{"type": "error", "message": problem}))
	}
	if streams {
		all = append(all, message(map[string]any{"type": "streams", "streams": c.h.cfg.Tap.Streams()}))
	}
	if commits && len(topics) > 0 {
		all = append(all, c.h.durable(topics))
	}
	return all
}

// scene takes one scene that is due: first of those that the client asked for.
func (c *client) scene() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.replies) > 0 {
		data := c.replies[0]
		c.replies = c.replies[1:]
		return data, true
	}
	now := time.Now()
	for _, p := range c.views {
		if p.data != nil && !now.Before(p.due) {
			data := p.data
			// From the time that was due, so that scenes which come a little late keep the rate.
			p.data = nil
			if now.Sub(p.since) > stalledAfter {
				c.h.notify() // the stream may rest
			}
			if p.due = p.due.Add(c.period); now.Sub(p.due) > 0 {
				p.due = now.Add(c.period / 2)
			}
			return data, true
		}
	}
	return nil, false
}

// pause returns how long to wait for a scene or a message that is held back; 0: none is.
func (c *client) pause(durable time.Time) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := func(t time.Time) {
		if left := max(time.Until(t), time.Millisecond); wait == 0 || left < wait {
			wait = left
		}
	}
	for _, p := range c.views {
		if p.data != nil {
			until(p.due)
		}
	}
	if c.commits != c.heard {
		until(durable.Add(durableEvery))
	}
	return wait
}
