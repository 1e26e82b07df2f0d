package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wide chooses between the forms of an instruction for float32 and float64.
func wide[F any](bits int, single, double F) F {
	if bits == 32 {
		return single
	}
	return double
}

// dominate512 writes the numbers of the points that no pivot dominates. The first group
// of four pivots is compared with all vectors; the other groups with the vectors that
// still have a point alive.
func dominate512(bits, dims int) {
	a := begin("dominate", bits, dims, "AVX512", "dominateArgs", "is the loop of Undominated over whole vectors")
	size := bits / 8
	axis := axisPointers(a, dims)
	var flip []reg.VecVirtual
	for k := range dims {
		flip = append(flip, ZMM())
		wide(bits, VPBROADCASTD, VPBROADCASTQ)(a.Offset(sign+8*k), flip[k])
	}
	lowest := ZMM()
	wide(bits, VMOVUPS, VMOVUPD)(a.Offset(low), lowest)
	number, step := vector(bits), vector(bits)
	numbers(a, bits, number, step)
	left, table, out, from := load(a.Offset(blocks)), load(a.Offset(pivots)), load(a.Offset(ids)), GP64()
	XORQ(from, from)

	Label("loop")
	TESTQ(left, left)
	JZ(LabelRef("end"))
	var v []reg.VecVirtual
	for k := range dims {
		v = append(v, ZMM())
		wide(bits, VPXORD, VPXORQ)(Mem{Base: axis(k), Index: from, Scale: 1}, flip[k], v[k])
		wide(bits, VMINPS, VMINPD)(lowest, v[k], lowest) // a NaN leaves it as it is
	}
	dead := K()
	group(bits, dims, v, table, dead, fresh)
	kortest(bits, dead)
	JCS(LabelRef("next"))
	rest, more := GP64(), GP64()
	MOVQ(a.Offset(groups), more)
	MOVQ(table, rest)
	Label("group")
	DECQ(more)
	JZ(LabelRef("write"))
	ADDQ(U32(uint32(4*dims*size)), rest)
	group(bits, dims, v, rest, dead, filled)
	kortest(bits, dead)
	JCC(LabelRef("group"))
	JMP(LabelRef("next"))

	Label("write")
	alive, packed, n := K(), vector(bits), GP64()
	wide(bits, KNOTW, KNOTB)(dead, alive)
	VPCOMPRESSD_Z(number, alive, packed)
	VMOVDQU32(packed, Mem{Base: out})
	wide(bits, func(k, r Op) { KMOVW(k, r) }, func(k, r Op) { KMOVB(k, r) })(alive, n.As32())
	POPCNTL(n.As32(), n.As32())
	LEAQ(Mem{Base: out, Index: n, Scale: 4}, out)
	Label("next")
	VPADDD(step, number, number)
	ADDQ(U8(64), from)
	DECQ(left)
	JMP(LabelRef("loop"))

	Label("end")
	SUBQ(a.Offset(ids), out)
	SHRQ(U8(2), out)
	MOVQ(out, a.Offset(found))
	wide(bits, VMOVUPS, VMOVUPD)(lowest, a.Offset(low))
	RET()
}

// vector returns a register for as many int32 as a full one has values.
func vector(bits int) reg.VecVirtual {
	if bits == 32 {
		return ZMM()
	}
	return YMM()
}

// numbers sets number to first, first+1, … and step to their count.
func numbers(a Mem, bits int, number, step reg.VecVirtual) {
	if ramp.Base == nil {
		ramp = GLOBL("ramp", RODATA|NOPTR)
		for k := range 16 {
			DATA(4*k, U32(uint32(k)))
		}
	}
	VPBROADCASTD(a.Offset(first), number)
	VPADDD(ramp, number, number)
	t := GP32()
	MOVL(U32(uint32(512/bits)), t)
	VPBROADCASTD(t, step)
}

// ramp is 0, 1, … 15 as int32.
var ramp Mem

func kortest(bits int, k reg.Register) { wide(bits, KORTESTW, KORTESTB)(k, k) }

// state says whether a mask holds lanes already.
type state int

const (
	fresh state = iota
	filled
)

// group adds to dead the lanes that one of four pivots dominates. With state fresh, dead
// holds nothing before.
func group(bits, dims int, v []reg.VecVirtual, table reg.Register, dead reg.Register, before state) {
	for p := range 4 {
		k := K()
		for x := range dims {
			at := Mem{Base: table, Disp: (p*dims + x) * bits / 8}
			if x == 0 {
				wide(bits, VCMPPS_BCST, VCMPPD_BCST)(comparison(x, dims), at, v[x], k)
			} else {
				wide(bits, VCMPPS_BCST, VCMPPD_BCST)(comparison(x, dims), at, v[x], k, k)
			}
		}
		if p == 0 && before == fresh {
			KMOVW(k, dead)
		} else {
			KORW(k, dead, dead)
		}
	}
}

// front512 keeps the points that no kept one covers.
func front512(bits, dims int) {
	a := begin("front", bits, dims, "AVX512", "frontArgs", "is the loop of Front.Add")
	f := frontBegin(a, bits, dims)
	Label("point")
	CMPQ(f.i, f.points)
	JGE(LabelRef("end"))
	var p []reg.VecVirtual
	for k := range dims {
		p = append(p, ZMM())
		wide(bits, VBROADCASTSS, VBROADCASTSD)(Mem{Base: f.axis(k), Index: f.i, Scale: uint8(bits / 8)}, p[k])
	}
	MOVQ(f.list, f.at)
	Label("block")
	CMPQ(f.at, f.last)
	JGE(LabelRef("keep"))
	k := K()
	SUBQ(U8(1), f.budget)
	MOVQ(f.at, f.row)
	for x := range dims {
		if x == 0 {
			wide(bits, VCMPPS, VCMPPD)(lessOrEqual, Mem{Base: f.row}, p[x], k)
		} else {
			ADDQ(f.stride, f.row)
			wide(bits, VCMPPS, VCMPPD)(lessOrEqual, Mem{Base: f.row}, p[x], k, k)
		}
	}
	ADDQ(U8(64), f.at)
	wide(bits, KORTESTW, KORTESTB)(k, k)
	JZ(LabelRef("block"))
	f.next()
	f.keep(bits, p)
	f.end(a)
}
