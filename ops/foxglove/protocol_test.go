package foxglove

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"entropipe/ops/live"
	"entropipe/schemas"
)

// The bytes are those that Foxglove's own server (its SDK, version 0.30) sends for the same
// content, and of the examples of the specification.
func TestBytesOfTheSpecification(t *testing.T) {
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{"message", "010700000015cd853dfe9c9717", appendHeader(nil, 7, 1700000000123456789)},
		{"message 2", "01080000000200000000000000" + hex.EncodeToString([]byte(`{"n": 1.5}`)),
			append(appendHeader(nil, 8, 2), `{"n": 1.5}`...)},
		{"message of the SDK's tests", "011e000000d2040000000000007b226b6579223a202276616c7565227d",
			append(appendHeader(nil, 30, 1234), `{"key": "value"}`...)},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: %s instead of %s", c.name, got, c.want)
		}
	}
	for _, c := range []struct{ name, want, got string }{
		{"status", `{"op":"status","level":2,"message":"Unknown channel ID: 99"}`,
			string(status(failure, "Unknown channel ID: %d", 99))},
		{"info", `{"op":"status","level":0,"message":"a < b & c"}`, string(status(info, "a < b & c"))},
		{"unadvertise", `{"op":"unadvertise","channelIds":[1,2]}`, string(unadvertise([]uint32{1, 2}))},
		{"serverInfo", `{"op":"serverInfo","name":"entropipe","capabilities":[],"metadata":{"version":"1.2"},` +
			`"sessionId":"1675789422160"}`, string(serverInfo("1.2", "1675789422160"))},
		{"advertise", `{"op":"advertise","channels":[{"id":10,"topic":"/t2","encoding":"json",` +
			`"schemaName":"t2-schema","schemaEncoding":"jsonschema","schema":"{\"type\": \"object\"}"}]}`,
			string(advertise([]channel{{10, "/t2", "json", "t2-schema", "jsonschema", `{"type": "object"}`}}))},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n%s instead of\n%s", c.name, c.got, c.want)
		}
	}
}

func TestRequests(t *testing.T) {
	for text, want := range map[string]string{
		`{"op":"subscribe","subscriptions":[{"id":0,"channelId":3},{"id":1,"channelId":5}]}`: "",
		`{"op":"unsubscribe","subscriptionIds":[0,1]}`:                                       "",
		`{"op":"subscribe"}`: "",
		`hello`:              "Invalid message",
		``:                   "Invalid message",
		`{}`:                 "Invalid message",
		`[]`:                 "Invalid message",
		`{"op":7}`:           "Invalid message",
		`{"op":"subscribe","subscriptions":[{"id":0}]}`:                        "channelId",
		`{"op":"subscribe","subscriptions":[{"id":-1,"channelId":2}]}`:         "ids are numbers",
		`{"op":"subscribe","subscriptions":[{"id":4294967296,"channelId":2}]}`: "ids are numbers",
		`{"op":"subscribe","subscriptions":[{"id":1.5,"channelId":2}]}`:        "ids are numbers",
		`{"op":"unsubscribe","subscriptionIds":["a"]}`:                         "ids are numbers",
		`{"op":"advertise","channels":[]}`:                                     `not \"advertise\"`,
		`{"op":"getParameters"}`:                                               `not \"getParameters\"`,
		`{"op":"` + strings.Repeat("x", 1000) + `"}`:                           "This server knows",
	} {
		_, problem := parse([]byte(text))
		if (problem == nil) != (want == "") || !strings.Contains(string(problem), want) || len(problem) > 200 {
			t.Errorf("%.80s: %s", text, problem)
		}
	}
}

