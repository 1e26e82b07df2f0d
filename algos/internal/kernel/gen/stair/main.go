// Command stair generates the kernel that climbs a staircase.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Fields of stairArgs, which stair.go declares, and of Step.
const (
	levels                   = 0
	count, steps, n, out, up = 64, 72, 80, 88, 96

	fanBits = 5
)

func main() {
	ConstraintExpr("amd64")
	avx512(32)
	avx512(64)
	Generate()
}

// wide chooses between the forms of an instruction for float32 and float64.
func wide[F any](bits int, single, double F) F {
	if bits == 32 {
		return single
	}
	return double
}

func avx512(bits int) {
	name := fmt.Sprintf("stair%dAVX512", bits)
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " is the loop of Stair.Climb; a is a *stairArgs.")
	size := bits / 8
	stepSize := size + 8
	a := Mem{Base: Load(Param("a"), GP64())}
	load := func(offset int) reg.GPVirtual {
		r := GP64()
		MOVQ(a.Offset(offset), r)
		return r
	}
	step, left, to, most := load(steps), load(n), load(out), load(count)

	Label("step")
	TESTQ(left, left)
	JZ(LabelRef("end"))
	y := ZMM()
	wide(bits, VBROADCASTSS, VBROADCASTSD)(Mem{Base: step}, y)

	// The highest of one entry a level: all loads are under way at once.
	best, r, level, at := XMM(), GP64(), GP64(), GP64()
	MOVLQSX(Mem{Base: step, Disp: size}, r)
	MOVQ(a.Offset(levels), at)
	wide(bits, func(m, x Op) { VMOVSS(m, x) },
		func(m, x Op) { VMOVSD(m, x) })(Mem{Base: at, Index: r, Scale: uint8(size)}, best)
	MOVQ(U32(1), level)
	Label("look")
	CMPQ(level, most)
	JGE(LabelRef("compare"))
	SARQ(U8(fanBits), r)
	DECQ(r)
	MOVQ(Mem{Base: a.Base, Index: level, Scale: 8}, at)
	wide(bits, VMAXSS, VMAXSD)(Mem{Base: at, Index: r, Scale: uint8(size)}, best, best)
	INCQ(level)
	JMP(LabelRef("look"))
	Label("compare")
	wide(bits, VUCOMISS, VUCOMISD)(y.AsX(), best)
	JCC(LabelRef("next")) // best >= y

	// A whole node a level, without a branch: where the climb could stop is as
	// good as random.
	MOVLQSX(Mem{Base: step, Disp: size}, r)
	XORQ(level, level)
	mask := GP64()
	Label("raise")
	MOVQ(Mem{Base: a.Base, Index: level, Scale: 8}, at)
	MOVL(I32(-1), mask.As32())
	SHLXL(r.As32(), mask.As32(), mask.As32()) // by the lowest five bits
	SHRQ(U8(fanBits), r)
	node := GP64()
	MOVQ(r, node)
	SHLQ(U8(uint8(fanBits+map[int]int{32: 2, 64: 3}[bits])), node)
	ADDQ(at, node)
	k := K()
	KMOVD(mask.As32(), k)
	for v := range (1 << fanBits) * size / 64 {
		if v > 0 {
			next := K()
			KSHIFTRD(U8(uint8(64/size)), k, next)
			k = next
		}
		z := ZMM()
		wide(bits, VMOVUPS, VMOVUPD)(Mem{Base: node, Disp: 64 * v}, z)
		wide(bits, VMAXPS, VMAXPD)(y, z, k, z)
		wide(bits, VMOVUPS, VMOVUPD)(z, Mem{Base: node, Disp: 64 * v})
	}
	INCQ(level)
	CMPQ(level, most)
	JLT(LabelRef("raise"))
	MOVL(Mem{Base: step, Disp: size + 4}, r.As32())
	MOVL(r.As32(), Mem{Base: to})
	ADDQ(U8(4), to)
	Label("next")
	ADDQ(U8(uint8(stepSize)), step)
	DECQ(left)
	JMP(LabelRef("step"))

	Label("end")
	SUBQ(a.Offset(out), to)
	SHRQ(U8(2), to)
	MOVQ(to, a.Offset(up))
	VZEROUPPER()
	RET()
}
