package foxglove

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"entropipe/ops/live"
	"entropipe/schemas"
	"entropipe/schemas/codec"
	messages "entropipe/schemas/codec/foxglove"
)

// patience ends a test that waits in vain. No test depends on how long something takes.
const patience = 5 * time.Minute

var lidar = live.Stream{Topic: "points", Sequence: "drive"}

// drive returns a scene of n points on a helix, whose hull has every third point, a mesh, a
// hull in space and maxima.
func drive(offset int64, n int, origin [3]float64) *live.Scene {
	s := &live.Scene{FrameKey: schemas.FrameKey{Topic: lidar.Topic, Sequence: lidar.Sequence, Dataset: "synthetic",
		Sensor: "lidar top", FrameID: offset, TimeNs: 1_700_000_000_000_000_001 + offset, Offset: offset},
		SentNs: 1_700_000_000_000_000_000, CapturedNs: 1_700_000_000_123_456_789 + offset, NPoints: int32(n),
		Origin: origin}
	s.Hull = &schemas.Hull{Area: 1.5, Perimeter: 80, Status: schemas.StatusOK}
	s.Hull3 = &schemas.Hull3{Area: 2, Volume: 3}
	s.Maxima = []schemas.Maxima{{Idx: []int32{1}}}
	for i := range n {
		angle := float64(i) * .3
		x, y, z := float32(10*math.Cos(angle)), float32(10*math.Sin(angle)), float32(i)/7
		s.X, s.Y, s.Z = append(s.X, x), append(s.Y, y), append(s.Z, z)
		s.Intensity = append(s.Intensity, float32(i)/16)
		s.Return = append(s.Return, int32(i%3+1))
		if i%3 == 0 {
			s.Hull.Idx = append(s.Hull.Idx, int32(i))
			s.Hull.X, s.Hull.Y = append(s.Hull.X, origin[0]+float64(x)), append(s.Hull.Y, origin[1]+float64(y))
		}
		if i >= 2 {
			s.Triangles = append(s.Triangles, int32(i-2), int32(i-1), int32(i))
		}
	}
	s.Hull3.Idx, s.Hull3.Faces = []int32{0, 1, 2}, []int32{0, 1, 2, 0, 2, 1}
	s.Meshed = int32(len(s.Triangles) / 3)
	for o := range schemas.NumOps {
		s.Ops[o] = schemas.OpResult{Status: schemas.StatusOK, N: 3, Ns: 1000}
	}
	return s
}

// viewer is a client of a Server.
type viewer struct {
	t        *testing.T
	conn     *websocket.Conn
	channels map[string]channel // by topic
}

func start(t *testing.T, tap *live.Tap) (*Server, string) {
	t.Helper()
	s := New(Config{Tap: tap, Version: "1.2.3"})
	server := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); server.Close() })
	return s, server.URL
}

func dial(t *testing.T, url string) *viewer {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: protocols})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(64 << 20)
	t.Cleanup(func() { conn.CloseNow() })
	return &viewer{t: t, conn: conn, channels: map[string]channel{}}
}

// next returns the next message: of a text its op, of a channel its subscription.
func (v *viewer) next() (op string, subscription uint32, body []byte) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	kind, data, err := v.conn.Read(ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	if kind == websocket.MessageBinary {
		if len(data) < headerSize || data[0] != opMessage {
			v.t.Fatalf("binary message %x", data[:min(len(data), 20)])
		}
		return "", binary.LittleEndian.Uint32(data[1:]), data[headerSize:]
	}
	var text struct {
		Op         string
		Channels   []channel
		ChannelIDs []uint32
	}
	if err := json.Unmarshal(data, &text); err != nil {
		v.t.Fatalf("%s: %v", data, err)
	}
	for _, c := range text.Channels {
		v.channels[c.Topic] = c
	}
	return text.Op, 0, data
}

// until reads messages until one has the op; empty: a message of a channel.
func (v *viewer) until(op string) (subscription uint32, body []byte) {
	v.t.Helper()
	for {
		got, subscription, body := v.next()
		if got == op {
			return subscription, body
		}
	}
}

func (v *viewer) say(format string, args ...any) {
	v.t.Helper()
	if err := v.conn.Write(v.t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		v.t.Fatal(err)
	}
}

// subscribe subscribes to topics with ids from 100, and returns the topic of each id.
func (v *viewer) subscribe(topics ...string) map[uint32]string {
	v.t.Helper()
	ids := map[uint32]string{}
	for i, topic := range topics {
		c, found := v.channels[topic]
		if !found {
			v.t.Fatalf("topic %s is not advertised: %v", topic, v.channels)
		}
		ids[uint32(100+i)] = topic
		v.say(`{"op":"subscribe","subscriptions":[{"id":%d,"channelId":%d}]}`, 100+i, c.ID)
	}
	return ids
}

