package ingest

import (
	"context"
	"testing"
	"time"
)

func TestWindowBoundsWhatIsOnItsWay(t *testing.T) {
	w := newWindow(100)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := w.acquire(ctx, t.Context(), 1000); err != nil { // alone, anything may pass
		t.Error(err)
	}
	if err := w.acquire(ctx, t.Context(), 1); err != context.DeadlineExceeded {
		t.Errorf("beside it: %v", err)
	}
	w.release(1000)
	for range 4 {
		if err := w.acquire(t.Context(), t.Context(), 25); err != nil {
			t.Error(err)
		}
	}
	go w.release(25)
	if err := w.acquire(deadline(t), t.Context(), 25); err != nil {
		t.Errorf("after a release: %v", err)
	}
	w.recycle(make([]byte, 40))
	if w.kept > 0 || w.buffer() != nil {
		t.Errorf("%d bytes are kept, and nobody has asked for memory", w.kept)
	}
	for range 10 {
		w.recycle(make([]byte, 40))
	}
	if w.kept > w.size || len(w.buffer()) != 0 || cap(w.buffer()) != 40 || w.buffer() != nil {
		t.Errorf("%d bytes are kept", w.kept)
	}
}
