package kernel

import (
	"math"
	"unsafe"
)

//go:generate go run -C gen ./chords -out ../chords_amd64.s -stubs ../chords_amd64.go -pkg kernel

// Buckets is the number of buckets that Chords divides an interval into: as
// many entries as a vector register, or two, can look up at once.
const Buckets = 16

// Chords is a table of lines for Outside. With d = x - Origin, rounded, a point
// falls into bucket d*Scale rounded to the nearest integer, plus 8, modulo 16.
// It is inside when Left < d < Right and its y lies strictly between the lines
// slope*d + offset of its bucket, LowSlope and Low below, UpSlope and Up above.
// Every operation is rounded once, at every level.
type Chords[T float32 | float64] struct {
	Origin, Scale T
	magic         T // see Outside
	Left, Right   T
	UpSlope, Up   [Buckets]T
	LowSlope, Low [Buckets]T
}

// Adding one of these leaves the integer nearest to a number of moderate size,
// plus 8, in the lowest bits of the sum. What a number beyond that leaves there
// does not matter: it is not between Left and Right.
const (
	magic32 = 0x1.8p23 + 8
	magic64 = 0x1.8p52 + 8
)

// OutsideRoom is how many places of dst Outside needs for the next point: it
// stops when fewer are free.
const OutsideRoom = 64

// Outside writes to dst the positions of the points that are not inside, plus
// from. It stops before a stretch of points for which dst may lack room, and
// returns how many points it read and how many positions it wrote. Points with
// a NaN or an infinity are not inside. x and y have equal lengths; dst holds at
// least OutsideRoom values. Cost: one read of x and y.
func (c *Chords[T]) Outside(x, y []T, from int32, dst []int32) (read, written int) {
	c.magic = magic[T]()
	if c.Fast() {
		read, written = c.outsideBlocks(x, y, from, dst)
	}
	r, w := c.outside(x[read:], y[read:], from+int32(read), dst[written:])
	return read + r, written + w
}

// Fast tells whether Outside has a vector form for T here. Without one, a larger
// table costs no more.
func (c *Chords[T]) Fast() bool {
	return level == AVX512 || level == AVX2 && unsafe.Sizeof(c.Origin) == 4
}

// outside is what Outside means.
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

// outsideBlocks does whole blocks with the widest vector unit that has a form
// for T.
func (c *Chords[T]) outsideBlocks(x, y []T, from int32, dst []int32) (read, written int) {
	each := 256 / int(unsafe.Sizeof(c.Origin)) // points in a block
	if level == AVX2 {
		each = 16
	}
	blocks := len(x) / each
	if blocks == 0 {
		return 0, 0
	}
	d, room := &dst[0], len(dst)
	switch c := any(&c.Origin).(type) {
	case *float32:
		x, y := any(&x[0]).(*float32), any(&y[0]).(*float32)
		if level == AVX512 {
			return chords32AVX512(c, x, y, blocks, from, d, room)
		}
		return chords32AVX2(c, x, y, blocks, from, d, room)
	case *float64:
		if level == AVX512 {
			return chords64AVX512(c, any(&x[0]).(*float64), any(&y[0]).(*float64), blocks, from, d, room)
		}
	}
	return 0, 0
}
