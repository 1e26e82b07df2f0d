package pipeline

import "sync"

// slotQueue passes the slots of a session from its reader to its collector, in order. It has
// room for slotRoom slots; but a reader that has open messages of chunks may exceed that,
// because the collector waits for one of them, and only the reader brings its chunks. Then
// memory bounds the queue.
type slotQueue struct {
	// some has a token while the queue may have a slot, or is closed.
	some chan struct{}

	mu     sync.Mutex
	room   sync.Cond // slots were taken
	slots  []slot
	closed bool
}

const slotRoom = 1024

func newSlotQueue() *slotQueue {
	q := &slotQueue{some: make(chan struct{}, 1)}
	q.room.L = &q.mu
	return q
}

// push appends a slot. It waits for room unless exceed is set.
func (q *slotQueue) push(s slot, exceed bool) {
	q.mu.Lock()
	for len(q.slots) >= slotRoom && !exceed {
		q.room.Wait()
	}
	q.slots = append(q.slots, s)
	q.mu.Unlock()
	q.signal()
}

// close ends the queue: pop returns what is in it, and then false.
func (q *slotQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *slotQueue) signal() {
	select {
	case q.some <- struct{}{}:
	default: // it is signalled already
	}
}

// pop takes the first slot. none: the queue is empty, and the caller waits for some; ended:
// it is empty and closed. The collector alone calls it.
func (q *slotQueue) pop() (s slot, none, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.slots) == 0 {
		q.slots = nil // the memory behind it is that of slots long gone
		return slot{}, true, q.closed
	}
	s = q.slots[0]
	q.slots[0] = slot{}
	q.slots = q.slots[1:]
	if len(q.slots) < slotRoom {
		q.room.Signal()
	}
	return s, false, false
}

// len returns the number of slots in the queue.
func (q *slotQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.slots)
}
