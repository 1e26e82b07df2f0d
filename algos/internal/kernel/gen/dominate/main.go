// Command dominate generates the kernels that compare points on all axes at
// once: the filter by pivots and the list of a front.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of dominateArgs and frontArgs, which dominate.go and front.go declare.
const (
	axes = 0
	sign = 64

	pivots, groups, blocks, ids, first, found, low = 128, 136, 144, 152, 160, 168, 176

	list, stride, kept, points, count, limit, budget, done = 64, 72, 80, 88, 96, 104, 112, 120
)

// Ordered comparisons that raise no exception.
const lessThan, lessOrEqual = U8(0x11), U8(0x12)

func main() {
	ConstraintExpr("amd64")
	for _, bits := range []int{32, 64} {
		for dims := 2; dims <= 8; dims++ {
			dominate512(bits, dims)
			front512(bits, dims)
		}
		for dims := 2; dims <= 3; dims++ {
			dominate256(bits, dims)
			front256(bits, dims)
		}
	}
	Generate()
}

// comparison is strict on the last axis only.
func comparison(axis, dims int) U8 {
	if axis == dims-1 {
		return lessThan
	}
	return lessOrEqual
}

func begin(name string, bits, dims int, level, args, does string) Mem {
	full := fmt.Sprintf("%s%dx%d%s", name, bits, dims, level)
	TEXT(full, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s %s, %d axes of float%d; a is a *%s.", full, does, dims, bits, args))
	return Mem{Base: Load(Param("a"), GP64())}
}

func load(m Mem) reg.GPVirtual {
	r := GP64()
	MOVQ(m, r)
	return r
}

// axisPointers returns a function that gives the pointer to an axis: kept in a
// register where there are enough of them.
func axisPointers(a Mem, dims int) func(int) reg.GPVirtual {
	if dims > 4 {
		return func(k int) reg.GPVirtual { return load(a.Offset(axes + 8*k)) }
	}
	var kept []reg.GPVirtual
	for k := range dims {
		kept = append(kept, load(a.Offset(axes+8*k)))
	}
	return func(k int) reg.GPVirtual { return kept[k] }
}
