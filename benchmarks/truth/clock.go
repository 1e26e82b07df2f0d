package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// leastTimes runs the functions in turn, repeats times, and returns the least
// time of each in milliseconds. It is the one clock of methods that work on frames.
//
// Each function begins as on a frame that has just arrived: its data are out of the core's own
// caches, and the core's prediction of branches knows a sort of random numbers. Without that sort a
// hull of 10,000 points takes 0.024 ms behind itself alone and 0.05 ms behind other methods, and
// figures of one method on two pages would not agree.
func leastTimes(repeats int, fs ...func()) []float64 {
	least := make([]float64, len(fs))
	for k := range repeats + 1 {
		for i, f := range fs {
			forget()
			start := time.Now()
			f()
			if ms := 1e3 * time.Since(start).Seconds(); k == 1 || k > 1 && ms < least[i] {
				least[i] = ms // not of the first run: memory is new
			}
		}
	}
	return least
}

var (
	evicted [8 << 20]byte // more than a core's own caches hold

	numbers [1 << 14]uint32
)

// forget has the core sort random numbers, and write one byte of every line of evicted.
func forget() {
	for i := range numbers {
		numbers[i] = rand.Uint32()
	}
	slices.Sort(numbers[:])
	for i := 0; i < len(evicted); i += 64 {
		evicted[i]++
	}
}
