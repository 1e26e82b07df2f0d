package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"entropipe/schemas/codec/foxglove"
)

// sceneUpdates returns what decodes messages of channel hull.
func sceneUpdates(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(foxglove.Schema(foxglove.SceneUpdateSchema), &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.FindDescriptorByName(foxglove.SceneUpdateSchema)
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.MessageDescriptor)
}

// figures is what this test reads of a SceneUpdate, in Protobuf's JSON.
type figures struct {
	Entities []struct {
		Metadata []struct{ Key, Value string }
		Lines    []struct {
			Pose   struct{ Position struct{ X, Y float64 } }
			Points []struct{ X, Y float64 }
		}
	}
}

// figuresOf decodes a SceneUpdate.
func figuresOf(t *testing.T, d protoreflect.MessageDescriptor, data []byte) (f figures) {
	t.Helper()
	m := dynamicpb.NewMessage(d)
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	var plain func(protoreflect.Message) map[string]any
	plain = func(m protoreflect.Message) map[string]any {
		fields := map[string]any{}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.IsList() && f.Message() != nil:
				var all []any
				for i := range v.List().Len() {
					all = append(all, plain(v.List().Get(i).Message()))
				}
				fields[string(f.Name())] = all
			case f.Message() != nil:
				fields[string(f.Name())] = plain(v.Message())
			case !f.IsList():
				fields[string(f.Name())] = v.Interface()
			}
			return true
		})
		return fields
	}
	text, err := json.Marshal(plain(m))
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Foxglove sees the frames of a demo: the hulls that it draws are those of the tables, bit for
// bit. The address has the guard of the page.
func TestFoxgloveSeesWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := launch(t, dir, "demo", "--frames", "0", "--points", "2000", "--rate", "5hz", "--listen", "127.0.0.1:0",
		"--out", "out")
	address := strings.TrimPrefix(d.until(`^(http://127\.0\.0\.1:\d+)/$`)[1], "http://")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dial := func(host, origin string) (*websocket.Conn, *http.Response, error) {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		return websocket.Dial(ctx, "ws://"+address+"/foxglove", &websocket.DialOptions{Host: host, HTTPHeader: header,
			Subprotocols: []string{"foxglove.sdk.v1", "foxglove.websocket.v1"}})
	}
	for _, c := range []struct {
		host, origin string
		status       int
	}{{"elsewhere.example", "", 421}, {"", "https://elsewhere.example", 403}} {
		if _, answer, err := dial(c.host, c.origin); err == nil || answer == nil || answer.StatusCode != c.status {
			t.Errorf("host %q, origin %q: %v, want status %d", c.host, c.origin, err, c.status)
		}
	}
	c, _, err := dial("", "http://"+address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(16 << 20)
	hulls, updates := map[place][][2]float64{}, sceneUpdates(t)
	for len(hulls) < 3 {
		kind, data, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("after %d hulls: %v", len(hulls), err)
		}
		if kind == websocket.MessageText {
			var m struct {
				Channels []struct {
					ID    int
					Topic string
				}
			}
			if err := json.Unmarshal(data, &m); err != nil {
				t.Fatalf("%v: %.300s", err, data)
			}
			for _, channel := range m.Channels {
				if strings.HasPrefix(channel.Topic, "/points/") && strings.HasSuffix(channel.Topic, "/hull") {
					request := fmt.Sprintf(`{"op":"subscribe","subscriptions":[{"id":5,"channelId":%d}]}`, channel.ID)
					if err := c.Write(ctx, websocket.MessageText, []byte(request)); err != nil {
						t.Fatal(err)
					}
				}
			}
			continue
		}
		var at place
		var corners [][2]float64
		entity := figuresOf(t, updates, data[13:]).Entities[0]
		for _, pair := range entity.Metadata {
			if pair.Key == "source" {
				if _, err := fmt.Sscanf(pair.Value, "points/%d/%d/0", &at.partition, &at.offset); err != nil {
					t.Fatalf("%s: %v", pair.Value, err)
				}
			}
		}
		for _, p := range entity.Lines[0].Points {
			position := entity.Lines[0].Pose.Position
			corners = append(corners, [2]float64{position.X + p.X, position.Y + p.Y})
		}
		hulls[at] = corners
	}
	c.CloseNow()
	d.signal(syscall.SIGTERM) // it commits what it has read
	d.exits(0, patience)
	equalTheTable(t, filepath.Join(dir, "out"), "Foxglove", hulls)
}
