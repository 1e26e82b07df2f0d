package pipeline

import "time"

// A clock may be set while the program runs, by hours and in both directions, and a machine
// may be suspended. So durations are differences of time.Now, which has a monotonic reading,
// or of ticks; and what gives something up after a time counts the time that was waited.

// ticks returns the nanoseconds since New made the pipeline, plus 1. No step of the wall clock
// moves them.
func (p *Pipeline) ticks() int64 { return 1 + int64(time.Since(p.began)) }

// moment returns the time at which ticks returned at.
func (p *Pipeline) moment(at int64) time.Time { return p.began.Add(time.Duration(at - 1)) }

// waiting counts how long somebody has waited. Its zero value has not begun. One goroutine
// at a time may use it.
type waiting struct {
	looked time.Time
	waited time.Duration
}

// look counts the time since the last look, but at most most: a machine that was suspended, or
// whose monotonic clock has jumped, has not waited meanwhile. A time before the last look
// counts nothing.
func (p *waiting) look(now time.Time, most time.Duration) time.Duration {
	if p.looked.IsZero() {
		p.looked = now
	}
	if step := now.Sub(p.looked); step > 0 {
		p.waited += min(step, most)
		p.looked = now
	}
	return p.waited
}
