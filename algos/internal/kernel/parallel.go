package kernel

import "sync"

// Parallel calls f(0) to f(parts-1), each in a goroutine of its own except the last, and
// returns when all calls have returned.
func Parallel(parts int, f func(part int)) {
	var wait sync.WaitGroup
	for p := range parts - 1 {
		wait.Go(func() { f(p) })
	}
	f(parts - 1)
	wait.Wait()
}

// Part returns the bounds of one of parts nearly equal parts of [0, n).
func Part(n, part, parts int) (lo, hi int) {
	return n * part / parts, n * (part + 1) / parts
}
