package kernel

import "unsafe"

// loops holds the generated forms of one loop by number of axes, for float32 and
// float64: with vectors of 64 bytes for 2 to MaxAxes axes, with 32 bytes for 2 and 3.
// The argument of a form points to the loop's own struct of arguments.
type loops struct {
	wide32, wide64     [MaxAxes + 1]func(*byte)
	narrow32, narrow64 [4]func(*byte)
}

var dominateLoops = loops{
	wide32: [MaxAxes + 1]func(*byte){2: dominate32x2AVX512, dominate32x3AVX512, dominate32x4AVX512,
		dominate32x5AVX512, dominate32x6AVX512, dominate32x7AVX512, dominate32x8AVX512},
	wide64: [MaxAxes + 1]func(*byte){2: dominate64x2AVX512, dominate64x3AVX512, dominate64x4AVX512,
		dominate64x5AVX512, dominate64x6AVX512, dominate64x7AVX512, dominate64x8AVX512},
	narrow32: [4]func(*byte){2: dominate32x2AVX2, dominate32x3AVX2},
	narrow64: [4]func(*byte){2: dominate64x2AVX2, dominate64x3AVX2},
}

var frontLoops = loops{
	wide32: [MaxAxes + 1]func(*byte){2: front32x2AVX512, front32x3AVX512, front32x4AVX512, front32x5AVX512,
		front32x6AVX512, front32x7AVX512, front32x8AVX512},
	wide64: [MaxAxes + 1]func(*byte){2: front64x2AVX512, front64x3AVX512, front64x4AVX512, front64x5AVX512,
		front64x6AVX512, front64x7AVX512, front64x8AVX512},
	narrow32: [4]func(*byte){2: front32x2AVX2, front32x3AVX2},
	narrow64: [4]func(*byte){2: front64x2AVX2, front64x3AVX2},
}

// loopFor returns the form of a loop for the level in use, and the number of points in a
// vector. loop is nil where only the portable form exists.
func loopFor[T float32 | float64](l *loops, dims int) (loop func(*byte), lanes int) {
	single := unsafe.Sizeof(T(0)) == 4
	switch {
	case level == AVX512 && single:
		return l.wide32[dims], 16
	case level == AVX512:
		return l.wide64[dims], 8
	case level == AVX2 && dims < len(l.narrow32) && single:
		return l.narrow32[dims], 8
	case level == AVX2 && dims < len(l.narrow64):
		return l.narrow64[dims], 4
	}
	return nil, 0
}

// stairLoop returns the generated form of Stair.Climb, or nil.
func stairLoop[T float32 | float64]() func(*byte) {
	switch {
	case level != AVX512:
		return nil
	case unsafe.Sizeof(T(0)) == 4:
		return stair32AVX512
	}
	return stair64AVX512
}
