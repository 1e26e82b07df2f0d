package kernel

// SampleAt returns the position of sample k of total samples among n elements,
// k < total <= n: a pseudo-random place in stretch k of total equal stretches. So
// positions ascend, and neither a sorted cloud nor the period of a scanner biases the
// sample. There is no random state: equal clouds take equal time.
func SampleAt(k, total, n int) int {
	lo := uint64(k) * uint64(n) / uint64(total)
	hi := uint64(k+1) * uint64(n) / uint64(total)
	h := uint64(k+1) * 0x9e3779b97f4a7c15 >> 32 // Weyl sequence of the golden ratio
	return int(lo + h*(hi-lo)>>32)
}
