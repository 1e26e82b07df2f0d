package delaunay

import "testing"

// The curve meets every cell of a square once, each beside the one before.
func TestHilbertGoesFromNeighbourToNeighbour(t *testing.T) {
	for _, corner := range [][2]uint32{{0, 0}, {64, 64}, {1984, 0}, {1024, 512}} {
		const size = 64
		at := make(map[uint32][2]int)
		least := ^uint32(0)
		for x := range uint32(size) {
			for y := range uint32(size) {
				place := hilbert(corner[0]+x, corner[1]+y)
				at[place] = [2]int{int(x), int(y)}
				least = min(least, place)
			}
		}
		if len(at) != size*size {
			t.Fatalf("corner %v: %d places for %d cells", corner, len(at), size*size)
		}
		for place := least + 1; place < least+size*size; place++ {
			p, ok := at[place]
			q := at[place-1]
			if d := (p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]); !ok || d != 1 {
				t.Fatalf("corner %v: place %d is cell %v, the one before %v", corner, place, p, q)
			}
		}
	}
}

// All 22 bits are in use, none above.
func TestHilbertFillsItsRange(t *testing.T) {
	var or uint32
	for _, x := range []uint32{0, 1, 700, side - 1} {
		for _, y := range []uint32{0, 1, 700, side - 1} {
			or |= hilbert(x, y)
		}
	}
	if or != side*side-1 {
		t.Errorf("bits %#x, want %#x", or, side*side-1)
	}
}
