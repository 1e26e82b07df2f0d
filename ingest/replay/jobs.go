package replay

import (
	"context"
	"fmt"
	"sync"

	"entropipe/ingest"
)

// sendInputs sends the inputs of in with p.Jobs jobs. Each input is numbered, dated and paced
// by itself, so that its messages do not depend on the others.
func (p *Producer) sendInputs(in *Inputs, out *ingest.Outbox, there *resumer) error {
	if n := len(in.inputs); p.Names.Sequence != "" && n > 1 {
		return fmt.Errorf("produce: --sequence %s would give one name to %d inputs, whose frames have the same "+
			"numbers; name one input", p.Names.Sequence, n)
	}
	jobs := max(1, min(p.Jobs, len(in.inputs)))
	if p.Play.Limit > 0 {
		jobs = 1
	}
	ctx, stop := context.WithCancelCause(out.Context())
	defer stop(nil)
	w := &inputWork{Producer: p, in: in, out: out, there: there, left: p.Play.Limit, lanes: p.Jobs / jobs}
	var wg sync.WaitGroup
	for range jobs {
		wg.Go(func() {
			if err := w.run(ctx); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return nil
}

// inputWork hands inputs to goroutines, in their order.
type inputWork struct {
	*Producer
	in    *Inputs
	out   *ingest.Outbox
	there *resumer
	lanes int // frames of an input that are decoded at a time

	mu   sync.Mutex
	next int   // index of the next input
	left int64 // frames to send, if there is a limit
}

// run sends one input after the other until there is none.
func (w *inputWork) run(ctx context.Context) error {
	for ctx.Err() == nil {
		i, src, left, err := w.take()
		if err != nil || src == nil {
			return err
		}
		frames, err := w.pump(ctx, src, left, i, w.out, w.there)
		if closed := w.finish(src, frames); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take opens the next input; a nil Source: there is none. left is the number of frames that
// may still be sent; 0 without a limit.
func (w *inputWork) take() (index int, _ Source, left int64, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.next == len(w.in.inputs) || w.Play.Limit > 0 && w.left <= 0 {
			return 0, nil, 0, nil
		}
		i := w.next
		w.next++
		src, err := w.in.source, error(nil)
		if w.in.source = nil; src == nil || i > 0 { // Len has opened the first input
			src, err = w.in.OpenInput(w.in.inputs[i])
		}
		if err == nil {
			return i, inLanes(src, w.lanes, w.encodeCloud), w.left, nil
		}
		if err := w.in.unopened(w.in.inputs[i], err); err != nil {
			return 0, nil, 0, err
		}
	}
}

// encodeCloud returns a function that encodes clouds, for one goroutine.
func (w *inputWork) encodeCloud() func(*Item) {
	e := w.encoder()
	return func(it *Item) {
		s := e.cloud(w.out.Buffer(), &it.Cloud)
		it.encoded = &s
	}
}

// finish closes an input.
func (w *inputWork) finish(src Source, frames int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in.past += skippedBy(src)
	if w.Play.Limit > 0 {
		w.left -= frames
	}
	return src.Close()
}
