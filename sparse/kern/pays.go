package kern

// Pays says whether reading a share density of the blocks of n keys, in heads
// of dim, is worth a plan: whether attention then takes at most some five sixths
// of the time of dense attention. Measured (benchmarks/attention sparse, one
// thread and two, heads of 32 and 64, blocks of 16 and 64): at three quarters of
// the blocks dense attention takes 1.2 to 1.4 times as long from 256 keys on,
// and 1.1 times at 128; at half of them 1.6 times and more from 128 on. Below,
// attention is so small a part of a layer that nothing is to be gained. Heads
// of fewer than 16 numbers spend their time on weights and are not worth it
// before twice as many keys.
func Pays(n, dim int, density float64) bool {
	least := 256
	if dim < panel {
		least = 512
	}
	return n >= least && density <= 0.8 || n >= 128 && n < least && dim >= panel && density <= 0.5
}
