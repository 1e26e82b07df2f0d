package mat

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Tiles calls f for the tiles [0, tile), [tile, 2*tile), … of n rows, of which the
// last may be shorter, from at most workers goroutines, and returns when all calls
// have returned. The tiles do not depend on timing; the goroutine of a tile does.
// With one worker, or one tile, Tiles starts no goroutine and calls f in ascending
// order. It panics if tile is not positive.
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
	// shareTiles is a separate function so that its closure is allocated only here.
	shareTiles(n, tile, tiles, workers, f)
}

func shareTiles(n, tile, tiles, workers int, f func(lo, hi int)) {
	Share(tiles, workers, func(i, _ int) { f(i*tile, min((i+1)*tile, n)) })
}

// Share calls f for the tasks 0 to n-1 from at most workers goroutines, and
// returns when all calls have returned. who is the number of the goroutine, below
// workers: no two calls with the same who run at once. Tasks begin in ascending
// order.
//
// Helper goroutines wait for a tenth of a millisecond before they end, because one
// pass of a network shares work dozens of times, and waking a sleeping processor
// takes longer than many of the products. A waiting helper yields the processor to
// other goroutines.
//
// If a call panics, no further tasks begin, and Share panics with the same value
// after all calls have ended, so that no call still uses the caller's memory.
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

// job is shared work. A helper joins, works and leaves. After the job is closed no
// helper joins, so that the caller never waits for a late helper.
type job struct {
	f      func(i, who int)
	n      int64
	next   atomic.Int64
	names  atomic.Int64
	inside atomic.Int64 // number of helpers at work, plus closed after close
	left   sync.Mutex   // locked by close until the last helper leaves

	panicked atomic.Pointer[any] // value of the first panic in a helper
}

const closed = -1 << 32

func (j *job) work(who int) {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		j.f(int(i), who)
	}
}

// help joins the job, works on it, and leaves.
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
		if p := recover(); p != nil { // Share must panic in its caller's goroutine instead
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

// lead works on the job in the caller's goroutine and waits for the helpers, even
// if its own work panics.
func (j *job) lead() {
	defer j.close()
	defer func() { j.next.Store(j.n) }() // after a panic no further task begins
	j.work(0)
}

// close returns when no helper is at work.
func (j *job) close() {
	j.left.Lock()
	if j.inside.Add(closed) == closed {
		return
	}
	if !patient(func() bool { return j.inside.Load() == closed }) {
		j.left.Lock()
	}
}

// A helper is a goroutine that works on jobs of Share.
type helper struct {
	job   *job
	state atomic.Int32
}

const (
	waiting int32 = iota // the helper is in the list of idle helpers, or just taken from it
	called               // the helper has a job
	gone                 // the helper ends
)

// idle is the list of waiting helpers, the most recently active one last.
var idle struct {
	sync.Mutex
	helpers []*helper
}

// mostIdle is the largest number of waiting helpers: one for each processor except
// the caller's.
var mostIdle = runtime.NumCPU() - 1

// help gives the job to a waiting helper, or to a new one.
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

// run works on one job after the other until no job arrives for the time patience.
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

// forget removes h from the list of idle helpers, if it is there.
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

// patience is the longest time for which busy waiting is cheaper than sleeping.
const patience = 100 * time.Microsecond

// patient waits until ready returns true, for at most about the time patience, and
// reports whether it did.
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
