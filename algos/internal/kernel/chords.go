package kernel

import (
	"math"
	"unsafe"
)

//go:generate go run -C gen ./chords -out ../chords_amd64.s -stubs ../chords_amd64.go -pkg kernel

// Buckets is the number of buckets into which Chords divides an interval: as many
// entries as one or two vector registers can look up at once.
const Buckets = 16

// Chords is a table of lines for Outside. With d = x - Origin, rounded, a point
// falls into bucket d*Scale rounded to the nearest integer, plus 8, modulo 16.
// It is inside when Left < d < Right and its y lies strictly between the lines
// slope*d + offset of its bucket, LowSlope and Low below, UpSlope and Up above.
// Every operation is rounded once, at every level.
type Chords[T float32 | float64] struct {
	Origin, Scale T
	magic         T // set by Outside, see magic32
	Left, Right   T
	UpSlope, Up   [Buckets]T
	LowSlope, Low [Buckets]T
}

// A number of moderate size plus magic has the nearest integer, plus 8, in the lowest
// bits of the sum. For larger numbers these bits do not matter: such a number is not
// between Left and Right.
const (
	magic32 = 0x1.8p23 + 8
	magic64 = 0x1.8p52 + 8
)

// OutsideRoom is the number of free places in dst that Outside needs to go on.
const OutsideRoom = 64

// Outside writes from + i to dst for every point i that is not inside. It stops before
// a stretch of points for which dst may lack room, and returns the number of points
// read and the number of positions written. Points with NaN or infinite coordinates
// are not inside. x and y have equal lengths; dst holds at least OutsideRoom values.
// Cost: one read of x and y.
func (c *Chords[T]) Outside(x, y []T, from int32, dst []int32) (read, written int) {
	c.magic = magic[T]()
	if c.Fast() {
		read, written = c.outsideBlocks(x, y, from, dst)
	}
	r, w := c.outside(x[read:], y[read:], from+int32(read), dst[written:])
	return read + r, written + w
}

// Fast reports whether Outside has a vector form for T at the level in use. Without a
// vector form, a larger table costs no more.
func (c *Chords[T]) Fast() bool { return c.block() > 0 }

// chordsLoops are the vector forms of Outside at a level, with the number of points in a
// block of each: 0 where there is no form.
type chordsLoops struct {
	block32, block64 int
	loop32           func(c, x, y *float32, blocks int, from int32, dst *int32, room int) (read, written int)
	loop64           func(c, x, y *float64, blocks int, from int32, dst *int32, room int) (read, written int)
}

var chordsLevels = [...]chordsLoops{
	Portable: {},
	AVX2:     {block32: 16, loop32: chords32AVX2},
	AVX512:   {block32: 64, loop32: chords32AVX512, block64: 32, loop64: chords64AVX512},
}

// block returns the number of points in a block of the form for T at the level in use.
func (c *Chords[T]) block() int {
	if unsafe.Sizeof(c.Origin) == 4 {
		return chordsLevels[level].block32
	}
	return chordsLevels[level].block64
}

// outside is the portable form of Outside.
func (c *Chords[T]) outside(x, y []T, from int32, dst []int32) (read, written int) {
	y = y[:len(x)]
	for i, v := range x {
		if written > len(dst)-OutsideRoom {
			return i, written
		}
		if !c.inside(v, y[i]) {
			dst[written] = from + int32(i)
			written++
		}
	}
	return len(x), written
}

func (c *Chords[T]) inside(x, y T) bool {
	d := x - c.Origin
	if !(d > c.Left && d < c.Right) {
		return false
	}
	k := bucket(T(d*c.Scale) + c.magic)
	return y < T(c.UpSlope[k]*d)+c.Up[k] && y > T(c.LowSlope[k]*d)+c.Low[k]
}

func magic[T float32 | float64]() T {
	var zero T
	if unsafe.Sizeof(zero) == 4 {
		return magic32
	}
	return T(float64(magic64))
}

func bucket[T float32 | float64](v T) int {
	if unsafe.Sizeof(v) == 4 {
		return int(math.Float32bits(float32(v)) % Buckets)
	}
	return int(math.Float64bits(float64(v)) % Buckets)
}

// outsideBlocks is Outside for whole blocks, in the vector form for T.
func (c *Chords[T]) outsideBlocks(x, y []T, from int32, dst []int32) (read, written int) {
	blocks := len(x) / c.block()
	if blocks == 0 {
		return 0, 0
	}
	loops, d, room := &chordsLevels[level], &dst[0], len(dst)
	if c, single := any(&c.Origin).(*float32); single {
		return loops.loop32(c, any(&x[0]).(*float32), any(&y[0]).(*float32), blocks, from, d, room)
	}
	return loops.loop64(any(&c.Origin).(*float64), any(&x[0]).(*float64), any(&y[0]).(*float64), blocks, from, d, room)
}
