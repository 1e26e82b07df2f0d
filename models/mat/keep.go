package mat

// Keep sets x[i] to 0 if bit i%64 of bits[i/64] is 0, and leaves the other numbers,
// as dropout does with a row (Srivastava et al. 2014). It panics if bits has fewer
// bits than x has numbers.
func Keep(x []float32, bits []uint64) {
	if len(x) > 64*len(bits) {
		panic(badLength)
	}
	switch {
	case len(x) == 0:
		return
	case level == AVX512:
		keepAVX512(&x[0], len(x), &bits[0])
		return
	case level == AVX2:
		keepAVX2(&x[0], len(x), &bits[0])
		return
	}
	for i := range x {
		if bits[i/64]>>(i%64)&1 == 0 {
			x[i] = 0
		}
	}
}
