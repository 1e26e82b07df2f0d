// Package vector reports which vector units the operators of algos use, and limits
// them.
//
// Results do not depend on the level: portable Go defines the meaning of every
// kernel. A program need not call this package; benchmarks compare levels with it.
package vector

import "entropipe/algos/internal/kernel"

// Level names the widest vector unit in use. A higher level includes the lower
// levels.
type Level = kernel.Level

// Levels.
const (
	Portable = kernel.Portable // no vector instructions except the compiler's own
	AVX2     = kernel.AVX2     // AVX2 with FMA and BMI2
	AVX512   = kernel.AVX512   // AVX-512 F, BW, DQ and VL
)

// Best returns the level in use: the widest that the CPU and the system have, or
// the one that Limit set. GODEBUG=cpu.avx512f=off and cpu.avx2=off lower it, too. It
// may be called concurrently, but not with Limit.
func Best() Level { return kernel.Best() }

// Limit lowers the level to at most l until restore is called. The level belongs to
// the whole process: no operator may run in another goroutine while Limit or
// restore runs.
func Limit(l Level) (restore func()) { return kernel.Limit(l) }
