package web_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"entropipe/ops/leaktest"
	"entropipe/ops/live"
	"entropipe/ops/web"
	"entropipe/schemas"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var lidar = live.Stream{Topic: "points", Sequence: "drive"}

// serve starts a server of a tap.
func serve(t testing.TB, change func(*web.Config)) (*web.Server, *live.Tap) {
	t.Helper()
	tap := &live.Tap{}
	cfg := web.Config{Listen: "127.0.0.1:0", Gatherer: prometheus.NewRegistry(), Ready: func() error { return nil },
		Version: "1.2.3", Log: quiet, Tap: tap, Numbers: &live.Numbers{}}
	if change != nil {
		change(&cfg)
	}
	s, err := web.Serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, tap
}

// scene returns a scene of n points.
func scene(offset int64, n int) *live.Scene {
	s := &live.Scene{FrameKey: schemas.FrameKey{Topic: lidar.Topic, Sequence: lidar.Sequence, Offset: offset,
		FrameID: offset}, NPoints: int32(n), CapturedNs: time.Now().UnixNano(), X: make([]float32, n),
		Y: make([]float32, n), Z: make([]float32, n)}
	for i := range n {
		s.X[i], s.Y[i] = float32(i), float32(i%7)
	}
	return s
}

// feed offers scenes as a worker does, until the function it returns is called.
func feed(tap *live.Tap, points int) (stop func() (offered int64)) {
	end, done := make(chan struct{}), make(chan int64)
	go func() {
		var offset int64
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			if s := scene(offset, points); tap.Wants(&s.FrameKey) {
				tap.Offer(s)
				offset++
				tap.Committed(lidar.Topic, 0, offset)
			}
			select {
			case <-tick.C:
			case <-end:
				done <- offset
				return
			}
		}
	}()
	return func() int64 { close(end); return <-done }
}

func dial(t testing.TB, s *web.Server) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+s.Addr()+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(16 << 20)
	t.Cleanup(func() { c.CloseNow() })
	return c
}

func say(t testing.TB, c *websocket.Conn, text string) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// patience ends a test that waits in vain. No test depends on how long something takes.
const patience = 5 * time.Minute

const viewLidar = `{"op":"view","streams":[{"topic":"points","sequence":"drive"}]}`

// next returns the next message: the fields of a text, or the header of a scene.
func next(t testing.TB, c *websocket.Conn) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kind, data, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if kind == websocket.MessageBinary {
		data = data[8 : 8+binary.LittleEndian.Uint32(data[4:])]
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatalf("%v: %.200s", err, data)
	}
	return fields
}

// until returns the next message for which is holds.
func until(t testing.TB, c *websocket.Conn, what string, is func(map[string]any) bool) map[string]any {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if m := next(t, c); is(m) {
			return m
		}
	}
	t.Fatalf("no %s within %v", what, patience)
	return nil
}

