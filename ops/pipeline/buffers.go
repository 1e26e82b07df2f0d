package pipeline

import "sync"

// buffers keeps the memory of chunks and of messages put together, because fresh memory of a
// frame costs more than copying it. What is not needed for a while goes with the garbage. Any
// goroutine may call the methods; those of nil keep nothing.
type buffers struct {
	mu    sync.Mutex
	pools map[int]*sync.Pool // by capacity
}

const leastBuffer = 16 << 10 // less is not kept

// get returns n bytes, which hold anything.
func (b *buffers) get(n int) []byte {
	if b == nil || n < leastBuffer {
		return make([]byte, n)
	}
	step := leastBuffer / 8
	for step*16 <= n {
		step *= 2
	}
	size := (n + step - 1) / step * step
	if kept, ok := b.pool(size).Get().(*[]byte); ok {
		return (*kept)[:n]
	}
	return make([]byte, n, size)
}

// put takes memory back that get has returned.
func (b *buffers) put(memory []byte) {
	if b == nil || cap(memory) < leastBuffer {
		return
	}
	b.pool(cap(memory)).Put(&memory)
}

func (b *buffers) pool(size int) *sync.Pool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pools == nil {
		b.pools = map[int]*sync.Pool{}
	}
	if b.pools[size] == nil {
		b.pools[size] = new(sync.Pool)
	}
	return b.pools[size]
}
