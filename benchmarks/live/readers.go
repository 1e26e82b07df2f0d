package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// readers are clients of the live page.
type readers struct {
	stop          context.CancelFunc
	wait          sync.WaitGroup
	scenes, bytes atomic.Int64
}

// watch starts n readers, which connect as soon as the page is served. Those that stall ask
// for scenes and read none.
func watch(ctx context.Context, address string, n int, stall bool) *readers {
	r := &readers{}
	ctx, r.stop = context.WithCancel(ctx)
	for range n {
		r.wait.Go(func() {
			for ctx.Err() == nil { // until the process listens, and again if it drops the client
				if r.read(ctx, address, stall) != nil {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	return r
}

// end disconnects the readers.
func (r *readers) end() {
	r.stop()
	r.wait.Wait()
}

// counts returns what the readers have read so far; no readers have read nothing.
func (r *readers) counts() (scenes, bytes int64) {
	if r == nil {
		return 0, 0
	}
	return r.scenes.Load(), r.bytes.Load()
}

func (r *readers) read(ctx context.Context, address string, stall bool) error {
	conn, _, err := websocket.Dial(ctx, "ws://"+address+"/live", nil)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(64 << 20)
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		if kind == websocket.MessageBinary {
			r.bytes.Add(int64(len(data)))
			if decoded(data) {
				r.scenes.Add(1)
			}
			continue
		}
		var message struct {
			Type    string            `json:"type"`
			Streams []json.RawMessage `json:"streams"`
		}
		if err := json.Unmarshal(data, &message); err != nil || message.Type != "streams" || len(message.Streams) == 0 {
			continue
		}
		view, _ := json.Marshal(map[string]any{"op": "view", "streams": message.Streams[:1], "hz": 10})
		if err := conn.Write(ctx, websocket.MessageText, view); err != nil {
			return err
		}
		if stall {
			<-ctx.Done()
			return nil
		}
	}
}

// decoded reads a scene as a page does: its header, and every coordinate.
func decoded(data []byte) bool {
	if len(data) < 8 {
		return false
	}
	length := int(binary.LittleEndian.Uint32(data[4:]))
	var header struct {
		Sections map[string]struct {
			Type  string
			At, N int
		} `json:"sections"`
	}
	if 8+length > len(data) || json.Unmarshal(data[8:8+length], &header) != nil {
		return false
	}
	xyz, sum := header.Sections["xyz"], int64(0)
	for i := 0; xyz.Type == "i16" && i < xyz.N; i++ {
		sum += int64(int16(binary.LittleEndian.Uint16(data[xyz.At+2*i:])))
	}
	return xyz.N > 0 && sum != 0
}