// A client that offers neither subprotocol gets the status of Foxglove's own server.
func TestHandshakes(t *testing.T) {
	s := New(Config{Tap: &live.Tap{}})
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()
	for _, c := range []struct {
		offer, chosen string
		status        int
	}{
		{"foxglove.sdk.v1", "foxglove.sdk.v1", 101},
		{"foxglove.websocket.v1", "foxglove.websocket.v1", 101},
		{"foxglove.websocket.v1, foxglove.sdk.v1", "foxglove.sdk.v1", 101},
		{"chat,foxglove.websocket.v1", "foxglove.websocket.v1", 101},
		{"foxglove.websocket.v2", "", 400},
		{"", "", 400},
		{"no upgrade", "", 426},
	} {
		r, err := http.NewRequest("GET", server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.offer != "no upgrade" {
			r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
				"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
		}
		if c.offer != "" {
			r.Header.Set("Sec-WebSocket-Protocol", c.offer)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.status || answer.Header.Get("Sec-WebSocket-Protocol") != c.chosen {
			t.Errorf("%q: %d %q, want %d %q", c.offer, answer.StatusCode, answer.Header.Get("Sec-WebSocket-Protocol"),
				c.status, c.chosen)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// Topics have no character that a viewer could take for something else, and no two streams
// have the same.
func TestNamesAreSafeAndUnique(t *testing.T) {
	var r registry
	var known []live.Stream
	for _, c := range []struct{ topic, sequence, want string }{
		{"points", "drive", "points/drive"},
		{"points", "", "points"},
		{"points", "/2011_09_26//drive 0001/", "points/2011_09_26/drive_0001"},
		{"points", "drive\x00", "points/drive_"},
		{"points", "drive\n", "points/drive__2"},
		{"points", "drive ", "points/drive__3"},
		{"points/drive", "", "points/drive_2"},
		{"points", "ä<script>", "points/__script_"},
		{"", "", "stream"},
		{"", "/", "stream_2"},
		{"", "a", "a"},
		{"p", strings.Repeat("x", 1000), "p/" + strings.Repeat("x", maxName)},
		{"p", strings.Repeat("x", 1001), "p/" + strings.Repeat("x", maxName) + "_2"},
	} {
		known = append(known, live.Stream{Topic: c.topic, Sequence: c.sequence})
		all := r.sync(known)
		if got := all[len(all)-1].name; got != c.want {
			t.Errorf("%q %q: %q instead of %q", c.topic, c.sequence, got, c.want)
		}
	}
	for i := range maxStreams {
		known = append(known, live.Stream{Topic: "more", Sequence: fmt.Sprint(i)})
	}
	seen, topics := map[uint32]bool{tfChannel: true}, map[string]bool{"/tf": true}
	for _, of := range r.sync(known) {
		for _, c := range of.channels() {
			if seen[c.ID] || topics[c.Topic] {
				t.Errorf("channel %d %s is there twice", c.ID, c.Topic)
			}
			seen[c.ID], topics[c.Topic] = true, true
		}
	}
	if len(seen) != 1+maxStreams*int(kinds) {
		t.Errorf("%d channels, want %d", len(seen), 1+maxStreams*int(kinds))
	}
}

// A row has the columns of its schema, in their types, and JSON that any reader takes.
func TestRowsFitTheirSchema(t *testing.T) {
	var schema struct {
		Properties map[string]struct{ Type, Title string }
	}
	if err := json.Unmarshal([]byte(rowSchema()), &schema); err != nil {
		t.Fatal(err)
	}
	full := drive(3, 40, [3]float64{})
	full.Drawing = &schemas.Drawing{ID: 5, Label: "\"cat\" <&>\x00"}
	infinite := drive(4, 40, [3]float64{})
	infinite.Hull.Area = infinite.Hull.Area / 0.0
	for name, c := range map[string]struct {
		scene *live.Scene
		most  int // columns that may be missing
	}{"empty": {&live.Scene{}, len(schema.Properties)}, "full": {full, 0}, "infinite": {infinite, 3}} {
		var row map[string]any
		if err := json.Unmarshal(appendRow(nil, c.scene), &row); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for key, value := range row {
			kind := schema.Properties[key].Type
			ok := false
			switch v := value.(type) {
			case string:
				ok = kind == "string"
			case bool:
				ok = kind == "boolean"
			case float64:
				ok = kind == "number" || kind == "integer" && v == float64(int64(v))
			case map[string]any:
				ok = kind == "object" && v["sec"] != nil && v["nsec"] != nil
			}
			if !ok {
				t.Errorf("%s: %s is %v, the schema says %q", name, key, value, kind)
			}
		}
		if missing := len(schema.Properties) - len(row); missing > c.most {
			t.Errorf("%s: %d columns of %d are missing: %v", name, missing, len(schema.Properties), row)
		}
	}
}

// FuzzClient gives a client's messages to a client that nobody reads.
func FuzzClient(f *testing.F) {
	for _, text := range []string{`{"op":"subscribe","subscriptions":[{"id":0,"channelId":1},{"id":1,"channelId":5}]}`,
		`{"op":"unsubscribe","subscriptionIds":[0,1]}`, `{"op":"fly"}`, `{"op":"advertise","channels":[{"id":1}]}`,
		"\x01\x02",
		`{"op":"subscribe","subscriptions":[{"id":4294967295,"channelId":4294967295},{"id":1,"channelId":0}]}`} {
		f.Add(true, []byte(text))
		f.Add(false, []byte(text))
	}
	tap := &live.Tap{}
	tap.Offer(drive(0, 10, [3]float64{}))
	s := New(Config{Tap: tap})
	f.Fuzz(func(t *testing.T, text bool, data []byte) {
		c := newClient(s, nil)
		c.told = []bool{true}
		s.channels.sync(tap.Streams())
		for range 3 {
			c.obey(text, data)
		}
		if len(c.byID) != len(c.byChannel) || len(c.byID) > 1+int(kinds) || len(c.statuses) > maxStatuses {
			t.Errorf("%d ids, %d channels, %d statuses", len(c.byID), len(c.byChannel), len(c.statuses))
		}
		for _, answer := range c.statuses {
			if !json.Valid(answer) || len(answer) > 400 {
				t.Errorf("status %s", answer)
			}
		}
		for _, sub := range c.byID {
			c.remove(sub)
		}
		if len(c.views) != 0 || len(s.payloads.byChannel) != 0 {
			t.Errorf("%d views and %d messages are left", len(c.views), len(s.payloads.byChannel))
		}
		c.watcher.Close()
	})
}