// A client sees a stream appear and gets all layers of the same frame, its pose first.
func TestClientSeesAFrame(t *testing.T) {
	tap := &live.Tap{}
	_, url := start(t, tap)
	v := dial(t, url)
	if op, _, text := v.next(); op != "serverInfo" || !strings.Contains(string(text), `"version":"1.2.3"`) {
		t.Fatalf("first %s", text)
	}
	v.until("advertise") // the transforms
	if len(v.channels) != 1 || v.channels["/tf"].SchemaName != messages.FrameTransformSchema {
		t.Fatalf("channels %v", v.channels)
	}
	key := &schemas.FrameKey{Topic: lidar.Topic, Sequence: lidar.Sequence}
	if tap.Wants(key) {
		t.Error("a frame is wanted, but nobody subscribes")
	}
	v.until("advertise")
	ids := v.subscribe("/tf", "/points/drive/points", "/points/drive/hull", "/points/drive/hull3d",
		"/points/drive/maxima", "/points/drive/mesh", "/points/drive/frames")
	for end := time.Now().Add(patience); !tap.Wants(key); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is wanted")
		}
	}
	scene := drive(7, 40, [3]float64{})
	scene.Pose = &codec.Pose{1, 0, 0, 4, 0, 1, 0, 5, 0, 0, 1, 6}
	tap.Offer(scene)
	got := map[string][]byte{}
	var order []string
	for len(got) < len(ids) {
		id, body := v.until("")
		got[ids[id]] = slices.Clone(body)
		order = append(order, ids[id])
	}
	if order[0] != "/tf" {
		t.Errorf("order %v, want the pose first", order)
	}
	var cloud codec.Cloud
	if err := messages.Decode(&cloud, got["/points/drive/points"], 1<<20); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cloud.Cloud32.X, scene.X) || !slices.Equal(cloud.Cloud32.Z, scene.Z) ||
		!slices.Equal(cloud.Points.Intensity, scene.Intensity) || !slices.Equal(cloud.Points.Return, scene.Return) ||
		cloud.TimeNs != scene.TimeNs || cloud.Sensor != "points/drive/lidar_top" {
		t.Errorf("cloud of %d points, frame %q", cloud.Len(), cloud.Sensor)
	}
	for _, layer := range []string{"hull", "hull3d", "maxima", "mesh"} {
		if len(got["/points/drive/"+layer]) < 200 {
			t.Errorf("%s has %d bytes", layer, len(got["/points/drive/"+layer]))
		}
	}
	v.say(`{"op":"unsubscribe","subscriptionIds":[100,101,102,103,104,105,106]}`)
	v.say(`{"op":"fly"}`) // its answer says that the first was obeyed
	v.until("status")
	tap.Offer(drive(8, 40, [3]float64{}))
	v.say(`{"op":"subscribe","subscriptions":[{"id":1,"channelId":%d}]}`, v.channels["/points/drive/frames"].ID)
	if id, row := v.until(""); id != 1 || !strings.Contains(string(row), `"offset":8`) {
		t.Errorf("subscription %d: %s", id, row)
	}
}

// Answers to what a client may not do are those of Foxglove's own server.
func TestWrongRequests(t *testing.T) {
	tap := &live.Tap{}
	tap.Offer(drive(0, 10, [3]float64{}))
	_, url := start(t, tap)
	v := dial(t, url)
	v.until("advertise")
	v.subscribe("/tf")
	for _, c := range []struct{ request, want string }{
		{`{"op":"subscribe","subscriptions":[{"id":5,"channelId":1}]}`,
			`"level":1,"message":"Client is already subscribed to channel: 1; ignoring subscription"`},
		{`{"op":"subscribe","subscriptions":[{"id":100,"channelId":2}]}`,
			`"level":2,"message":"Subscription ID was already used: 100; ignoring subscription"`},
		{`{"op":"subscribe","subscriptions":[{"id":9,"channelId":99}]}`, `"level":2,"message":"Unknown channel ID: 99"`},
		{`{"op":"subscribe","subscriptions":[{"id":9,"channelId":0}]}`, `"level":2,"message":"Unknown channel ID: 0"`},
		{`{"op":"subscribe","subscriptions":[{"id":9,"channelId":4294967295}]}`, `"Unknown channel ID: 4294967295"`},
		{`{"op":"fly"}`, `"level":1`},
		{`hello`, `"level":2`},
	} {
		v.say("%s", c.request)
		if _, text := v.until("status"); !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %s", c.request, text)
		}
	}
	v.conn.Write(t.Context(), websocket.MessageBinary, []byte{1, 2, 3})
	if _, text := v.until("status"); !strings.Contains(string(text), "opcode was 1") {
		t.Errorf("binary: %s", text)
	}
	v.conn.Write(t.Context(), websocket.MessageText, make([]byte, maxRequest+1))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, _, err := v.conn.Read(ctx); err != nil {
			if code := websocket.CloseStatus(err); code != websocket.StatusMessageTooBig {
				t.Errorf("a message that is too large: %v", err)
			}
			break
		}
	}
}

