// Command chords generates the kernels that test points against a table of
// chords.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors are tested between two branches.
const vectors = 4

func main() {
	ConstraintExpr("amd64")
	lanes := GLOBL("lanes", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(i))
	}
	for _, bits := range []int{32, 64} {
		avx512(bits, lanes)
	}
	avx2(lanes)
	Generate()
}

// table addresses the fields of Chords.
type table struct {
	base reg.Register
	size int // bytes of a coordinate
}

func (t table) field(k int) Mem    { return Mem{Base: t.base, Disp: k * t.size} }
func (t table) entry(c, k int) Mem { return t.field(5 + 16*c + k) }

// The fields of Chords, and the numbers of its tables.
const (
	origin = iota
	scale
	magic
	left
	right
)
const (
	upSlope = iota
	up
	lowSlope
	low
)

// frame holds the registers that both forms load first.
type frame struct {
	table                            table
	x, y, blocks, dst, room, written reg.GPVirtual
}

func begin(name string, bits, block int) frame {
	TEXT(name, NOSPLIT, fmt.Sprintf("func(c, x, y *float%d, blocks int, from int32, dst *int32, room int) (read, "+
		"written int)", bits))
	Doc(name+" writes to dst from + the positions of points that are not inside, block after",
		fmt.Sprintf("block of %d points, until fewer than 64 of the room places are left.", block))
	f := frame{table: table{Load(Param("c"), GP64()), bits / 8}}
	f.x, f.y = load("x"), load("y")
	f.blocks, f.dst, f.room = load("blocks"), load("dst"), load("room")
	f.written = GP64()
	XORQ(f.written, f.written)
	SUBQ(Imm(64), f.room)
	return f
}