// offset returns the offset of a scene.
func offset(t testing.TB, scene map[string]any) int64 {
	t.Helper()
	n, err := strconv.ParseInt(fmt.Sprint(scene["offset"]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func typed(kind string) func(map[string]any) bool {
	return func(m map[string]any) bool { return m["type"] == kind || m["kind"] == kind }
}

// A client is told of streams, sees scenes of those that it views, learns what is durable, and
// gets history and the whole newest scene when it asks.
func TestClient(t *testing.T) {
	s, tap := serve(t, nil)
	c := dial(t, s)
	if hello := next(t, c); hello["type"] != "hello" || hello["version"] != "1.2.3" || hello["epoch"] == nil {
		t.Errorf("the first message is %v", hello)
	}
	stop := feed(tap, 30_000)
	streams := until(t, c, "streams", typed("streams"))
	if fmt.Sprint(streams["streams"]) != "[map[sequence:drive topic:points]]" {
		t.Errorf("streams %v", streams)
	}
	say(t, c, viewLidar)
	var last string
	for range 3 {
		f := until(t, c, "frame", typed("frame"))
		if f["offset"] == last || f["held"] != 20_000. || f["history"] != false {
			t.Errorf("offset %v after %v, held %v", f["offset"], last, f["held"])
		}
		last = f["offset"].(string)
	}
	until(t, c, "durable", func(m map[string]any) bool {
		return m["type"] == "durable" && strings.HasPrefix(fmt.Sprint(m["ends"]), "[map[end:")
	})
	until(t, c, "state", typed("state"))
	say(t, c, `{"op":"exact","stream":{"topic":"points","sequence":"drive"}}`)
	whole := until(t, c, "exact", typed("exact"))
	if whole["held"] != 30_000. {
		t.Errorf("the whole scene has %v points", whole["held"])
	}
	stop()
	say(t, c, `{"op":"history","stream":{"topic":"points","sequence":"drive"}}`)
	old := until(t, c, "history", func(m map[string]any) bool { return m["history"] == true })
	if offset(t, old) > offset(t, whole) { // a slow server skips scenes, the very first among them
		t.Errorf("history begins at offset %v, after %v was seen", old["offset"], whole["offset"])
	}
	for text, want := range map[string]string{
		`{"op":"view","streams":[` + strings.Repeat(`{},`, 64) + `{}]}`: "too many",
		`[]`: "no JSON object", `{`: "no JSON object", `{"op":"write"}`: "unknown op",
		`{"op":"exact","stream":{"topic":"other"}}`: "no scene"} {
		say(t, c, text)
		m := until(t, c, "error", typed("error"))
		if !strings.Contains(m["message"].(string), want) {
			t.Errorf("%.40s: %v, want %q", text, m, want)
		}
	}
	c.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat(" ", 64<<10)))
	for {
		if _, _, err := c.Read(t.Context()); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
				t.Errorf("a message of 64 KiB ends with %v", err)
			}
			break
		}
	}
}

// Twenty clients see scenes while another one does not read: it holds nothing back, not even
// the server's end. A server takes 64 clients.
func TestManyClientsAndAStalledOne(t *testing.T) {
	s, tap := serve(t, func(c *web.Config) { c.Patience = time.Hour }) // nobody is dropped
	stop := feed(tap, 20_000)
	stall(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var seen, readers sync.WaitGroup
	var gone atomic.Int64 // readers that lost their connection after they had seen enough
	for range 20 {
		c := dial(t, s)
		say(t, c, viewLidar)
		seen.Add(1)
		readers.Go(func() {
			for n := 1; ; n++ {
				if _, _, err := c.Read(ctx); err != nil {
					if gone.Add(1); n <= 30 {
						t.Errorf("after %d messages: %v", n, err)
						seen.Done()
					}
					return
				}
				if n == 30 {
					seen.Done() // but reads on, as a client does
				}
			}
		})
	}
	seen.Wait()
	stop()
	var more []*websocket.Conn
	refused := 0
	for range 60 {
		c, r, err := websocket.Dial(t.Context(), "ws://"+s.Addr()+"/live", nil)
		if err == nil {
			more = append(more, c)
		} else if refused++; r == nil || r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the client too many gets %v", err)
		}
	}
	if left := int(gone.Load()); len(more) < 64-21 || len(more) > 64-21+left || refused != 60-len(more) {
		t.Errorf("%d clients more, %d refused, %d had left", len(more), refused, left)
	}
	if err := s.Close(); err != nil {
		t.Errorf("the server closes: %v", err)
	}
	cancel()
	readers.Wait()
	for _, c := range more {
		c.CloseNow()
	}
}

// stall makes a client that views the stream and does not read. The server counts it when the
// function returns.
func stall(t *testing.T, s *web.Server) {
	t.Helper()
	stalled, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stalled.Close() })
	stalled.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(stalled, "GET /live HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", s.Addr())
	r, err := http.ReadResponse(bufio.NewReaderSize(stalled, 16), nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", r, err)
	}
	stalled.Write(masked(viewLidar))
}