// A client that does not read keeps nobody waiting.
func TestStalledClientHoldsNothingBack(t *testing.T) {
	tap := &live.Tap{}
	tap.Offer(drive(0, 100_000, [3]float64{}))
	s, url := start(t, tap)
	s.patience = time.Hour // it is not dropped
	var reading *viewer
	for range 2 { // the first one stalls
		reading = dial(t, url)
		reading.until("advertise")
		reading.subscribe("/points/drive/points", "/points/drive/mesh")
	}
	for offset := int64(1); offset < 8; offset++ { // more than sockets hold
		tap.Offer(drive(offset, 100_000, [3]float64{}))
		reading.until("")
	}
	tap.Offer(drive(1_000_000, 10, [3]float64{}))
	for {
		if _, body := reading.until(""); len(body) < 10_000 {
			break
		}
	}
}

// A client that does not read is dropped after the patience of the server.
func TestStalledClientIsDropped(t *testing.T) {
	tap := &live.Tap{}
	tap.Offer(drive(0, 100_000, [3]float64{}))
	s, url := start(t, tap)
	s.patience = 3 * time.Second
	v := dial(t, url)
	v.until("advertise")
	v.subscribe("/points/drive/points", "/points/drive/mesh")
	scene := drive(1, 100_000, [3]float64{})
	for end := time.Now().Add(patience); s.Clients() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the client is not dropped")
		}
		next := *scene
		next.Offset++
		scene = &next
		tap.Offer(scene)
	}
}

// Clients that come and go leave nothing behind.
func TestReconnects(t *testing.T) {
	tap := &live.Tap{}
	tap.Offer(drive(0, 1000, [3]float64{}))
	s, url := start(t, tap)
	for i := range 20 {
		v := dial(t, url)
		v.until("advertise")
		v.subscribe("/tf", "/points/drive/points", "/points/drive/hull")
		v.until("")
		if i%2 == 0 {
			v.conn.Close(websocket.StatusNormalClosure, "")
		} else {
			v.conn.CloseNow()
		}
	}
	for end := time.Now().Add(patience); s.Clients() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d clients are left", s.Clients())
		}
	}
	s.payloads.mu.Lock()
	defer s.payloads.mu.Unlock()
	if n := len(s.payloads.byChannel); n > 0 {
		t.Errorf("%d messages are kept for nobody", n)
	}
}

// There is a bound on clients, and a server that ends says so.
func TestBoundAndEnd(t *testing.T) {
	tap := &live.Tap{}
	s, url := start(t, tap)
	s.grace = patience // for goodbyes of a slow machine
	var all []*viewer
	for range maxClients {
		all = append(all, dial(t, url))
	}
	_, answer, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: protocols})
	if err == nil || answer == nil || answer.StatusCode != 503 {
		t.Errorf("one client too many: %v", err)
	}
	codes := make(chan websocket.StatusCode, len(all))
	for _, v := range all {
		go func() {
			for {
				if _, _, err := v.conn.Read(context.Background()); err != nil {
					codes <- websocket.CloseStatus(err)
					return
				}
			}
		}()
	}
	s.Close()
	s.Close()
	for range all {
		if code := <-codes; code != websocket.StatusGoingAway {
			t.Errorf("close status %d", code)
		}
	}
	if s.Clients() != 0 {
		t.Errorf("%d clients are left", s.Clients())
	}
}

// The channels of a stream of token sequences are withdrawn when it is known as one.
func TestTokensAreWithdrawn(t *testing.T) {
	tap := &live.Tap{}
	tap.Wants(&schemas.FrameKey{Topic: "words"})
	w := tap.Watch()
	defer w.Close()
	tap.Wants(&schemas.FrameKey{Topic: "words"})
	_, url := start(t, tap)
	v := dial(t, url)
	v.until("advertise")
	v.subscribe("/words/points")
	tap.Offer(&live.Scene{FrameKey: schemas.FrameKey{Topic: "words"}, Text: &live.Text{}})
	if _, text := v.until("unadvertise"); !strings.Contains(string(text), "[2,3,4,5,6,7]") {
		t.Errorf("%s", text)
	}
	v.say(`{"op":"subscribe","subscriptions":[{"id":9,"channelId":2}]}`)
	if _, text := v.until("status"); !strings.Contains(string(text), "Unknown channel ID: 2") {
		t.Errorf("%s", text)
	}
	late := dial(t, url)
	late.until("advertise")
	if len(late.channels) != 1 {
		t.Errorf("channels %v", late.channels)
	}
}

// A server ends although a client does not read, and although one does not say goodbye.
func TestEndWithStalledClients(t *testing.T) {
	tap := &live.Tap{}
	tap.Offer(drive(0, 100_000, [3]float64{}))
	s, url := start(t, tap)
	stalled, silent := dial(t, url), dial(t, url)
	for _, v := range []*viewer{stalled, silent} {
		v.until("advertise")
	}
	stalled.subscribe("/points/drive/points", "/points/drive/mesh", "/points/drive/frames")
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for offset := int64(1); ; offset++ {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				tap.Offer(drive(offset, 100_000, [3]float64{}))
			}
		}
	}()
	time.Sleep(200 * time.Millisecond)
	done := make(chan struct{})
	go func() { s.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
	if s.Clients() != 0 {
		t.Errorf("%d clients are left", s.Clients())
	}
}
