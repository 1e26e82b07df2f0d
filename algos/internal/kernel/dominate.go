package kernel

import (
	"math"
	"slices"
	"unsafe"
)

//go:generate go run -C gen ./dominate -out ../dominate_amd64.s -stubs ../dominate_amd64.go -pkg kernel

// MaxAxes is the largest number of axes that kernels compare.
const MaxAxes = 8

// PivotGroup is what the number of pivots is a multiple of.
const PivotGroup = 4

// pivotChunk is the number of points between two looks at the memory of ids.
const pivotChunk = 1 << 13

// Pivots is a filter: points that drop others. Its memory may be used again.
type Pivots[T float32 | float64] struct {
	// Values holds the pivots, one after the other, a coordinate for each axis,
	// and a whole number of groups: repeat one to fill up. The best pivots
	// stand in the first group: most points are compared with no other.
	Values []T
	// Low marks the axes of the points, not of the pivots, to be negated.
	Low [MaxAxes]bool

	args dominateArgs
}

// dominateArgs is what the generated code reads; it knows the offsets.
type dominateArgs struct {
	axes   [MaxAxes]unsafe.Pointer
	sign   [MaxAxes]uint64 // the sign bit where an axis is negated
	pivots unsafe.Pointer
	groups int
	blocks int // vectors of points
	ids    unsafe.Pointer
	first  int
	found  int
	low    [64]byte
}

// Undominated appends to ids the positions, plus first, of the points that no
// pivot dominates, ascending. Pivot q dominates p when q >= p on every axis and
// q > p on the last: so never an equal point.
//
// axes holds 2 to MaxAxes slices of equal lengths. A point with a NaN or with
// a coordinate that is +Inf after negation is never dropped, when pivots are
// finite. Where one is -Inf, which may drop, ok is false.
//
// Cost: some 2 operations an axis and pivot of the first group for a vector of
// 64 bytes; ids grows by chunks, so that memory follows what is left.
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
		clear(p.args.axes[:]) // else they keep the cloud's memory alive
	}
	for i := from; i < n; i++ {
		dropped, finite := p.drops(axes, i)
		if !dropped {
			ids = append(ids, int32(first+i))
		}
		ok = ok && finite
	}
	return ids, ok
}

// run filters whole vectors from where args point to.
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

// drops is what Undominated means for one point.
func (p *Pivots[T]) drops(axes [][]T, i int) (dropped, finite bool) {
	var v [MaxAxes]T
	finite = true
	for k, axis := range axes {
		v[k] = axis[i]
		if p.Low[k] {
			v[k] = -v[k]
		}
		finite = finite && !(v[k] < -largest[T]())
	}
	d := len(axes)
	for q := p.Values; len(q) >= d; q = q[d:] {
		if !(v[0] <= q[0]) {
			continue
		}
		k := 1
		for k < d-1 && v[k] <= q[k] {
			k++
		}
		if k == d-1 && v[k] < q[k] {
			return true, finite
		}
	}
	return false, finite
}

func largest[T float32 | float64]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		top := float32(math.MaxFloat32)
		return T(top)
	}
	top := float64(math.MaxFloat64)
	return T(top)
}
