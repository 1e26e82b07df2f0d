package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// With AVX2 a block is two vectors of four lanes.

// half is a block's plane, row by row, from lane 0 or 4 on.
func (s shape) half(table reg.Register, plane, row, half int) Mem {
	return s.plane(table, plane, row).Offset(32 * half)
}

// distance2 is distance for half a block; seen gets a vector of masks.
func (s shape) distance2(table reg.Register, at []reg.VecVirtual, half int,
	seen func(plane int, where reg.VecVirtual)) reg.VecVirtual {
	out := YMM()
	for j := range s.planes {
		v := YMM()
		if j == 0 {
			v = out
		}
		VMOVUPD(s.half(table, j, s.dims, half), v)
		for d := range s.dims {
			VFMADD231PD(s.half(table, j, d, half), at[d], v)
		}
		if j == 0 {
			continue
		}
		if seen != nil {
			where := YMM()
			VCMPPD(Imm(less), v, out, where) // out < v
			seen(j, where)
		}
		VMAXPD(v, out, out)
	}
	return out
}

func broadcast2(m Mem) reg.VecVirtual {
	y := YMM()
	VBROADCASTSD(m, y)
	return y
}

func parameter(name string) Mem {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return a.Addr
}

// fill2 makes rows of memberships.
func fill2(s shape) {
	name := fmt.Sprintf("softFill%d%dAVX2", s.dims, s.planes)
	TEXT(name, NOSPLIT, fillSignature)
	Doc(name + fmt.Sprintf(" is the loop of Fill for %d planes in %d coordinates.", s.planes, s.dims))
	coords := s.coordinates()
	values, index, ends, stored := pointer("values"), pointer("index"), pointer("ends"), pointer("stored")
	Label("point")
	left := pointer("n")
	TESTQ(left, left)
	JZ(LabelRef("done"))
	at := make([]reg.VecVirtual, s.dims)
	for d, p := range coords {
		at[d] = broadcast2(Mem{Base: p})
		ADDQ(Imm(8), p)
	}
	t, b, hash, near := pointer("table"), GP64(), GP64(), GP32()
	XORQ(b, b)
	MOVQ(U32(1), hash)
	XORL(near, near)
	Label("block")
	CMPQ(b, parameter("blocks"))
	JGE(LabelRef("next"))
	var out, inside, soft, m [2]reg.VecVirtual
	for h := range out {
		out[h] = s.distance2(t, at, h, nil)
		inside[h], soft[h] = YMM(), YMM()
		zero := YMM()
		VXORPD(zero, zero, zero)
		VCMPPD(Imm(lessEqual), zero, out[h], inside[h])
		VCMPPD(Imm(less), broadcast2(parameter("cut")), out[h], soft[h])
		VANDNPD(soft[h], inside[h], soft[h])
	}
	held, softs := bits2(inside), bits2(soft)
	both := GP32()
	MOVL(held, both)
	ORL(softs, both)
	JZ(LabelRef("skip"))
	one := broadcast2(global.one)
	for h := range m {
		m[h] = YMM()
		VANDPD(one, inside[h], m[h])
	}
	TESTL(softs, softs)
	JZ(LabelRef("store"))
	for h := range m {
		exp2(out[h], soft[h], m[h])
	}
	Label("store")
	for h := range m {
		VMOVUPD(m[h], Mem{Base: values, Disp: 32 * h})
	}
	ADDQ(Imm(zmm), values)
	MOVL(b.As32(), Mem{Base: index, Index: stored, Scale: 4})
	INCQ(stored)
	ORL(softs, near)
	mix(hash, b, held)
	Label("skip")
	ADDQ(U32(s.stride()), t)
	INCQ(b)
	JMP(LabelRef("block"))
	Label("next")
	ORQ(Imm(1), hash)
	none := GP64()
	XORQ(none, none)
	TESTL(near, near)
	CMOVQNE(none, hash)
	// Pointers that a point moves on by one place count down with n.
	hashes := pointer("hashes")
	MOVQ(hash, Mem{Base: hashes})
	ADDQ(Imm(8), hashes)
	MOVQ(hashes, parameter("hashes"))
	MOVL(stored.As32(), Mem{Base: ends})
	ADDQ(Imm(4), ends)
	DECQ(parameter("n"))
	JMP(LabelRef("point"))
	Label("done")
	VZEROUPPER()
	Store(stored, ReturnIndex(0))
	RET()
}

// bits2 gathers the masks of two halves.
func bits2(mask [2]reg.VecVirtual) reg.GPVirtual {
	low, high := GP32(), GP32()
	VMOVMSKPD(mask[0], low)
	VMOVMSKPD(mask[1], high)
	SHLL(Imm(4), high)
	ORL(high, low)
	return low
}

