//go:build !amd64

package kernel

// loops is empty: only portable forms exist here.
type loops struct{}

var dominateLoops, frontLoops loops

func loopFor[T float32 | float64](*loops, int) (loop func(*byte), lanes int) { return nil, 0 }

func stairLoop[T float32 | float64]() func(*byte) { return nil }
