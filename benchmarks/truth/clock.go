package main

import "time"

// leastTimes runs the functions in turn, repeats times, and returns the least
// time of each in milliseconds. It is the one clock of methods that work on frames.
//
// Each function begins with its data out of the core's own caches, as a frame that has
// just arrived. What it still inherits is the prediction of branches: a hull of 10,000
// points takes 0.024 ms behind itself alone and 0.05 ms behind sorts or a network, so
// figures of one method agree only between experiments that run alike code before it.
func leastTimes(repeats int, fs ...func()) []float64 {
	least := make([]float64, len(fs))
	for k := range repeats + 1 {
		for i, f := range fs {
			evict()
			start := time.Now()
			f()
			if ms := 1e3 * time.Since(start).Seconds(); k == 1 || k > 1 && ms < least[i] {
				least[i] = ms // not of the first run: memory is new
			}
		}
	}
	return least
}

// evicted is more than a core's own caches hold.
var evicted [8 << 20]byte

// evict writes one byte of every line of evicted.
func evict() {
	for i := 0; i < len(evicted); i += 64 {
		evicted[i]++
	}
}
