package web

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"entropipe/ops/live"
)

// Bounds of what a server spends on those who watch.
const (
	maxClients   = 64
	maxViews     = 64 // streams that a client views
	keptFrames   = 64 // scenes of a stream
	keptBytes    = 32 << 20
	linger       = time.Minute // how long scenes are kept after the last client left
	patience     = 10 * time.Second
	pingEvery    = 15 * time.Second
	durableEvery = 100 * time.Millisecond

	tooMany = "too many clients; at most 64 may watch at once"
)

// Memory is what a server holds for those who watch, in bytes: the kept scenes, and two whole
// ones, the newest and the next.
const Memory = keptBytes + 2*live.MaxWhole

// hub encodes each new scene once, keeps the last ones, and gives them to its clients. One
// goroutine (run) encodes; each client has goroutines of its own (client.go). The goroutine
// lives while somebody watches, and a minute longer.
type hub struct {
	cfg   *Config
	epoch int64 // identifies the process's start

	mu      sync.Mutex
	clients map[*client]struct{}
	others  int // clients of events
	running bool
	closed  bool
	views   map[live.Stream]*view
	kept    int64         // bytes of all histories
	wake    chan struct{} // views changed, or the last client left
	stop    chan struct{}
	tasks   sync.WaitGroup

	asked atomic.Int64 // Unix ns at which the numbers were asked for last
	exact exactCache
	texts textCache
}

// view is what the hub knows of a stream that somebody views or viewed.
type view struct {
	clients int
	tap     *live.View // nil: nobody views it
	until   time.Time  // when its history goes, if nobody views it
	last    *live.Scene
	history []kept // oldest first
}

type kept struct {
	at   int64 // when the scene was copied
	data []byte
}

func newHub(cfg *Config) *hub {
	if cfg.Patience <= 0 {
		cfg.Patience = patience
	}
	h := &hub{cfg: cfg, epoch: time.Now().UnixMilli(), clients: map[*client]struct{}{}, views: map[live.Stream]*view{},
		wake: make(chan struct{}, 1), stop: make(chan struct{})}
	if cfg.Tap != nil && cfg.Always {
		h.mu.Lock()
		h.start()
		h.mu.Unlock()
	}
	return h
}

// close ends all clients and waits for them.
func (h *hub) close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.stop)
	}
	h.mu.Unlock()
	h.tasks.Wait()
}

// pages returns the number of clients.
func (h *hub) pages() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients) + h.others
}

// enter counts a client of events; false: there are too many.
func (h *hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.clients)+h.others >= maxClients {
		return false
	}
	h.others++
	return true
}

func (h *hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others--
}

// add makes c a client; false: there are too many.
func (h *hub) add(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.clients)+h.others >= maxClients {
		return false
	}
	h.clients[c] = struct{}{}
	h.tasks.Add(1)
	h.start()
	return true
}

// remove ends c's views.
func (h *hub) remove(c *client) {
	h.mu.Lock()
	delete(h.clients, c)
	h.mu.Unlock()
	c.setViews(nil, 0)
	h.tasks.Done()
	h.notify()
}

// start starts the goroutine that encodes, unless it runs. The caller holds the lock.
func (h *hub) start() {
	if h.running || h.cfg.Tap == nil || h.closed {
		return
	}
	h.running = true
	h.tasks.Add(1)
	go h.run()
}

// notify wakes the goroutine that encodes.
func (h *hub) notify() {
	select {
	case h.wake <- struct{}{}:
	default: // it is awake
	}
}

// run encodes new scenes until nobody has watched for a minute, or the hub is closed.
func (h *hub) run() {
	defer h.tasks.Done()
	w := h.cfg.Tap.Watch()
	defer w.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	idle := time.Now()
	for {
		h.follow(w)
		h.encode()
		h.tell()
		select {
		case <-w.Wake:
		case <-h.wake:
		case <-tick.C:
		case <-h.stop:
			h.drop(time.Time{})
			return
		}
		h.drop(time.Now())
		h.mu.Lock()
		if len(h.clients) > 0 || h.cfg.Always {
			idle = time.Now()
		}
		if time.Since(idle) > linger {
			h.running = false
			h.mu.Unlock()
			h.drop(time.Time{})
			return
		}
		h.mu.Unlock()
	}
}

// follow opens and closes views of the tap.
func (h *hub) follow(w *live.Watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cfg.Always { // the tap copies a few streams by itself
		for _, of := range h.cfg.Tap.Streams() {
			if len(h.views) >= alwaysKept {
				break
			}
			if h.views[of] == nil {
				h.views[of] = &view{}
			}
		}
	}
	for of, v := range h.views {
		switch {
		case v.clients > 0 && v.tap == nil:
			v.tap = w.View(of)
		case v.clients == 0 && v.tap != nil:
			v.tap.End()
			v.tap, v.until = nil, time.Now().Add(linger)
		}
		if v.tap != nil {
			v.tap.StandFor(v.clients)
			v.tap.Rest(!h.cfg.Always && h.unread(of))
		}
	}
}

