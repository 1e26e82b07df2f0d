package top

import (
	"context"
	"runtime/debug"
	"time"
)

// Limits of the time before a reading that failed is tried again; it doubles with each failure.
const (
	firstWait = time.Second
	mostWait  = 15 * time.Second
)

// poll sends readings and failures to news until ctx ends; a panic is sent as a crash. It waits
// for an interval first, because the caller has made the first reading, and not at all while a
// reading leaves something to be read.
func poll(ctx context.Context, from source, interval time.Duration, news chan<- any) {
	defer func() {
		if value := recover(); value != nil {
			send(ctx, news, crash{value, debug.Stack()})
		}
	}()
	wait, failures := interval, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		r, err := from.read(ctx)
		if err != nil {
			wait = max(min(firstWait<<min(failures, 10), mostWait), min(interval, mostWait))
			failures++
			send(ctx, news, failure{time.Now(), err, wait})
			continue
		}
		wait, failures = interval, 0
		if r.left > 0 {
			wait = 0
		}
		send(ctx, news, r)
	}
}

// send sends an event unless ctx ends first.
func send(ctx context.Context, news chan<- any, event any) {
	select {
	case news <- event:
	case <-ctx.Done():
	}
}
