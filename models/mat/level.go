package mat

// Level names the widest vector unit in use. A higher one includes the lower
// ones.
type Level int

// Levels. Portable Go defines what a function means; the others are checked
// against it.
const (
	Portable Level = iota
	AVX2           // with FMA
	AVX512         // F, BW, DQ, VL
)

func (l Level) String() string { return [...]string{"portable", "avx2", "avx512"}[l] }

// level is what this process uses: what the CPU and the system have. GODEBUG
// can take units away: cpu.avx512f=off, cpu.avx2=off.
var level = detect()

// Best returns the level in use.
func Best() Level { return level }

// Limit lowers the level to at most l until restore is called. It is for tests
// and benchmarks; nothing of this package may run at the same time in another
// goroutine.
func Limit(l Level) (restore func()) {
	was := level
	level = min(was, l)
	return func() { level = was }
}
