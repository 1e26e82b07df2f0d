package foxglove

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"entropipe/ops/live"
)

// client is one viewer. Its handler's goroutine writes (serve), a second one reads and obeys,
// a third one pings.
type client struct {
	s       *Server
	conn    *websocket.Conn
	watcher *live.Watcher
	wake    chan struct{} // the client asked for something

	mu        sync.Mutex
	byID      map[uint32]*subscription
	byChannel map[uint32]*subscription
	views     map[*stream]*view
	told      []bool // by position in the registry: the stream is advertised
	statuses  [][]byte
	dropped   bool // a status was left out

	many bool   // the client knows that there are more streams
	data []byte // the message in work
}

// subscription is one channel that the client watches. of is nil in that of transforms.
type subscription struct {
	id      uint32
	channel uint32
	of      *stream
	kind    kind
	payload *payload
	sent    map[*stream]mark // the last scenes; for the goroutine that writes
}

// mark tells scenes of a stream apart. A pointer would keep the scene's memory.
type mark struct {
	captured, offset int64
	index            int32
}

func markOf(s *live.Scene) mark { return mark{s.CapturedNs, s.Offset, s.Index} }

// view is a stream of which the client watches channels.
type view struct {
	channels int
	of       *live.View
}

func newClient(s *Server, conn *websocket.Conn) *client {
	return &client{s: s, conn: conn, watcher: s.cfg.Tap.Watch(), wake: make(chan struct{}, 1),
		byID: map[uint32]*subscription{}, byChannel: map[uint32]*subscription{}, views: map[*stream]*view{}}
}

// serve serves the client to its end.
func (c *client) serve() {
	ctx, cancel := context.WithCancel(c.s.ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { defer cancel(); c.read(ctx) })
	tasks.Go(func() { defer cancel(); c.ping(ctx) })
	if c.write(ctx) {
		// Close waits for the client's answer, which ends the goroutine that reads.
		c.conn.Close(websocket.StatusGoingAway, "the server ends")
	}
	cancel()
	c.conn.CloseNow()
	tasks.Wait()
	c.watcher.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sub := range c.byID {
		c.remove(sub)
	}
}

// ping drops a client that is away. A message that is being sent delays the ping.
func (c *client) ping(ctx context.Context) {
	tick := time.NewTicker(c.s.pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		wait, cancel := context.WithTimeout(ctx, 3*c.s.patience)
		err := c.conn.Ping(wait)
		cancel()
		if err != nil {
			return
		}
	}
}

