package kernel

// digit is the number of bits of one counting pass: 2048 counters stay in the first-level
// cache.
const digit = 11

// MaxPasses is the largest number of passes. So many passes read all 32 bits of a key.
const MaxPasses = 3

// SortByKey sorts a ascending by the keys, the upper halves of its elements, and is
// stable. Keys have at most 11*passes bits, 1 <= passes <= MaxPasses. The lower halves,
// usually positions, move with the keys.
//
// tmp must be as long as a. One of the two is returned sorted, the other as scratch.
// Cost: O(n) for any keys, one read and one scattered write a pass. It is a radix sort
// that makes all histograms in one read, as in Herf, "Radix tricks" (2001).
func SortByKey(a, tmp []uint64, passes int) (sorted, scratch []uint64) {
	var count [MaxPasses][1 << digit]uint32
	tmp = tmp[:len(a)]
	for _, v := range a {
		for p, k := 0, v>>32; p < passes; p, k = p+1, k>>digit {
			count[p][k&(1<<digit-1)]++
		}
	}
	for p := range passes {
		next := &count[p]
		total := uint32(0)
		for d, c := range next {
			next[d] = total
			total += c
		}
		shift := 32 + digit*p
		for _, v := range a {
			d := v >> shift & (1<<digit - 1)
			tmp[next[d]] = v
			next[d]++
		}
		a, tmp = tmp, a
	}
	return a, tmp
}

// SortByKeyParallel is SortByKey with workers goroutines. In a pass each goroutine has a
// part of a, and counters that say where in each digit's stretch it may write.
func SortByKeyParallel(a, tmp []uint64, passes, workers int) (sorted, scratch []uint64) {
	counts := make([][1 << digit]uint32, workers)
	tmp = tmp[:len(a)]
	for p := range passes {
		shift := 32 + digit*p
		Parallel(workers, func(part int) {
			lo, hi := Part(len(a), part, workers)
			count := &counts[part]
			clear(count[:])
			for _, v := range a[lo:hi] {
				count[v>>shift&(1<<digit-1)]++
			}
		})
		total := uint32(0)
		for d := range 1 << digit {
			for part := range counts {
				counts[part][d], total = total, total+counts[part][d]
			}
		}
		Parallel(workers, func(part int) {
			lo, hi := Part(len(a), part, workers)
			next := &counts[part]
			for _, v := range a[lo:hi] {
				d := v >> shift & (1<<digit - 1)
				tmp[next[d]] = v
				next[d]++
			}
		})
		a, tmp = tmp, a
	}
	return a, tmp
}
