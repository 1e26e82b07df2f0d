package kernel

// Level names the widest vector unit that kernels use. A higher level includes the
// lower levels.
type Level int

// Levels. Portable Go defines the results of a kernel; tests compare the other levels
// with it.
const (
	Portable Level = iota // no vector instructions except the compiler's own
	AVX2                  // AVX2 with FMA and BMI2
	AVX512                // AVX-512 F, BW, DQ and VL
)

func (l Level) String() string { return [...]string{"portable", "avx2", "avx512"}[l] }

// level is the level of this process: the widest that the CPU and the system have.
// GODEBUG=cpu.avx512f=off and cpu.avx2=off lower it.
var level = detect()

// Best returns the level that kernels use.
func Best() Level { return level }

// Limit lowers the level to at most l until restore is called. It is for tests
// and benchmarks; no kernel may run at the same time in another goroutine.
func Limit(l Level) (restore func()) {
	was := level
	level = min(was, l)
	return func() { level = was }
}