// read obeys the client until the connection ends.
func (c *client) read(ctx context.Context) {
	for {
		kind, data, err := c.conn.Read(ctx)
		if err != nil {
			return
		}
		c.obey(kind == websocket.MessageText, data)
		select {
		case c.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// obey does what a message says, or leaves a status.
func (c *client) obey(text bool, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !text {
		if len(data) > 0 { // empty ones mean nothing
			c.answer(status(warning, "This server takes no binary messages; the opcode was %d", data[0]))
		}
		return
	}
	r, problem := parse(data)
	if problem != nil {
		c.answer(problem)
		return
	}
	if r.Op == "unsubscribe" {
		for _, id := range r.SubscriptionIDs {
			if sub := c.byID[id]; sub != nil {
				c.remove(sub)
			}
		}
		return
	}
	for _, s := range r.Subscriptions {
		c.subscribe(*s.ID, *s.ChannelID)
	}
}

// answer leaves a status for the client, if it reads them. The caller holds the lock.
func (c *client) answer(text []byte) {
	if len(c.statuses) < maxStatuses {
		c.statuses = append(c.statuses, text)
		return
	}
	c.dropped = true
}

// subscribe adds a subscription. The caller holds the lock.
func (c *client) subscribe(id, channel uint32) {
	sub := &subscription{id: id, channel: channel, kind: transforms, sent: map[*stream]mark{}}
	if channel != tfChannel {
		i := int(channel-tfChannel-1) / int(kinds)
		if channel <= tfChannel || i >= len(c.told) || !c.told[i] {
			c.answer(status(failure, "Unknown channel ID: %d", channel))
			return
		}
		sub.of = c.s.channels.sync(nil)[i]
		sub.kind = kind(channel - sub.of.first)
	}
	if c.byChannel[channel] != nil {
		c.answer(status(warning, "Client is already subscribed to channel: %d; ignoring subscription", channel))
		return
	}
	if c.byID[id] != nil {
		c.answer(status(failure, "Subscription ID was already used: %d; ignoring subscription", id))
		return
	}
	c.byID[id], c.byChannel[channel] = sub, sub
	if sub.of == nil {
		return
	}
	sub.payload = c.s.payloads.use(channel)
	v := c.views[sub.of]
	if v == nil {
		v = &view{of: c.watcher.View(sub.of.Stream)}
		c.views[sub.of] = v
	}
	v.channels++
}

// remove ends a subscription. The caller holds the lock.
func (c *client) remove(sub *subscription) {
	delete(c.byID, sub.id)
	delete(c.byChannel, sub.channel)
	if sub.of == nil {
		return
	}
	c.s.payloads.release(sub.channel)
	if v := c.views[sub.of]; v.channels > 1 {
		v.channels--
	} else {
		v.of.End()
		delete(c.views, sub.of)
	}
}

// write sends what is new until ctx ends, a message cannot be sent in time, or the server is
// closed; in the last case it returns true.
func (c *client) write(ctx context.Context) bool {
	ok := c.send(ctx, websocket.MessageText, c.s.info)
	for ok {
		if ok = c.texts(ctx) && c.scenes(ctx); !ok {
			break
		}
		select {
		case <-c.wake:
		case <-c.watcher.Wake:
		case <-c.s.ending:
			return true
		case <-ctx.Done():
			return false
		}
	}
	select {
	case <-c.s.ending:
		return true
	default:
		return false
	}
}

// send sends a message. It returns false if the client is gone or too slow.
func (c *client) send(ctx context.Context, kind websocket.MessageType, data []byte) bool {
	const slowest = 1 << 20 // bytes a second
	wait, cancel := context.WithTimeout(ctx, c.s.patience+time.Duration(len(data))*time.Second/slowest)
	defer cancel()
	return c.conn.Write(wait, kind, data) == nil
}

// texts sends channels that are new or gone, and statuses.
func (c *client) texts(ctx context.Context) bool {
	known := c.s.cfg.Tap.Streams()
	streams := c.s.channels.sync(known)
	var fresh []channel
	var gone []uint32
	c.mu.Lock()
	if c.told == nil {
		c.told = []bool{}
		fresh = append(fresh, channelOf(tfChannel, "/"+kindNames[transforms], transforms))
	}
	for i, of := range streams {
		if !of.tokens.Load() {
			if s := c.s.cfg.Tap.Newest(of.Stream); s != nil && s.Text != nil {
				of.tokens.Store(true) // a stream of token sequences, which viewers cannot draw
			}
		}
		switch tokens := of.tokens.Load(); {
		case i == len(c.told):
			if c.told = append(c.told, !tokens); !tokens {
				fresh = append(fresh, of.channels()...)
			}
		case tokens && c.told[i]:
			c.told[i] = false
			gone = append(gone, of.ids()...)
			for _, id := range of.ids() {
				if sub := c.byChannel[id]; sub != nil {
					c.remove(sub)
				}
			}
		}
	}
	if len(known) > maxStreams && !c.many {
		c.many = true
		c.answer(status(info, "The first %d streams are shown", maxStreams))
	}
	texts := c.statuses
	if c.dropped {
		texts = append(texts, status(warning, "Further answers were left out"))
	}
	c.statuses, c.dropped = nil, false
	c.mu.Unlock()
	if len(gone) > 0 {
		texts = append([][]byte{unadvertise(gone)}, texts...)
	}
	for part := range slices.Chunk(fresh, batch) {
		texts = append(texts, advertise(part))
	}
	for _, text := range texts {
		if !c.send(ctx, websocket.MessageText, text) {
			return false
		}
	}
	return true
}

// scenes sends the newest scene of each stream to each subscription that does not have it
// yet. All channels of a stream get the same one, and its pose comes first.
func (c *client) scenes(ctx context.Context) bool {
	c.mu.Lock()
	subs := make([]*subscription, 0, len(c.byID))
	var tf *subscription
	for _, sub := range c.byID {
		if sub.of == nil {
			tf = sub
		} else {
			subs = append(subs, sub)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(subs, func(a, b *subscription) int { return cmp.Compare(a.channel, b.channel) })
	var of *stream
	var s *live.Scene
	for _, sub := range subs {
		if sub.of != of {
			if of, s = sub.of, c.s.cfg.Tap.Newest(sub.of.Stream); s == nil || s.Text != nil {
				s = nil
				continue
			}
			if tf != nil && s.Pose != nil && !c.message(ctx, tf, of, s) {
				return false
			}
		}
		if s != nil && !c.message(ctx, sub, of, s) {
			return false
		}
	}
	return true
}

// message sends a scene to a subscription, unless the subscription has ended or has it.
func (c *client) message(ctx context.Context, sub *subscription, of *stream, s *live.Scene) bool {
	c.mu.Lock()
	subscribed := c.byID[sub.id] == sub
	c.mu.Unlock()
	if !subscribed || sub.sent[of] == markOf(s) {
		return true
	}
	sub.sent[of] = markOf(s)
	c.data = appendHeader(c.data[:0], sub.id, uint64(max(s.CapturedNs, 0)))
	if sub.kind == transforms {
		c.data = new(encoder).append(c.data, transforms, of, s)
	} else {
		c.data = sub.payload.append(c.data, sub.kind, of, s)
	}
	return c.send(ctx, websocket.MessageBinary, c.data)
}
