package pipeline

import "entropipe/schemas"

// maxBlock bounds a block of indices, and with it the memory that a message may
// hold in vain: the size of a block is guessed from the last message, which may
// belong to a topic with other drawings.
const maxBlock = 4096

// memory allocates the results of one message. A message of one cloud has few
// results, and each gets memory of its own size. A message of many drawings has
// hundreds of small results. They share blocks, which live as long as the
// message's results, so that the garbage collector scans few objects. No two
// messages share a block, because one may be committed long before the other.
type memory struct {
	frames int // frames of the message that are still to come
	used   int // numbers that the message has taken so far
	each   int // numbers that a frame of the last message took

	indices []int32
	floats  []float64
	hulls   []schemas.Hull
	maxima  []schemas.Maxima
}

// begin starts a message with that many frames.
func (m *memory) begin(frames int) {
	*m = memory{frames: frames, each: m.each}
}

// next starts the next frame.
func (m *memory) next() { m.frames-- }

// end drops all references to the message's memory, which its results own now.
func (m *memory) end(frames int) {
	*m = memory{each: (m.used + frames - 1) / max(frames, 1)}
}

// room returns an empty slice to append indices to. The caller gives the result of
// its appends to keep.
func (m *memory) room() []int32 {
	if m.frames == 0 && m.indices == nil || m.each > maxBlock/4 {
		return nil // the only frame, or large ones
	}
	if free := cap(m.indices) - len(m.indices); free < m.each || free == 0 {
		m.indices = make([]int32, 0, min(max(m.each*(m.frames+1), 64), maxBlock))
	}
	return m.indices[len(m.indices):]
}

// keep returns v, which began as room, without the capacity behind it.
func (m *memory) keep(v []int32) []int32 {
	m.used += len(v)
	if n := len(m.indices); len(v) > 0 && len(v) <= cap(m.indices)-n && &v[0] == &m.indices[:n+1][n] {
		m.indices = m.indices[:n+len(v)]
	}
	return v[:len(v):len(v)]
}

// copy returns a copy of v.
func (m *memory) copy(v []int32) []int32 {
	to := m.room()
	if to == nil || cap(to) < len(v) {
		to = make([]int32, 0, len(v))
	}
	return m.keep(append(to, v...))
}

// numbers returns n numbers.
func (m *memory) numbers(n int) []float64 {
	if m.frames == 0 && m.floats == nil {
		return make([]float64, n)
	}
	if cap(m.floats)-len(m.floats) < n {
		m.floats = make([]float64, 0, n*(m.frames+1))
	}
	from := len(m.floats)
	m.floats = m.floats[:from+n]
	return m.floats[from : from+n : from+n]
}

// hull returns a new hull.
func (m *memory) hull() *schemas.Hull { return &one(&m.hulls, m.frames)[0] }

// one returns a slice of one element of a block, or of a new block that is
// large enough for the frames to come.
func one[T any](block *[]T, frames int) []T {
	if len(*block) == 0 {
		*block = make([]T, frames+1)
	}
	v := (*block)[:1:1]
	*block = (*block)[1:]
	return v
}
