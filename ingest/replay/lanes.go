package replay

import (
	"errors"
	"io"
	"sync"
)

// laned is a Source whose items several goroutines may decode at a time, each in a lane.
type laned interface {
	Source
	// lane returns a further lane. nil: this source is read by one goroutine.
	lane() lane
	// forgive returns nil when reading goes on behind err.
	forgive(err error) error
	// place returns the position of what a lane has just taken, and counts it.
	place() int64
	// positions returns the position of the next item.
	positions() int64
	Skipped() int64
}

// lane makes items in memory of its own, one after the other, each in three steps.
type lane interface {
	// take takes what the next item is made of; io.EOF: there is none. One lane of a source
	// takes at a time, and the order of their calls is the order of the items.
	take() error
	// decode makes an item of what was taken. Several lanes decode at a time.
	decode(it *Item) error
	// finish completes the item by what came before it. err is that of take or decode, and
	// finish returns it, or its own. One lane finishes at a time, in the order of the items.
	finish(it *Item, err error) error
	// skip takes the place of decode and finish for an item that nobody reads: it keeps what
	// later items depend on. err is that of take.
	skip(err error) error
	// close frees what the garbage collector does not.
	close()
}

// forgive returns nil when reading goes on behind err.
func (s *skips) forgive(err error) error {
	var bad *BadInputError
	if !errors.As(err, &bad) {
		return err
	}
	return s.pass(bad)
}

// inLane makes the next item in a lane: a Source's Next.
func (s *skips) inLane(it *Item, l lane) error {
	for {
		err := l.take()
		if err == io.EOF {
			return err
		}
		at := s.place()
		if err == nil {
			err = l.decode(it)
		}
		if err = l.finish(it, err); err == nil {
			it.Position = at
			return nil
		}
		if err = s.forgive(err); err != nil {
			return err
		}
	}
}

// pop returns the entry of a list at next, and moves next on. io.EOF: there is none.
func pop[T any](list []T, next *int) (*T, error) {
	if *next == len(list) {
		return nil, io.EOF
	}
	*next++
	return &list[*next-1], nil
}

// inLanes returns a Source of the items of src, up to n of which are decoded at a time, or
// src where that cannot be. encode returns a function for one goroutine, which is called for
// each cloud after it was decoded; nil: there is nothing to do. Memory: n items.
func inLanes(src Source, n int, encode func() func(*Item)) Source {
	if own, sequence := unnamed(src); sequence != "" {
		return withName(inLanes(own, n, encode), sequence)
	}
	of, ok := src.(laned)
	if !ok || n < 2 {
		return src
	}
	a := &ahead{src: of}
	for range n {
		l := of.lane()
		if l == nil {
			return src
		}
		w := &worker{lane: l, encode: func(*Item) {}, free: make(chan struct{}, 1)}
		if encode != nil {
			w.encode = encode()
		}
		a.workers = append(a.workers, w)
	}
	a.turns = make([]chan *worker, n)
	for i := range a.turns {
		a.turns[i] = make(chan *worker, 1)
	}
	return a
}

// ahead reads the items of a Source in several lanes, and yields them in their order.
//
// A lane that has made an item waits until the item was used. Of n lanes, therefore, the
// items under way are at most n in a row, and n channels tell them apart.
type ahead struct {
	src     laned
	workers []*worker
	turns   []chan *worker // item i comes by turns[i mod n]

	running bool
	wg      sync.WaitGroup
	quit    chan struct{}
	want    int64   // item that Next yields
	held    *worker // lane of the item that Next has yielded

	mu    sync.Mutex // held by take, and by all that reads or changes src
	taken int64      // items that lanes have taken
	ended bool       // take has returned an error after which there is no item
}

// worker is a lane with its item.
type worker struct {
	lane
	item   Item
	at     int64 // position of the item
	err    error
	encode func(*Item)
	free   chan struct{} // the item was used
}

// run makes items until there is none or nobody wants them.
func (a *ahead) run(w *worker) {
	for {
		select {
		case <-w.free:
		case <-a.quit:
			return
		}
		a.mu.Lock()
		if a.ended {
			a.mu.Unlock()
			return
		}
		if w.err = w.take(); w.err != io.EOF {
			w.at = a.src.place()
		}
		turn := a.turns[a.taken%int64(len(a.turns))]
		a.taken++
		var bad *BadInputError
		a.ended = w.err != nil && !errors.As(w.err, &bad)
		a.mu.Unlock()
		if w.err == nil {
			w.err = w.decode(&w.item)
		}
		if w.err == nil {
			w.encode(&w.item)
		}
		turn <- w
	}
}

// start starts the lanes.
func (a *ahead) start() {
	a.running, a.quit = true, make(chan struct{})
	a.want, a.taken, a.ended = 0, 0, false
	for _, w := range a.workers {
		w.free <- struct{}{}
		a.wg.Go(func() { a.run(w) })
	}
}

// stop stops the lanes and drops their items.
func (a *ahead) stop() {
	if !a.running {
		return
	}
	close(a.quit)
	a.wg.Wait()
	for _, turn := range a.turns {
		select {
		case <-turn:
		default:
		}
	}
	for _, w := range a.workers {
		select {
		case <-w.free:
		default:
		}
	}
	a.running, a.held = false, nil
}

// Next implements Source.
func (a *ahead) Next(it *Item) error {
	if !a.running {
		a.start()
	}
	for {
		if a.held != nil {
			a.held.free <- struct{}{}
			a.held = nil
		}
		if a.want > 0 && a.want == a.finished() {
			return io.EOF // said before
		}
		w := <-a.turns[a.want%int64(len(a.turns))]
		a.want++
		if w.err == io.EOF {
			return io.EOF
		}
		a.held = w
		err := a.finish(w)
		if err == nil {
			*it = w.item
			it.Position = w.at
			return nil
		}
		if err = a.forgive(err); err != nil {
			return err
		}
	}
}

// finished returns the number of items if no lane takes any more, else -1.
func (a *ahead) finished() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return a.taken
	}
	return -1
}

func (a *ahead) finish(w *worker) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return w.finish(&w.item, w.err)
}

func (a *ahead) forgive(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.src.forgive(err)
}

// Skipped returns the number of bad inputs that were left out so far.
func (a *ahead) Skipped() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.src.Skipped()
}

// Len returns the number of frames; 0: unknown.
func (a *ahead) Len() int64 {
	if k, ok := a.src.(interface{ Len() int64 }); ok {
		return k.Len()
	}
	return 0
}

// Rewind implements Source.
func (a *ahead) Rewind() error {
	a.stop()
	return a.src.Rewind()
}

// Close implements Source.
func (a *ahead) Close() error {
	a.stop()
	for _, w := range a.workers {
		w.close()
	}
	return a.src.Close()
}
