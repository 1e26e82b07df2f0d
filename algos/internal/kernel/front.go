package kernel

import (
	"math"
	"unsafe"
)

// FrontMax is the largest number of points in a Front.
const FrontMax = 1024

// Front is a list of points in which no point covers a later one: q covers p when
// q >= p on every axis. It is made for lists that are much shorter than the list of
// points compared with them. The zero value has no axes; call Reset first.
type Front[T float32 | float64] struct {
	// IDs holds for each point in the list its position in the axes of Add.
	IDs []int32

	values []T // axis after axis, FrontMax values each; the lowest value where unused
	dims   int
	args   frontArgs
}

// frontArgs holds the arguments of the generated code, which knows the offsets.
type frontArgs struct {
	axes                               [MaxAxes]unsafe.Pointer
	list                               unsafe.Pointer
	stride                             int
	kept                               unsafe.Pointer
	points, count, limit, budget, done int
}

// Reset empties the list, for points with dims axes.
func (f *Front[T]) Reset(dims int) {
	if f.IDs == nil {
		f.IDs = make([]int32, 0, FrontMax)
	}
	if cap(f.values) < dims*FrontMax {
		f.values = make([]T, dims*FrontMax)
		f.dims = 0
	}
	used := len(f.IDs)
	if f.dims != dims {
		f.values, used = f.values[:dims*FrontMax], FrontMax
	}
	f.dims = dims
	lowest := T(math.Inf(-1))
	for k := range dims {
		row := f.values[k*FrontMax:][:used]
		for i := range row {
			row[i] = lowest
		}
	}
	f.IDs = f.IDs[:0]
}

// Values returns the coordinates of the points in the list on an axis, in memory of f.
func (f *Front[T]) Values(axis int) []T { return f.values[axis*FrontMax:][:len(f.IDs)] }

// Add takes the points of axes in order, from position from on, and appends each point
// that no point in the list covers; a later point may cover an earlier one. It stops
// early when the list is full, or when points have been compared with more than budget
// vectors of the list, 64 bytes an axis. It returns the first position not taken, and
// the rest of the budget. Coordinates are finite.
func (f *Front[T]) Add(axes [][]T, from, budget int) (next, left int) {
	n := len(axes[0])
	if loop, lanes := loopFor[T](&frontLoops, f.dims); loop != nil && n > from {
		a := &f.args
		for k, v := range axes {
			a.axes[k] = unsafe.Pointer(&v[0])
		}
		perBudget := 64 / (lanes * int(unsafe.Sizeof(T(0))))
		a.list, a.stride, a.kept = unsafe.Pointer(&f.values[0]), FrontMax*int(unsafe.Sizeof(T(0))),
			unsafe.Pointer(&f.IDs[:1][0])
		a.points, a.count, a.limit, a.budget, a.done = n, len(f.IDs), FrontMax, budget*perBudget, from
		loop((*byte)(unsafe.Pointer(a)))
		clear(a.axes[:]) // the pointers would keep the points' memory alive
		f.IDs = f.IDs[:a.count]
		return a.done, a.budget / perBudget
	}
	return f.add(axes, from, budget)
}

// add is the portable form of Add.
func (f *Front[T]) add(axes [][]T, from, budget int) (next, left int) {
	var p [MaxAxes]T
	block := 64 / int(unsafe.Sizeof(T(0)))
	for i := from; i < len(axes[0]); i++ {
		if budget < 0 {
			return i, budget
		}
		for k, v := range axes {
			p[k] = v[i]
		}
		at, covered := f.cover(&p)
		if covered {
			budget -= at/block + 1
			continue
		}
		budget -= (at + block - 1) / block
		if len(f.IDs) == FrontMax {
			return i, budget
		}
		for k := range axes {
			f.values[k*FrontMax+at] = p[k]
		}
		f.IDs = append(f.IDs, int32(i))
	}
	return len(axes[0]), budget
}

// cover returns the position of the first point of the list that covers p, or the length
// of the list.
func (f *Front[T]) cover(p *[MaxAxes]T) (at int, covered bool) {
	first, second := f.Values(0), f.Values(1)
	for i, x := range first {
		if x < p[0] || second[i] < p[1] {
			continue
		}
		k := 2
		for k < f.dims && f.values[k*FrontMax+i] >= p[k] {
			k++
		}
		if k == f.dims {
			return i, true
		}
	}
	return len(first), false
}
