// Command highest generates the kernels that look for the points farthest out
// in given directions.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	tile    = 64 // points, as in package kernel
	greater = 0x1e
)

func main() {
	ConstraintExpr("amd64")
	highest("AVX512", 16, 4)
	highest("AVX2", 8, 2)
	Generate()
}

// highest keeps count vectors of lanes points in registers while all directions
// pass by.
func highest(unit string, lanes, count int) {
	TEXT("highest"+unit, NOSPLIT, "func(directions *float32, n int, x, y, z *float32, tiles int, best *float32, at "+
		"*int32)")
	Doc("highest" + unit + " is highest for n directions and some tiles of 64 points.")
	load := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	directions, n, tiles, best, at := load("directions"), load("n"), load("tiles"), load("best"), load("at")
	axes := [3]reg.GPVirtual{load("x"), load("y"), load("z")}
	vector := func() reg.VecVirtual {
		if lanes == 16 {
			return ZMM()
		}
		return YMM()
	}
	number, part, parts := GP64(), GP64(), uint64(tile/lanes/count)
	XORQ(number, number)
	MOVQ(U32(uint32(parts)), part)
	Label("points")
	TESTQ(tiles, tiles)
	JZ(LabelRef("done"))
	var v [3][]reg.VecVirtual
	for k, p := range axes {
		for i := range count {
			r := vector()
			VMOVUPS(Mem{Base: p, Disp: 4 * lanes * i}, r)
			v[k] = append(v[k], r)
		}
	}
	d, k := GP64(), GP64()
	MOVQ(directions, d)
	XORQ(k, k)
	Label("directions")
	var u [3]reg.VecVirtual
	for axis := range u {
		u[axis] = vector()
		VBROADCASTSS(Mem{Base: d, Disp: 4 * axis}, u[axis])
	}
	var m reg.VecVirtual
	for i := range count {
		// Products are rounded, not fused: as the portable form does.
		sum, product := vector(), vector()
		VMULPS(v[0][i], u[0], sum)
		VMULPS(v[1][i], u[1], product)
		VADDPS(product, sum, sum)
		VMULPS(v[2][i], u[2], product)
		VADDPS(product, sum, sum)
		if i == 0 {
			m = sum
		} else {
			VMAXPS(sum, m, m)
		}
	}
	rival := vector()
	VBROADCASTSS(Mem{Base: best, Index: k, Scale: 4}, rival)
	if lanes == 16 {
		higher := K()
		VCMPPS(Imm(greater), rival, m, higher)
		KORTESTW(higher, higher)
	} else {
		mask, higher := YMM(), GP32()
		VCMPPS(Imm(greater), rival, m, mask)
		VMOVMSKPS(mask, higher)
		TESTL(higher, higher)
	}
	JZ(LabelRef("next"))
	store(m, Mem{Base: best, Index: k, Scale: 4}, lanes)
	MOVL(number.As32(), Mem{Base: at, Index: k, Scale: 4})
	Label("next")
	ADDQ(Imm(12), d)
	INCQ(k)
	CMPQ(k, n)
	JNE(LabelRef("directions"))
	for _, p := range axes {
		ADDQ(U32(uint32(4*lanes*count)), p)
	}
	DECQ(part)
	JNZ(LabelRef("points"))
	MOVQ(U32(uint32(parts)), part)
	INCQ(number)
	DECQ(tiles)
	JMP(LabelRef("points"))
	Label("done")
	VZEROUPPER()
	RET()
}

// store writes the largest value of m.
func store(m reg.VecVirtual, to Mem, lanes int) {
	y, x, other := YMM(), XMM(), XMM()
	if lanes == 16 {
		VEXTRACTF64X4(Imm(1), m, y)
		VMAXPS(m.AsY(), y, y)
	} else {
		VMOVAPS(m, y)
	}
	VEXTRACTF128(Imm(1), y, x)
	VMAXPS(y.AsX(), x, x)
	for _, order := range []uint64{0x4e, 0xb1} {
		VPERMILPS(Imm(order), x, other)
		VMAXPS(other, x, x)
	}
	VMOVSS(x, to)
}
