package ingest

import (
	"context"
	"sync"
	"time"

	"entropipe/schemas"
)

// frame is a record that is sent in chunks. Its fields belong to the frames' mutex.
type frame struct {
	acked   func()
	left    int  // chunks that are not acknowledged
	begun   bool // a request with a chunk was made: readers may have it
	dropped bool // no chunk was sent, and none will be
	cut     bool // Send has given it up
}

// frames ends an outbox between its frames: those that have begun are sent whole, unless the
// time for that ends before. Any goroutine may call the methods.
type frames struct {
	mu       sync.Mutex
	open     int  // frames that have begun, and are neither acknowledged nor cut
	cut      int  // frames that were given up after they had begun
	stopping bool // no further frame begins
	finished context.CancelFunc
}

// stop lets no further frame begin. It calls finished once those that have begun are
// acknowledged or cut, at the latest after wait.
func (s *frames) stop(wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	if s.open == 0 {
		s.finished()
		return
	}
	time.AfterFunc(wait, s.finished)
}

// begin tells whether a chunk of f is to be sent, and takes a note that f has begun.
func (s *frames) begin(f *frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.dropped || s.stopping && !f.begun {
		f.dropped = true
		return false
	}
	if !f.begun {
		f.begun = true
		s.open++
	}
	return true
}

// drop drops a frame that has not begun. It tells whether the frame is dropped.
func (s *frames) drop(f *frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.dropped = f.dropped || !f.begun
	return f.dropped
}

// acknowledged counts a chunk, and calls acked after the last one.
func (s *frames) acknowledged(f *frame) {
	s.mu.Lock()
	f.left--
	whole := f.left == 0 && !f.cut
	if whole && f.begun {
		s.over()
	}
	s.mu.Unlock()
	if whole {
		f.acked()
	}
}

// giveUp ends a frame whose other chunks are not sent.
func (s *frames) giveUp(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.dropped = f.dropped || !f.begun
	if f.begun && !f.cut && f.left > 0 {
		f.cut = true
		s.cut++
		s.over()
	}
}

// over counts the end of a frame that has begun.
func (s *frames) over() {
	s.open--
	if s.open == 0 && s.stopping {
		s.finished()
	}
}

// unfinished returns how many frames have begun, and are not known to be whole in the topic.
func (s *frames) unfinished() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open + s.cut
}

// sendChunks sends the chunks of one record. Once the first is on its way, the others follow
// although ctx or the outbox ends, as long as cfg.ending allows.
func (o *Outbox) sendChunks(ctx context.Context, chunks []*schemas.Record, acked func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := &frame{acked: acked, left: len(chunks)}
	within, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	end := func(by context.Context) {
		if o.transactions != nil || o.frames.drop(f) { // nobody reads a transaction that is aborted
			cancel(context.Cause(by))
			return
		}
		timer := time.AfterFunc(o.cfg.ending, func() { cancel(context.Cause(by)) })
		context.AfterFunc(within, func() { timer.Stop() })
	}
	defer context.AfterFunc(ctx, func() { end(ctx) })()
	defer context.AfterFunc(o.ctx, func() { end(o.ctx) })()
	for _, c := range chunks {
		m := message{Record: c, acked: func() { o.frames.acknowledged(f) }, frame: f}
		if err := o.send(within, o.finish, m); err != nil {
			o.frames.giveUp(f)
			return err
		}
	}
	return nil
}

// wanted tells whether a message that came from its queue is to be sent: no frame begins after
// the end of the outbox.
func (o *Outbox) wanted(m *message) bool {
	if m.frame == nil || o.transactions != nil {
		return o.ctx.Err() == nil
	}
	return o.frames.begin(m.frame)
}

// warnOfCuts logs frames of which only some chunks are in the topic.
func (o *Outbox) warnOfCuts() {
	if n := o.frames.unfinished(); n > 0 {
		o.cfg.Log.Warn("ended inside frames that are sent in chunks; readers refuse what is there as incomplete. "+
			"produce --resume sends these frames again as a whole, and so does the next run for what it publishes",
			"topic", o.cfg.Topic, "frames", n)
	}
}
