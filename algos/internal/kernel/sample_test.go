package kernel

import "testing"

// One sample in every stretch, and not at the same place in each.
func TestSampleAtStaysInItsStretch(t *testing.T) {
	for _, n := range []int{1, 2, 100, 4096, 120_000, 1<<31 - 1} {
		for _, total := range []int{1, 2, 64, 512, 4096} {
			if total > n {
				continue
			}
			offsets := map[int]bool{}
			for k := range total {
				at := SampleAt(k, total, n)
				lo, hi := int(int64(k)*int64(n)/int64(total)), int(int64(k+1)*int64(n)/int64(total))
				if at < lo || at >= hi {
					t.Fatalf("sample %d of %d among %d is at %d, outside [%d, %d)", k, total, n, at, lo, hi)
				}
				offsets[at-lo] = true
			}
			if n/total > 100 && len(offsets) < min(total, 64)/2 {
				t.Errorf("%d samples among %d have only %d different offsets", total, n, len(offsets))
			}
		}
	}
}
