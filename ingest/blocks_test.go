package ingest

import (
	"math/rand/v2"
	"testing"
)

// Fetches of one size use one block again; after a time of large ones the
// large blocks are let go, and the list does not keep a block of every size
// that there has been.
func TestFreeListKeepsWhatIsNeeded(t *testing.T) {
	f := freeList{limit: freeLimit}
	turn := func(n int) (fresh bool) {
		before := f.bytes
		b := f.get(n)
		fresh = f.bytes == before
		f.put(b)
		return fresh
	}
	turn(2 << 20)
	for range 10 * freeWindow {
		if turn(2 << 20) {
			t.Fatal("a block of the same size was not used again")
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		turn(1<<20 + rng.IntN(30<<20))
	}
	for range 3 * freeWindow {
		turn(2 << 20)
	}
	if want := int64(blockSize(2 << 20)); f.bytes > 2*want {
		t.Errorf("%d bytes are kept for fetches of %d", f.bytes, want)
	}
	var sum int64
	for _, b := range f.blocks {
		sum += int64(len(b))
	}
	if sum != f.bytes {
		t.Errorf("%d bytes are counted, %d kept", f.bytes, sum)
	}
}