// exp2 puts exp(out·scale) into m where soft. Exponents of 2 are added as
// integers: arguments where soft are above -70.
func exp2(out, soft, m reg.VecVirtual) {
	k, p := YMM(), YMM()
	VMULPD(broadcast2(parameter("scale")), out, out)
	VMULPD(broadcast2(global.log2e), out, k)
	VROUNDPD(Imm(0), k, k)
	VFNMADD231PD(broadcast2(global.ln2Hi), k, out)
	VFNMADD231PD(broadcast2(global.ln2Lo), k, out)
	VBROADCASTSD(global.coefficient[degree], p)
	for c := degree - 1; c >= 0; c-- {
		VFMADD213PD(broadcast2(global.coefficient[c]), out, p)
	}
	whole := XMM()
	VCVTPD2DQY(k, whole)
	VPMOVSXDQ(whole, k)
	VPSLLQ(Imm(52), k, k)
	VPADDQ(k, p, p)
	VBLENDVPD(soft, p, m, m)
}

// push2 makes gradients.
func push2(s shape) {
	name := fmt.Sprintf("softPush%d%dAVX2", s.dims, s.planes)
	TEXT(name, NOSPLIT, pushSignature)
	Doc(name + fmt.Sprintf(" is the loop of Push for %d planes in %d coordinates.", s.planes, s.dims))
	p := beginPush()
	at, sums := make([]reg.VecVirtual, s.dims), make([]reg.VecVirtual, s.dims)
	for d, name := range []string{"x", "y", "z"}[:s.dims] {
		at[d], sums[d] = YMM(), YMM()
		VBROADCASTSD(p.each(name, 8), at[d])
		VXORPD(sums[d], sums[d], sums[d])
	}
	walk("block", p.from, p.end, p.values, p.index, func(member Mem, number reg.GPVirtual) {
		t := GP64()
		IMUL3Q(U32(s.stride()), number, t)
		ADDQ(p.table, t)
		SHLQ(Imm(6), number)
		for h := range 2 {
			normal := make([]reg.VecVirtual, s.dims)
			for d := range normal {
				normal[d] = YMM()
				VMOVUPD(s.half(t, 0, d, h), normal[d])
			}
			out := s.distance2(t, at, h, func(plane int, where reg.VecVirtual) {
				for d := range normal {
					VBLENDVPD(where, s.half(t, plane, d, h), normal[d], normal[d])
				}
			})
			zero, share := YMM(), YMM()
			VXORPD(zero, zero, zero)
			VCMPPD(Imm(less), out, zero, share) // 0 < out
			VANDPD(member.Offset(32*h), share, share)
			VMULPD(Mem{Base: p.q, Index: number, Scale: 1, Disp: 32 * h}, share, share)
			for d := range normal {
				VFMADD231PD(normal[d], share, sums[d])
			}
		}
	})
	var x []reg.VecVirtual
	for _, v := range sums {
		x = append(x, sum2(v))
	}
	p.finish(s, x)
}

// sum2 adds the four lanes of y.
func sum2(y reg.VecVirtual) reg.VecVirtual {
	x, swapped := XMM(), XMM()
	VEXTRACTF128(Imm(1), y, x)
	VADDPD(y.AsX(), x, x)
	VUNPCKHPD(x, x, swapped)
	VADDSD(swapped, x, x)
	return x
}

// step2 is a round of expectation and maximisation.
func step2() {
	TEXT("softStepAVX2", NOSPLIT, stepSignature)
	Doc("softStepAVX2 is the loop of Step.")
	var total [2]reg.VecVirtual
	stepLoop(func() {
		for h := range total {
			total[h] = YMM()
			VXORPD(total[h], total[h], total[h])
		}
	}, func(q reg.GPVirtual, member Mem, number reg.GPVirtual) {
		for h := range total {
			y := YMM()
			VMOVUPD(member.Offset(32*h), y)
			VFMADD231PD(Mem{Base: q, Index: number, Scale: 1, Disp: 32 * h}, y, total[h])
		}
	}, func() reg.VecVirtual {
		VADDPD(total[1], total[0], total[0])
		return sum2(total[0])
	}, func(share reg.VecVirtual) func(sums reg.GPVirtual, member Mem, number reg.GPVirtual) {
		inverse := YMM()
		VBROADCASTSD(share, inverse)
		return func(sums reg.GPVirtual, member Mem, number reg.GPVirtual) {
			for h := range 2 {
				y, at := YMM(), Mem{Base: sums, Index: number, Scale: 1, Disp: 32 * h}
				VMOVUPD(at, y)
				VFMADD231PD(member.Offset(32*h), inverse, y)
				VMOVUPD(y, at)
			}
		}
	})
}
