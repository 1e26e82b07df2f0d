package kern

// Pays reports whether a plan saves time: whether attention that reads the share
// density of the blocks of n keys, in heads of dim numbers, takes at most about
// five sixths of the time of dense attention. The limits were measured
// (benchmarks/attention sparse, one thread and two, heads of 32 and 64, blocks of
// 16 and 64). At three quarters of the blocks dense attention takes 1.2 to 1.4
// times as long from 256 keys on, and 1.1 times at 128. At half of the blocks it
// takes 1.6 times as long or more from 128 keys on. Below 128 keys attention is
// so small a part of a layer that a plan gains nothing. Heads of fewer than 16
// numbers spend their time on weights: they need twice as many keys.
func Pays(n, dim int, density float64) bool {
	least := 256
	if dim < panel {
		least = 512
	}
	return n >= least && density <= 0.8 || n >= 128 && n < least && dim >= panel && density <= 0.5
}
