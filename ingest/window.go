package ingest

import (
	"context"
	"sync"
)

// window bounds the bytes that are on their way, and keeps the memory of those
// that arrived. One goroutine acquires, any number releases.
type window struct {
	size  int64
	freed chan struct{} // holds a token after a release

	mu    sync.Mutex
	used  int64
	lends bool  // buffer is called: what arrived is kept for it
	kept  int64 // bytes in spare
	spare [][]byte
}

func newWindow(size int64) *window {
	return &window{size: size, freed: make(chan struct{}, 1)}
}

// acquire waits until n bytes may be on their way. More than the whole window
// may when nothing else is. The error is that of the context which ends first.
func (w *window) acquire(ctx, other context.Context, n int64) error {
	for {
		w.mu.Lock()
		ok := w.used == 0 || w.used+n <= w.size
		if ok {
			w.used += n
		}
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-w.freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-other.Done():
			return context.Cause(other)
		}
	}
}

// release gives n bytes back.
func (w *window) release(n int64) {
	w.mu.Lock()
	w.used -= n
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// buffer returns an empty slice, with memory if some is left over.
func (w *window) buffer() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lends = true
	n := len(w.spare)
	if n == 0 {
		return nil
	}
	b := w.spare[n-1]
	w.spare = w.spare[:n-1]
	w.kept -= int64(cap(b))
	return b[:0]
}

// recycle keeps b's memory for buffer, if that is asked and not enough is kept.
func (w *window) recycle(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lends && w.kept+int64(cap(b)) <= w.size {
		w.kept += int64(cap(b))
		w.spare = append(w.spare, b)
	}
}
