package ingest

import (
	"slices"
	"sync"
	"unsafe"
)

const (
	// freeLimit bounds the memory kept for later fetches. What is in flight is
	// bounded by the caller, through the sizes it asks for.
	freeLimit = 64 << 20

	// valueAlign is where large values start: Arrow pads its buffers to 64
	// bytes from the start of the message, so that they then are aligned too.
	valueAlign = 64
	largeValue = 1 << 10

	minBlock = 64 << 10
)

// freeList keeps blocks between fetches. A fresh block of 32 MiB costs 8192
// page faults, more than the fetch itself.
//
// What has not been needed for a while is let go: answers differ in size from
// moment to moment, and a list that only grew would end up holding blocks of
// all sizes there have been.
type freeList struct {
	limit  int64
	mu     sync.Mutex
	bytes  int64
	blocks [][]byte // the longest unused first
	puts   int      // since the surplus was let go
	least  int64    // fewest bytes there have been since then: the surplus
}

// freeWindow is how many fetches show what is needed.
const freeWindow = 64

// get returns a block of at least n bytes: the smallest free one that is not
// wastefully large, or a new one.
func (f *freeList) get(n int) []byte {
	f.mu.Lock()
	best := -1
	for i, b := range f.blocks {
		if len(b) >= n && len(b) <= 2*max(n, minBlock) && (best < 0 || len(b) < len(f.blocks[best])) {
			best = i
		}
	}
	if best < 0 {
		f.mu.Unlock()
		return make([]byte, blockSize(n))
	}
	defer f.mu.Unlock()
	b := f.blocks[best]
	f.blocks = slices.Delete(f.blocks, best, best+1)
	f.bytes -= int64(len(b))
	f.least = min(f.least, f.bytes)
	return b
}

// blockSize rounds n up by at most an eighth, so that answers of nearly the
// same size share blocks.
func blockSize(n int) int {
	step := minBlock
	for step*16 <= n {
		step *= 2
	}
	return (max(n, minBlock) + step - 1) / step * step
}

func (f *freeList) put(blocks ...[]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range blocks {
		if f.bytes+int64(len(b)) <= f.limit {
			f.blocks = append(f.blocks, b)
			f.bytes += int64(len(b))
		}
	}
	if f.puts++; f.puts >= freeWindow {
		f.shed()
	}
}

// shed lets go of blocks that were free during the whole window.
func (f *freeList) shed() {
	n := 0
	for n < len(f.blocks) && int64(len(f.blocks[n])) <= f.least {
		f.least -= int64(len(f.blocks[n]))
		f.bytes -= int64(len(f.blocks[n]))
		n++
	}
	f.blocks = slices.Delete(f.blocks, 0, n)
	f.puts, f.least = 0, f.bytes
}

func (f *freeList) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocks, f.bytes, f.puts, f.least = nil, 0, 0, 0
}

// arena is the memory of one fetch: blocks that are handed back together.
type arena struct {
	free   *freeList
	blocks [][]byte
	rest   []byte // unused part of the last block
	hint   int    // bytes that are still to come, as far as is known
	more   int    // size of a block when more comes than that
}

// alloc returns n bytes such that the byte at index at is aligned to align, a
// power of two.
func (a *arena) alloc(n, at, align int) []byte {
	pad := padding(a.rest, at, align)
	if pad+n > len(a.rest) {
		a.rest = a.free.get(max(n+valueAlign, a.hint, a.more))
		a.blocks = append(a.blocks, a.rest)
		pad = padding(a.rest, at, align)
	}
	s := a.rest[pad : pad+n : pad+n]
	a.rest = a.rest[pad+n:]
	a.hint -= n
	return s
}

func padding(b []byte, at, align int) int {
	if len(b) == 0 {
		return 0
	}
	addr := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(align-1))
	return -(addr + at) & (align - 1)
}

// held is the memory of all blocks, used or not.
func (a *arena) held() (n int64) {
	for _, b := range a.blocks {
		n += int64(len(b))
	}
	return n
}

func (a *arena) release() {
	a.free.put(a.blocks...)
	a.blocks, a.rest = nil, nil
}
