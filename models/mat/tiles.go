package mat

import (
	"sync"
	"sync/atomic"
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
	workers = min(workers, tiles)
	if workers <= 1 {
		for lo := 0; lo < n; lo += tile {
			f(lo, min(lo+tile, n))
		}
		return
	}
	shareTiles(n, tile, workers, f)
}

// shareTiles is a function of its own so that what goroutines hold is allocated
// only where some are started.
func shareTiles(n, tile, workers int, f func(lo, hi int)) {
	var next atomic.Int64
	work := func() {
		for {
			lo := int(next.Add(1)-1) * tile
			if lo >= n {
				return
			}
			f(lo, min(lo+tile, n))
		}
	}
	var wait sync.WaitGroup
	for range workers - 1 {
		wait.Go(work)
	}
	work()
	wait.Wait()
}
