package mat

// Level is a set of vector instructions. A higher level includes the lower ones.
type Level int

// The levels. The portable form in Go defines the meaning of every function; tests
// compare the other levels with it.
const (
	Portable Level = iota
	AVX2           // with FMA
	AVX512         // F, BW, DQ, VL
)

// String returns "portable", "avx2" or "avx512".
func (l Level) String() string { return [...]string{"portable", "avx2", "avx512"}[l] }

// level is the level in use: the highest one that the CPU and the system support.
// GODEBUG can turn instructions off: cpu.avx512f=off, cpu.avx2=off.
var level = detect()

// Best returns the level in use.
func Best() Level { return level }

// Limit lowers the level in use to at most l until restore is called. It is for
// tests and benchmarks of this package and its callers: no other call of this
// package may run at the same time.
func Limit(l Level) (restore func()) {
	was := level
	level = min(was, l)
	return func() { level = was }
}
