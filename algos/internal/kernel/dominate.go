package kernel

import (
	"math"
	"slices"
	"unsafe"
)

//go:generate go run -C gen ./dominate -out ../dominate_amd64.s -stubs ../dominate_amd64.go -pkg kernel

// MaxAxes is the largest number of axes that kernels compare.
const MaxAxes = 8

// PivotGroup divides the number of pivots.
const PivotGroup = 4

// pivotChunk is the number of points for which the memory of ids grows at a time.
const pivotChunk = 1 << 13

// Pivots is a filter of points: pivots, which drop the points that they dominate. Its
// memory may be used again.
type Pivots[T float32 | float64] struct {
	// Values holds the pivots one after the other, a coordinate for each axis. Their
	// number is a multiple of PivotGroup: repeat a pivot to make it one. The best
	// pivots belong in the first group, since most points are compared with that
	// group only.
	Values []T
	// Low[k] says that coordinates of points on axis k are negated. Pivots are not.
	Low [MaxAxes]bool

	args dominateArgs
}

// dominateArgs holds the arguments of the generated code, which knows the offsets.
type dominateArgs struct {
	axes   [MaxAxes]unsafe.Pointer
	sign   [MaxAxes]uint64 // the sign bit where an axis is negated
	pivots unsafe.Pointer
	groups int
	blocks int // number of vectors of points
	ids    unsafe.Pointer
	first  int
	found  int
	low    [64]byte
}

// Undominated appends first + i to ids for every point i that no pivot dominates,
// ascending. Pivot q dominates p when q >= p on every axis and q > p on the last axis,
// so no pivot dominates an equal point.
//
// axes holds 2 to MaxAxes slices of equal lengths. Pivots are finite. A point with a
// coordinate that is NaN, or +Inf after negation, is never dropped. A point with a
// coordinate that is -Inf after negation may be dropped, and ok is then false; for the
// other points that are not finite ok may be false, too.
//
// Cost: some 2 operations for each axis and each pivot of the first group, on vectors of
// 64 bytes. ids grows by chunks, so that its memory follows the number of points left.
func (p *Pivots[T]) Undominated(ids []int32, axes [][]T, first int) (_ []int32, ok bool) {
	ok = true
	n, from := len(axes[0]), 0
	if loop, lanes := loopFor[T](&dominateLoops, len(axes)); loop != nil {
		for n-from >= lanes {
			blocks := min(n-from, pivotChunk) / lanes
			for k, v := range axes {
				p.args.axes[k] = unsafe.Pointer(&v[from])
			}
			ids = slices.Grow(ids, blocks*lanes+16) // a vector is written whole
			p.args.groups = len(p.Values) / (len(axes) * PivotGroup)
			var finite bool
			ids, finite = p.run(loop, ids, blocks, first+from)
			ok = ok && finite
			from += blocks * lanes
		}
		clear(p.args.axes[:]) // the pointers would keep the cloud's memory alive
	}
	for from < n {
		to := min(from+pivotChunk/8, n) // stays in the first-level cache
		var finite bool
		ids, finite = p.undominated(ids, axes, from, to, first)
		ok = ok && finite
		from = to
	}
	return ids, ok
}

// run filters blocks whole vectors, from the positions that args point to.
func (p *Pivots[T]) run(loop func(*byte), ids []int32, blocks, first int) (_ []int32, finite bool) {
	a, at := &p.args, len(ids)
	for k := range a.sign {
		a.sign[k] = 0
		if p.Low[k] {
			a.sign[k] = 1<<63 | 1<<31 // float32 takes the lower half
			if unsafe.Sizeof(T(0)) == 8 {
				a.sign[k] = 1 << 63
			}
		}
	}
	low := unsafe.Slice((*T)(unsafe.Pointer(&a.low)), len(a.low)/int(unsafe.Sizeof(T(0))))
	for k := range low {
		low[k] = largest[T]()
	}
	a.pivots, a.blocks, a.ids, a.first = unsafe.Pointer(&p.Values[0]), blocks, unsafe.Pointer(&ids[:at+1][at]), first
	loop((*byte)(unsafe.Pointer(a)))
	return ids[:at+a.found], slices.Min(low) >= -largest[T]()
}

// undominated is the portable form of Undominated for the points [from, to): each pivot
// examines the points that the pivots before it leave. It has no branch for a point:
// whether a point is dropped is hard to predict.
func (p *Pivots[T]) undominated(ids []int32, axes [][]T, from, to, first int) (_ []int32, ok bool) {
	at := len(ids)
	ids = slices.Grow(ids, to-from)
	left := ids[at:][:to-from]
	var q, sign [MaxAxes]T
	for k := range sign {
		sign[k] = 1
		if p.Low[k] {
			sign[k] = -1
		}
	}
	d, values := len(axes), p.Values
	copy(q[:], values[:d])
	ok = true
	for _, v := range axes {
		ok = ok && finite(v[from:to])
	}
	// The first pivot examines the points in order, the other pivots the rest.
	n, last := 0, axes[d-1][from:to]
	switch u := axes[0][from:to]; d {
	case 2:
		n = survivors2(left, u, last, &q, &sign)
	case 3:
		n = survivors3(left, u, axes[1][from:to], last, &q, &sign)
	default:
		for i := range left {
			left[i] = int32(i)
		}
		n = survivors(left, axes, from, &q, &sign)
	}
	for values = values[d:]; len(values) >= d && n > 0; values = values[d:] {
		copy(q[:], values[:d])
		n = survivors(left[:n], axes, from, &q, &sign)
	}
	for k := range left[:n] {
		left[k] += int32(first + from)
	}
	return ids[:at+n], ok
}

// survivors2 sets left to the positions of the points that q does not
// dominate, and returns their number.
func survivors2[T float32 | float64](left []int32, x, y []T, q, sign *[MaxAxes]T) (n int) {
	sx, sy, qx, qy := sign[0], sign[1], q[0], q[1]
	y, left = y[:len(x)], left[:len(x)]
	for i, u := range x {
		left[n] = int32(i)
		n += 1 - bit(sx*u <= qx)&bit(sy*y[i] < qy)
	}
	return n
}

// survivors3 is survivors2 for three axes.
func survivors3[T float32 | float64](left []int32, x, y, z []T, q, sign *[MaxAxes]T) (n int) {
	sx, sy, sz, qx, qy, qz := sign[0], sign[1], sign[2], q[0], q[1], q[2]
	y, z, left = y[:len(x)], z[:len(x)], left[:len(x)]
	for i, u := range x {
		left[n] = int32(i)
		n += 1 - bit(sx*u <= qx)&bit(sy*y[i] <= qy)&bit(sz*z[i] < qz)
	}
	return n
}

// survivors moves the positions, relative to from, of the points that q does not
// dominate to the front of left, and returns their number.
func survivors[T float32 | float64](left []int32, axes [][]T, from int, q, sign *[MaxAxes]T) (n int) {
	last := len(axes) - 1
	u, w := axes[0][from:], axes[last][from:]
	for _, i := range left {
		dropped := bit(sign[0]*u[i] <= q[0]) & bit(sign[last]*w[i] < q[last])
		for k := 1; k < last; k++ {
			dropped &= bit(sign[k]*axes[k][from+int(i)] <= q[k])
		}
		left[n] = i
		n += 1 - dropped
	}
	return n
}

func bit(b bool) int {
	n := 0
	if b {
		n = 1
	}
	return n
}

func largest[T float32 | float64]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		top := float32(math.MaxFloat32)
		return T(top)
	}
	top := float64(math.MaxFloat64)
	return T(top)
}