func load(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// next goes on to the next block, unless there is none or no room.
func (f frame) next(block int) {
	ADDQ(U32(block*f.table.size), f.x)
	ADDQ(U32(block*f.table.size), f.y)
	DECQ(f.blocks)
	JMP(LabelRef("loop"))
}

func (f frame) guard() {
	Label("loop")
	TESTQ(f.blocks, f.blocks)
	JZ(LabelRef("done"))
	CMPQ(f.written, f.room)
	JG(LabelRef("done"))
}

func (f frame) end(block int) {
	Label("done")
	read := load("blocks")
	SUBQ(f.blocks, read)
	SHLQ(Imm(uint64(math.Log2(float64(block)))), read)
	Store(read, ReturnIndex(0))
	Store(f.written, ReturnIndex(1))
	VZEROUPPER()
	RET()
}

// avx512 holds the tables in registers: one for float32, two for float64.
func avx512(bits int, lanes Mem) {
	each := 512 / bits
	block := vectors * each
	f := begin(fmt.Sprintf("chords%dAVX512", bits), bits, block)
	o := ops(bits)
	var constant [5]reg.VecVirtual
	for k := range constant {
		constant[k] = ZMM()
		o.broadcast(f.table.field(k), constant[k])
	}
	var tables [4][2]reg.VecVirtual
	for c := range tables {
		for k := range 16 / each {
			tables[c][k] = ZMM()
			o.load(f.table.entry(c, k*each), tables[c][k])
		}
	}
	at, sixteen := ZMM(), ZMM()
	step := GP32()
	VPBROADCASTD(Load(Param("from"), GP32()), at)
	VPADDD(lanes, at, at)
	MOVL(U32(16), step)
	VPBROADCASTD(step, sixteen)

	f.guard()
	var inside [vectors]reg.OpmaskVirtual
	for v := range vectors {
		inside[v] = K()
		o.test(f, v*64, &constant, &tables, inside[v])
	}
	masks := inside[:]
	if bits == 64 { // two masks of eight lanes make one of sixteen
		KUNPCKBW(inside[0], inside[1], inside[0])
		KUNPCKBW(inside[2], inside[3], inside[2])
		masks = []reg.OpmaskVirtual{inside[0], inside[2]}
	}
	all := K()
	KANDW(masks[0], masks[1], all)
	for _, m := range masks[2:] {
		KANDW(m, all, all)
	}
	KORTESTW(all, all)
	JCC(LabelRef("some"))
	for range masks {
		VPADDD(sixteen, at, at)
	}
	f.next(block)

	Label("some")
	for _, m := range masks {
		out, count := ZMM(), GP32()
		KNOTW(m, m)
		VPCOMPRESSD_Z(at, m, out) // to memory it is many times slower on some CPUs
		VMOVDQU32(out, Mem{Base: f.dst, Index: f.written, Scale: 4})
		KMOVW(m, count)
		POPCNTL(count, count)
		ADDQ(count.As64(), f.written)
		VPADDD(sixteen, at, at)
	}
	f.next(block)
	f.end(block)
}

type operations struct {
	load, broadcast func(...Op)
	sub, mul, add   func(...Op)
	lookup          func(table [2]reg.VecVirtual, at, out reg.VecVirtual)
	compare         func(...Op)
}

func ops(bits int) operations {
	if bits == 32 {
		return operations{VMOVUPS, VBROADCASTSS, VSUBPS, VMULPS, VADDPS,
			func(t [2]reg.VecVirtual, at, out reg.VecVirtual) {
				VPERMPS(t[0], at, out)
			}, VCMPPS}
	}
	return operations{VMOVUPD, VBROADCASTSD, VSUBPD, VMULPD, VADDPD, func(t [2]reg.VecVirtual, at, out reg.VecVirtual) {
		VMOVAPD(at, out)
		VPERMI2PD(t[1], t[0], out)
	}, VCMPPD}
}

// Comparisons that are false for NaN.
const (
	less    = 0x11
	greater = 0x1e
)

// test sets in k which points of one vector are inside.
func (o operations) test(f frame, at int, constant *[5]reg.VecVirtual, tables *[4][2]reg.VecVirtual,
	k reg.OpmaskVirtual) {
	x, y, bucket := ZMM(), ZMM(), ZMM()
	o.load(Mem{Base: f.x, Disp: at}, x)
	o.load(Mem{Base: f.y, Disp: at}, y)
	o.sub(constant[origin], x, x)
	o.mul(constant[scale], x, bucket)
	o.add(constant[magic], bucket, bucket)
	line := func(slope, offset int) reg.VecVirtual {
		s, t := ZMM(), ZMM()
		o.lookup(tables[slope], bucket, s)
		o.lookup(tables[offset], bucket, t)
		o.mul(x, s, s) // rounded, not fused: as the portable form does
		o.add(t, s, s)
		return s
	}
	o.compare(Imm(greater), constant[left], x, k)
	o.compare(Imm(less), constant[right], x, k, k)
	o.compare(Imm(less), line(upSlope, up), y, k, k)
	o.compare(Imm(greater), line(lowSlope, low), y, k, k)
}

// avx2 is for float32 only. A table takes two registers of eight lanes, more
// than there are: they stay in memory, which the permutation reads as fast.
func avx2(lanes Mem) {
	const block = 16
	f := begin("chords32AVX2", 32, block)
	var constant [5]reg.VecVirtual
	for k := range constant {
		constant[k] = YMM()
		VBROADCASTSS(f.table.field(k), constant[k])
	}
	at := load32("from")
	f.guard()
	outside := GP32()
	for v := range 2 {
		inside, mask := f.testAVX2(v*32, &constant), GP32()
		VMOVMSKPS(inside, mask)
		if v == 0 {
			MOVL(mask, outside)
			continue
		}
		SHLL(Imm(8), mask)
		ORL(mask, outside)
	}
	XORL(U32(0xffff), outside)
	JZ(LabelRef("none"))
	Label("each")
	bit := GP32()
	TZCNTL(outside, bit)
	ADDL(at, bit)
	MOVL(bit, Mem{Base: f.dst, Index: f.written, Scale: 4})
	INCQ(f.written)
	BLSRL(outside, outside)
	JNZ(LabelRef("each"))
	Label("none")
	ADDL(Imm(block), at)
	f.next(block)
	f.end(block)
}

func load32(name string) reg.GPVirtual { return Load(Param(name), GP32()).(reg.GPVirtual) }

func (f frame) testAVX2(at int, constant *[5]reg.VecVirtual) reg.VecVirtual {
	x, y, bucket, upper := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: f.x, Disp: at}, x)
	VMOVUPS(Mem{Base: f.y, Disp: at}, y)
	VSUBPS(constant[origin], x, x)
	VMULPS(constant[scale], x, bucket)
	VADDPS(constant[magic], bucket, bucket)
	VPSLLD(Imm(28), bucket, upper) // bit 3 chooses the half of the table
	lookup := func(c int) reg.VecVirtual {
		a, b := YMM(), YMM()
		VPERMPS(f.table.entry(c, 0), bucket, a)
		VPERMPS(f.table.entry(c, 8), bucket, b)
		VBLENDVPS(upper, b, a, a)
		return a
	}
	line := func(slope, offset int) reg.VecVirtual {
		s := lookup(slope)
		VMULPS(x, s, s)
		VADDPS(lookup(offset), s, s)
		return s
	}
	inside, k := YMM(), YMM()
	VCMPPS(Imm(greater), constant[left], x, inside)
	VCMPPS(Imm(less), constant[right], x, k)
	VANDPS(k, inside, inside)
	VCMPPS(Imm(less), line(upSlope, up), y, k)
	VANDPS(k, inside, inside)
	VCMPPS(Imm(greater), line(lowSlope, low), y, k)
	VANDPS(k, inside, inside)
	return inside
}