// unread reports whether all clients that view a stream have left its last scene unread for a
// while. The caller holds the lock.
func (h *hub) unread(of live.Stream) bool {
	viewed := false
	for c := range h.clients {
		switch views, stalls := c.stalls(of); {
		case views && !stalls:
			return false
		case views:
			viewed = true
		}
	}
	return viewed
}

// alwaysKept bounds the streams whose scenes are kept for nobody.
const alwaysKept = 4

// drop forgets the streams that nobody has viewed for a minute; all of them at the time zero.
func (h *hub) drop(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for of, v := range h.views {
		if !now.IsZero() && (v.clients > 0 || v.tap != nil || h.cfg.Always || now.Before(v.until)) {
			continue
		}
		if v.tap != nil {
			v.tap.End()
			v.tap = nil
		}
		for _, k := range v.history {
			h.kept -= int64(len(k.data))
		}
		if v.clients > 0 {
			v.history, v.last = nil, nil
			continue
		}
		delete(h.views, of)
	}
	if now.IsZero() || len(h.views) == 0 {
		h.exact.clear()
	}
}

// encode encodes the newest scene of each stream that has a new one.
func (h *hub) encode() {
	type job struct {
		of live.Stream
		v  *view
	}
	var jobs []job
	h.mu.Lock()
	for of, v := range h.views {
		jobs = append(jobs, job{of, v})
	}
	h.mu.Unlock()
	for _, j := range jobs {
		scene := h.cfg.Tap.Newest(j.of)
		if scene == nil || scene == j.v.last { // run alone writes last, but for drop
			continue
		}
		data := h.encoded(scene, Encode)
		h.mu.Lock()
		j.v.last = scene
		if data == nil {
			h.mu.Unlock()
			continue
		}
		h.keep(j.v, kept{scene.CapturedNs, data})
		for c := range h.clients {
			c.offer(j.of, data)
		}
		h.mu.Unlock()
	}
}

// encoded returns the bytes of a scene; nil after a panic, since those who watch must not end
// the process.
func (h *hub) encoded(s *live.Scene, encode func(*live.Scene) []byte) (data []byte) {
	defer func() {
		if p := recover(); p != nil {
			h.cfg.Log.Error("a scene cannot be shown: this is a bug", "topic", s.Topic, "partition", s.Partition,
				"offset", s.Offset, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return encode(s)
}

// keep adds a scene to a history, and drops the oldest ones beyond the bounds. The caller
// holds the lock.
func (h *hub) keep(v *view, k kept) {
	v.history = append(v.history, k)
	h.kept += int64(len(k.data))
	if len(v.history) > keptFrames {
		h.forget(v)
	}
	for h.kept > keptBytes {
		oldest := v
		for _, other := range h.views {
			if len(other.history) > 0 && (len(oldest.history) == 0 || other.history[0].at < oldest.history[0].at) {
				oldest = other
			}
		}
		if len(oldest.history) == 0 {
			return
		}
		h.forget(oldest)
	}
}

// forget drops the oldest scene of a history. The caller holds the lock.
func (h *hub) forget(v *view) {
	h.kept -= int64(len(v.history[0].data))
	v.history = slices.Delete(v.history, 0, 1)
}

// tell wakes the clients that have not heard of the newest streams or commits.
func (h *hub) tell() {
	streams, commits := len(h.cfg.Tap.Streams()), h.cfg.Tap.Commits()
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		c.news(streams, commits)
	}
}

// view counts a view of a stream, and returns its newest scene; nil if there is none. The
// caller holds the lock.
func (h *hub) view(of live.Stream) []byte {
	v := h.views[of]
	if v == nil {
		v = &view{}
		h.views[of] = v
	}
	v.clients++
	if n := len(v.history); n > 0 {
		return v.history[n-1].data
	}
	return nil
}

// unview ends a view. The caller holds the lock.
func (h *hub) unview(of live.Stream) {
	if v := h.views[of]; v != nil && v.clients > 0 {
		v.clients--
	}
}

// history returns the kept scenes of a stream, oldest first, which the caller must not change.
func (h *hub) history(of live.Stream) [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.views[of]
	if v == nil {
		return nil
	}
	all := make([][]byte, len(v.history))
	for i, k := range v.history {
		all[i] = k.data
	}
	return all
}

// message returns a text message of the server.
func message(fields map[string]any) []byte {
	text, err := json.Marshal(fields)
	if err != nil {
		panic("web: a message without JSON form: " + err.Error())
	}
	return text
}

// exactCache holds whole scenes, so that several clients of one scene cost one encoding.
type exactCache struct {
	mu    sync.Mutex
	scene [4]*live.Scene
	data  [4][]byte
	next  int
}

// get returns the bytes of a whole scene; nil if encode gives none.
func (e *exactCache) get(s *live.Scene, encode func(*live.Scene) []byte) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.scene[:], s); i >= 0 {
		return e.data[i]
	}
	data := encode(s)
	e.scene[e.next], e.data[e.next] = s, data
	e.next = (e.next + 1) % len(e.scene)
	return data
}

// clear forgets all scenes.
func (e *exactCache) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scene, e.data = [4]*live.Scene{}, [4][]byte{}
}
