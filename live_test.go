package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/read"
)

// sceneHeader is what this test reads of a scene's header.
type sceneHeader struct {
	Type      string
	Kind      string
	Stream    struct{ Topic string }
	Partition int32
	Offset    int64 `json:",string"`
	Origin    [3]float64
	Words     []string
	Next      []any
	Streams   []map[string]string
	Ends      []struct {
		Topic     string
		Partition int32
		End       int64
	}
	Sections map[string]struct{ At, N int }
}

// A page sees the frames of a demo: the hulls that it draws are those of the tables, and
// frames are said to be durable. Tokens come with their words.
func TestPageSeesWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := launch(t, dir, "demo", "--frames", "0", "--points", "2000", "--rate", "5hz", "--listen", "127.0.0.1:0",
		"--out", "out")
	address := strings.TrimPrefix(d.until(`^(http://127\.0\.0\.1:\d+)/$`)[1], "http://")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws://"+address+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	c.SetReadLimit(16 << 20)
	hulls, words, durable := map[place][][2]float64{}, false, false
	for len(hulls) < 3 || !words || !durable {
		kind, data, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("after %d hulls, words %v, durable %v: %v", len(hulls), words, durable, err)
		}
		text := data
		if kind == websocket.MessageBinary {
			text = data[8 : 8+binary.LittleEndian.Uint32(data[4:])]
		}
		var h sceneHeader
		if err := json.Unmarshal(text, &h); err != nil {
			t.Fatalf("%v: %.300s", err, text)
		}
		switch {
		case h.Type == "streams":
			view, err := json.Marshal(map[string]any{"op": "view", "streams": h.Streams})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Write(ctx, websocket.MessageText, view); err != nil {
				t.Fatal(err)
			}
		case h.Type == "durable":
			durable = durable || len(h.Ends) > 0
		case h.Kind == "tokens":
			words = words || len(h.Words) > 0 && len(h.Next) > 0
		case h.Kind == "frame" && h.Stream.Topic == "points":
			s, at := h.Sections["hull"], place{h.Partition, h.Offset}
			for i := 0; i < s.N; i += 3 {
				xy := [2]float64{}
				for axis := range 2 {
					bits := binary.LittleEndian.Uint32(data[s.At+4*(i+axis):])
					xy[axis] = h.Origin[axis] + float64(math.Float32frombits(bits))
				}
				if hulls[at] = append(hulls[at], xy); i == 0 {
					hulls[at] = hulls[at][len(hulls[at])-1:] // the same frame again
				}
			}
		}
	}
	c.CloseNow()
	d.signal(syscall.SIGTERM) // it commits what it has read
	d.exits(0, patience)
	equalTheTable(t, filepath.Join(dir, "out"), "the page", hulls)
}

// place is where a frame of topic points lies.
type place struct {
	partition int32
	offset    int64
}

// equalTheTable compares the hulls that a viewer saw with those of table hulls.
func equalTheTable(t *testing.T, out, viewer string, hulls map[place][][2]float64) {
	t.Helper()
	store, err := sinks.OpenExisting(out)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for at, seen := range hulls {
		r, _, err := read.ReadFrame(t.Context(), store, read.FrameQuery{Topic: "points", Partition: &at.partition,
			Offset: &at.offset}, "hulls")
		if err != nil {
			t.Fatal(err)
		}
		if !sameHull(r, seen) {
			t.Errorf("%v: %s has %d vertices %v, the table %d", at, viewer, len(seen), seen[:min(len(seen), 3)],
				len(r.Hull.X))
		}
	}
}

func sameHull(r *schemas.Result, seen [][2]float64) bool {
	if r.Hull == nil || len(r.Hull.X) != len(seen) {
		return false
	}
	for i, xy := range seen {
		if xy[0] != r.Hull.X[i] || xy[1] != r.Hull.Y[i] {
			return false
		}
	}
	return true
}
