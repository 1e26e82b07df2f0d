// Package vector says which vector units the operators of algos use, and
// limits them.
//
// Results do not depend on the level: portable Go defines what every kernel
// means. A program need not call anything here; benchmarks compare levels.
package vector

import "entropipe/algos/internal/kernel"

// Level names the widest vector unit in use. A higher one includes the lower
// ones.
type Level = kernel.Level

// Levels: no vector instructions but what the compiler makes; AVX2 with FMA
// and BMI2; AVX-512 F, BW, DQ and VL.
const (
	Portable = kernel.Portable
	AVX2     = kernel.AVX2
	AVX512   = kernel.AVX512
)

// Best returns the level in use: what the CPU and the system have, or what
// Limit has left of it. GODEBUG=cpu.avx512f=off and cpu.avx2=off lower it too.
func Best() Level { return kernel.Best() }

// Limit lowers the level to at most l until restore is called. It holds for
// the whole process: no operator may run meanwhile in another goroutine.
func Limit(l Level) (restore func()) { return kernel.Limit(l) }
