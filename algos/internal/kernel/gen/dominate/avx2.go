package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dominate256 is dominate512 with 32 bytes a vector. Masks are vectors here,
// and the few survivors are written one by one.
func dominate256(bits, dims int) {
	a := begin("dominate", bits, dims, "AVX2", "dominateArgs", "is the loop of Undominated over whole vectors")
	size, lanes := bits/8, 256/bits
	axis := axisPointers(a, dims)
	flip := make([]reg.VecVirtual, dims)
	for k := range flip {
		flip[k] = YMM()
		wide(bits, VBROADCASTSS, VBROADCASTSD)(a.Offset(sign+8*k), flip[k])
	}
	lowest := YMM()
	VMOVUPS(a.Offset(low), lowest)
	left, table, out, from, number := load(a.Offset(blocks)), load(a.Offset(pivots)),
		load(a.Offset(ids)), GP64(), GP64()
	MOVQ(a.Offset(first), number)
	XORQ(from, from)

	Label("loop")
	TESTQ(left, left)
	JZ(LabelRef("end"))
	v := make([]reg.VecVirtual, dims)
	for k := range v {
		v[k] = YMM()
		VXORPS(Mem{Base: axis(k), Index: from, Scale: 1}, flip[k], v[k])
		wide(bits, VMINPS, VMINPD)(lowest, v[k], lowest)
	}
	dead, mask := YMM(), GP64()
	test := func(next string) {
		wide(bits, VMOVMSKPS, VMOVMSKPD)(dead, mask.As32())
		XORL(U8(1<<lanes-1), mask.As32())
		JZ(LabelRef(next))
	}
	VXORPS(dead, dead, dead)
	group256(bits, v, table, dead)
	test("next")
	rest, more := GP64(), GP64()
	MOVQ(a.Offset(groups), more)
	MOVQ(table, rest)
	Label("group")
	DECQ(more)
	JZ(LabelRef("write"))
	ADDQ(U32(uint32(4*dims*size)), rest)
	group256(bits, v, rest, dead)
	test("next")
	JMP(LabelRef("group"))

	Label("write")
	bit := GP64()
	BSFL(mask.As32(), bit.As32())
	ADDL(number.As32(), bit.As32())
	MOVL(bit.As32(), Mem{Base: out})
	ADDQ(U8(4), out)
	LEAL(Mem{Base: mask, Disp: -1}, bit.As32())
	ANDL(bit.As32(), mask.As32())
	JNZ(LabelRef("write"))
	Label("next")
	ADDQ(U8(uint8(lanes)), number)
	ADDQ(U8(32), from)
	DECQ(left)
	JMP(LabelRef("loop"))

	Label("end")
	SUBQ(a.Offset(ids), out)
	SHRQ(U8(2), out)
	MOVQ(out, a.Offset(found))
	VMOVUPS(lowest, a.Offset(low))
	VZEROUPPER()
	RET()
}

func group256(bits int, v []reg.VecVirtual, table, dead reg.Register) {
	for p := range 4 {
		all := YMM()
		for x := range v {
			pivot := YMM()
			wide(bits, VBROADCASTSS, VBROADCASTSD)(Mem{Base: table, Disp: (p*len(v) + x) * bits / 8}, pivot)
			if x == 0 {
				wide(bits, VCMPPS, VCMPPD)(comparison(x, len(v)), pivot, v[x], all)
				continue
			}
			wide(bits, VCMPPS, VCMPPD)(comparison(x, len(v)), pivot, v[x], pivot)
			VANDPS(pivot, all, all)
		}
		VORPS(all, dead, dead)
	}
}

// front256 is front512 with 32 bytes a vector.
func front256(bits, dims int) {
	a := begin("front", bits, dims, "AVX2", "frontArgs", "is the loop of Front.Add")
	f := frontBegin(a, bits, dims)
	Label("point")
	CMPQ(f.i, f.points)
	JGE(LabelRef("end"))
	p := make([]reg.VecVirtual, dims)
	for k := range p {
		p[k] = YMM()
		wide(bits, VBROADCASTSS, VBROADCASTSD)(Mem{Base: f.axis(k), Index: f.i, Scale: uint8(bits / 8)}, p[k])
	}
	MOVQ(f.list, f.at)
	Label("block")
	CMPQ(f.at, f.last)
	JGE(LabelRef("keep"))
	SUBQ(U8(1), f.budget)
	MOVQ(f.at, f.row)
	all := YMM()
	for x := range p {
		if x == 0 {
			wide(bits, VCMPPS, VCMPPD)(lessOrEqual, Mem{Base: f.row}, p[x], all)
			continue
		}
		one := YMM()
		ADDQ(f.stride, f.row)
		wide(bits, VCMPPS, VCMPPD)(lessOrEqual, Mem{Base: f.row}, p[x], one)
		VANDPS(one, all, all)
	}
	ADDQ(U8(32), f.at)
	mask := GP64()
	wide(bits, VMOVMSKPS, VMOVMSKPD)(all, mask.As32())
	TESTL(mask.As32(), mask.As32())
	JZ(LabelRef("block"))
	f.next()
	f.keep(bits, p)
	f.end(a)
}
