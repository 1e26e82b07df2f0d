package web

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/ops/live"
	"entropipe/schemas"
)

// Law: a rate that a client asks for is kept, and without one no scene waits.
func TestClientBoundsItsRate(t *testing.T) {
	for _, c := range []struct {
		hz          string
		least, most int // of a hundred scenes a second, in ten seconds
	}{{`"hz":2`, 20, 21}, {`"hz":10`, 99, 101}, {`"hz":0.5`, 5, 6}, {`"hz":0`, 1000, 1000},
		{`"hz":1e308`, 990, 1000}, {`"hz":-1`, 1000, 1000}} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(&Config{Tap: &live.Tap{}, Log: slog.New(slog.DiscardHandler)})
			client := &client{h: h, wake: make(chan struct{}, 1), views: map[live.Stream]*place{}}
			client.obey([]byte(`{"op":"view","streams":[{"topic":"points","sequence":"drive"}],` + c.hz + `}`))
			n := 0
			for range 1000 {
				client.offer(live.Stream{Topic: "points", Sequence: "drive"}, []byte{1})
				if _, ok := client.scene(); ok {
					n++
				}
				time.Sleep(10 * time.Millisecond)
			}
			if n < c.least || n > c.most {
				t.Errorf("%s: %d scenes in ten seconds, want %d to %d", c.hz, n, c.least, c.most)
			}
		})
	}
}

// Law: twenty pages of a stream get half as many scenes as one or ten, and one of them that is
// left gets as many as one.
func TestManyPagesGetFewerScenes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := live.Stream{Topic: "points", Sequence: "drive"}
		h := newHub(&Config{Tap: &live.Tap{}, Log: slog.New(slog.DiscardHandler)})
		defer h.close()
		var clients []*client
		scenes := func(pages int) (n int) {
			for len(clients) < pages {
				c := &client{h: h, wake: make(chan struct{}, 1), views: map[live.Stream]*place{}}
				if !h.add(c) {
					t.Fatal("a client is refused")
				}
				c.setViews([]live.Stream{of}, 0)
				clients = append(clients, c)
			}
			for len(clients) > pages {
				h.remove(clients[0])
				clients = clients[1:]
			}
			synctest.Wait()
			for range 10_000 {
				if h.cfg.Tap.Wants(&schemas.FrameKey{Topic: of.Topic, Sequence: of.Sequence}) {
					n++
				}
				time.Sleep(time.Millisecond)
			}
			return n
		}
		for _, c := range []struct{ pages, least, most int }{{1, 99, 101}, {10, 99, 101}, {20, 49, 51}, {40, 24, 26},
			{1, 90, 101}} {
			if n := scenes(c.pages); n < c.least || n > c.most {
				t.Errorf("%d pages: %d scenes in ten seconds, want %d to %d", c.pages, n, c.least, c.most)
			}
		}
		scenes(0)
	})
}
