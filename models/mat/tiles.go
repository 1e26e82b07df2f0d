package mat

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Tiles calls f for the tiles [0, tile), [tile, 2*tile), … of n rows, the last
// one shorter, from at most workers goroutines, and returns when all calls
// have. Which goroutine takes which tile depends on timing; the tiles do not.
// With one worker, or one tile, it starts no goroutine and calls f in order.
func Tiles(n, tile, workers int, f func(lo, hi int)) {
	if tile <= 0 {
		panic("mat: a tile without rows")
	}
	tiles := (n + tile - 1) / tile
	if min(workers, tiles) <= 1 {
		for lo := 0; lo < n; lo += tile {
			f(lo, min(lo+tile, n))
		}
		return
	}
	// The closures of functions of their own are allocated only there.
	shareTiles(n, tile, tiles, workers, f)
}

func shareTiles(n, tile, tiles, workers int, f func(lo, hi int)) {
	Share(tiles, workers, func(i, _ int) { f(i*tile, min((i+1)*tile, n)) })
}

// Share calls f for the tasks 0 to n-1 from at most workers goroutines, and
// returns when all calls have. who is less than workers and names the
// goroutine: no two calls with the same who run at once. Tasks begin in
// ascending order.
//
// The goroutines that help wait for a tenth of a millisecond before they end:
// one pass of a network shares work dozens of times, and to wake a sleeping
// processor takes longer than many of its products. While they wait they let
// others run.
//
// Where a call panics, no further tasks begin, and Share panics with the same
// value once all calls have ended: whoever recovers may use or drop what they
// worked on.
func Share(n, workers int, f func(i, who int)) {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	j := &job{f: f, n: int64(n)}
	for range workers - 1 {
		help(j)
	}
	j.lead()
	if p := j.panicked.Load(); p != nil {
		panic(*p)
	}
}

// job is work that is shared. A helper joins, works, and leaves; once the job
// is closed none joins any more, so a helper that comes late delays nobody.
type job struct {
	f      func(i, who int)
	n      int64
	next   atomic.Int64
	names  atomic.Int64
	inside atomic.Int64 // helpers at work; below closed once closed
	left   sync.Mutex   // held by the one who closed, until the last helper leaves

	panicked atomic.Pointer[any] // what a helper's call did
}

const closed = -1 << 32

func (j *job) work(who int) {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		j.f(int(i), who)
	}
}

// help works with the others, as a goroutine that helps.
func (j *job) help() {
	for {
		in := j.inside.Load()
		if in < 0 {
			return
		}
		if j.inside.CompareAndSwap(in, in+1) {
			break
		}
	}
	defer func() {
		if p := recover(); p != nil { // nobody above a helper could
			value := p // p itself would be allocated each time
			j.panicked.CompareAndSwap(nil, &value)
			j.next.Store(j.n)
		}
		if j.inside.Add(-1) == closed {
			j.left.Unlock()
		}
	}()
	j.work(int(j.names.Add(1)))
}

// lead is the caller's part: to work, and to wait for the helpers, also when its
// own work panics.
func (j *job) lead() {
	defer j.close()
	defer func() { j.next.Store(j.n) }() // done, unless there was a panic
	j.work(0)
}

// close returns when nobody is at work.
func (j *job) close() {
	j.left.Lock()
	if j.inside.Add(closed) == closed {
		return
	}
	if !patient(func() bool { return j.inside.Load() == closed }) {
		j.left.Lock()
	}
}

// A helper is a goroutine that has helped, or is about to.
type helper struct {
	job   *job
	state atomic.Int32
}

const (
	waiting int32 = iota // in the list of helpers, or just taken from it
	called               // has a job
	gone
)

// idle helpers, the one that worked last at the end.
var idle struct {
	sync.Mutex
	helpers []*helper
}

// mostIdle is how many may wait: one for each processor but the caller's.
var mostIdle = runtime.NumCPU() - 1

// help gives the job to a helper that waits, or to a new one.
func help(j *job) {
	idle.Lock()
	for len(idle.helpers) > 0 {
		last := len(idle.helpers) - 1
		h := idle.helpers[last]
		idle.helpers[last] = nil
		idle.helpers = idle.helpers[:last]
		h.job = j
		if h.state.CompareAndSwap(waiting, called) {
			idle.Unlock()
			return
		}
	}
	idle.Unlock()
	go (&helper{job: j}).run()
}

// run helps with one job after the other, until none comes for a while.
func (h *helper) run() {
	for {
		h.job.help()
		h.job = nil
		h.state.Store(waiting)
		idle.Lock()
		if len(idle.helpers) >= mostIdle {
			idle.Unlock()
			return
		}
		idle.helpers = append(idle.helpers, h)
		idle.Unlock()
		if !patient(func() bool { return h.state.Load() == called }) && h.state.CompareAndSwap(waiting, gone) {
			h.forget()
			return
		}
	}
}

// forget takes h out of the list, if it is still there.
func (h *helper) forget() {
	idle.Lock()
	defer idle.Unlock()
	for i, other := range idle.helpers {
		if other == h {
			idle.helpers = append(idle.helpers[:i], idle.helpers[i+1:]...)
			return
		}
	}
}

// patience is how long it pays to wait awake.
const patience = 100 * time.Microsecond

// patient waits until ready, and gives up when it has been patient.
func patient(ready func() bool) bool {
	var end time.Time
	for {
		for range 100 {
			if ready() {
				return true
			}
		}
		now := time.Now()
		if end.IsZero() {
			end = now.Add(patience)
		} else if now.After(end) {
			return false
		}
		runtime.Gosched()
	}
}