// Frames that only stalled clients view are not copied; another client gets new ones at once.
func TestStalledClientsCostNoCopies(t *testing.T) {
	s, tap := serve(t, func(c *web.Config) { c.Patience = time.Hour })
	var offered atomic.Int64
	done := make(chan struct{})
	var feeder sync.WaitGroup
	defer feeder.Wait()
	defer close(done)
	feeder.Go(func() {
		for offset := int64(0); ; offset++ {
			if s := scene(offset, 20_000); tap.Wants(&s.FrameKey) {
				tap.Offer(s)
				offered.Add(1)
			}
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	stall(t, s)
	stall(t, s)
	for begin := time.Now(); ; { // sockets hold some scenes
		was := offered.Load()
		time.Sleep(1500 * time.Millisecond)
		if was > 0 && offered.Load() == was {
			break
		}
		if time.Since(begin) > patience {
			t.Fatalf("%d scenes, and more are copied, though nobody reads", offered.Load())
		}
	}
	c := dial(t, s)
	say(t, c, viewLidar)
	seen := map[any]bool{}
	for len(seen) < 5 {
		if m := next(t, c); m["kind"] == "frame" {
			seen[m["offset"]] = true
		}
	}
}

// A client that does not read is dropped after the patience of the server.
func TestStalledClientIsDropped(t *testing.T) {
	s, tap := serve(t, func(c *web.Config) { c.Patience = 200 * time.Millisecond })
	stop := feed(tap, 20_000)
	defer stop()
	stall(t, s)
	pages := func() int {
		r, err := http.Get("http://" + s.Addr() + "/api/state")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var state live.State
		if err := json.NewDecoder(r.Body).Decode(&state); err != nil {
			t.Fatal(err)
		}
		return state.Watchers.Pages
	}
	defer http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(patience); pages() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the client is not dropped")
		}
		for of, k := tap.Streams(), int64(0); len(of) > 0 && k < 20; k++ { // more than sockets hold
			tap.Offer(scene(time.Now().UnixNano(), 20_000))
		}
	}
}

// masked returns a text as a frame of a WebSocket's client.
func masked(text string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// Five thousand frames and clients that come and go leave neither goroutines nor memory.
func TestReconnects(t *testing.T) {
	s, tap := serve(t, nil)
	stop := feed(tap, 5000)
	// goroutines waits until there are at most so many, and returns how many there are.
	goroutines, heap := func(most int) int {
		for end := time.Now().Add(patience); runtime.NumGoroutine() > most && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		return runtime.NumGoroutine()
	}, func() uint64 {
		runtime.GC()
		runtime.GC() // pools keep what is theirs through one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	offset := int64(1 << 20)
	visit := func() {
		c := dial(t, s)
		say(t, c, viewLidar)
		until(t, c, "frame", typed("frame"))
		for range 250 {
			tap.Offer(scene(offset, 5000))
			offset++
		}
		say(t, c, `{"op":"exact","stream":{"topic":"points","sequence":"drive"}}`)
		until(t, c, "exact", typed("exact"))
		c.CloseNow()
	}
	http.DefaultClient.CloseIdleConnections()
	most := runtime.NumGoroutine() + 5 // the hub's one; a client that stays has three
	visit()
	goroutines(most)
	used := heap()
	for range 20 {
		visit()
	}
	if after := goroutines(most); after > most {
		t.Errorf("%d goroutines after 20 clients, want at most %d", after, most)
	}
	// The history of 5,000 points a scene grows to 64 scenes of 30 kB meanwhile.
	if after := heap(); after > used+used/10+4<<20 {
		t.Errorf("%d bytes of heap after 20 clients, %d before", after, used)
	}
	stop()
}

// Server-sent events carry the state to clients without WebSocket.
func TestEvents(t *testing.T) {
	s, _ := serve(t, nil)
	r, err := http.Get("http://" + s.Addr() + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer r.Body.Close()
	buf := make([]byte, 7)
	if _, err := io.ReadFull(r.Body, buf); err != nil || string(buf) != `data: {` ||
		r.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%q %v, %v", buf, err, r.Header)
	}
}

// FuzzClient gives a client's message to a server: none ends it.
func FuzzClient(f *testing.F) {
	for _, text := range []string{viewLidar, `{"op":"history","stream":{"topic":"points","sequence":"drive"}}`,
		`{"op":"exact","stream":{}}`, `{"op":"view","hz":-1e308}`, `{"op":"view","hz":1e-308,"streams":[{}]}`, `null`,
		`{`, `{"op":1}`, "\xff"} {
		f.Add([]byte(text))
	}
	s, tap := serve(f, nil)
	first := scene(0, 10)
	tap.Wants(&first.FrameKey)
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 32<<10 {
			t.Skip()
		}
		c := dial(t, s)
		c.Write(t.Context(), websocket.MessageText, text)
		say(t, c, `{"op":"end"}`)
		until(t, c, "error", func(m map[string]any) bool {
			return m["type"] == "error" && strings.HasPrefix(m["message"].(string), "unknown op")
		})
		c.CloseNow()
	})
}
