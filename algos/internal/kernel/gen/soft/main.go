// Command soft generates the kernels of soft memberships: how much points belong
// to ranges, the sums over them, and their gradient.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Comparisons that are false for NaN.
const (
	less      = 0x11
	lessEqual = 0x12
)

// hashFactor equals hashFactor of package kernel.
const hashFactor = 0x9e3779b97f4a7c15

// zmm is the bytes of a vector.
const zmm = 64

func main() {
	ConstraintExpr("amd64")
	constants()
	for _, k := range []shape{{2, 2}, {2, 3}, {3, 3}, {3, 4}} {
		fill(k)
		push(k)
		fill2(k)
		push2(k)
	}
	step()
	step2()
	Generate()
}

const (
	fillSignature = "func(x, y, z, table *float64, n, blocks int, values *float64, index, ends *int32, hashes " +
		"*uint64, stored int, scale, cut float64) int"
	stepSignature = "func(values *float64, index, bounds *int32, weights *float64, n int, q, sums, a *float64, " +
		"floor float64)"
	pushSignature = "func(x, y, z, table *float64, n int, values *float64, index, bounds, rows *int32, q, a, gx, " +
		"gy, gz *float64)"
)

// shape is a kind of ranges: coordinates and planes of each.
type shape struct{ dims, planes int }

// plane is where the numbers of a plane stand in a block of the table.
func (s shape) plane(table reg.Register, plane, row int) Mem {
	return Mem{Base: table, Disp: (plane*(s.dims+1) + row) * zmm}
}

func (s shape) stride() uint32 { return uint32(s.planes * (s.dims + 1) * zmm) }

// degree of the polynomial for exp, Taylor's: on half a binary logarithm of 2
// to either side the rest is below 1e-17.
const degree = 13

var global struct {
	one, log2e, ln2Hi, ln2Lo Mem
	coefficient              [degree + 1]Mem
}

func constants() {
	g := &global
	bits := func(name string, v float64) Mem { return ConstData("soft"+name, U64(math.Float64bits(v))) }
	g.one = bits("One", 1)
	g.log2e = bits("Log2e", math.Log2E)
	// Whole multiples of the high part, below 2^11 of them, are exact.
	g.ln2Hi, g.ln2Lo = bits("Ln2Hi", 0x1.62e42feep-1), bits("Ln2Lo", 0x1.a39ef35793c76p-33)
	f := 1.0
	for k := range g.coefficient {
		f *= float64(max(k, 1))
		g.coefficient[k] = bits(fmt.Sprintf("C%d", k), 1/f)
	}
}

func broadcast(m Mem) reg.VecVirtual {
	z := ZMM()
	VBROADCASTSD(m, z)
	return z
}

func pointer(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// coordinates loads pointers to coordinates.
func (s shape) coordinates() (p []reg.GPVirtual) {
	for _, name := range []string{"x", "y", "z"}[:s.dims] {
		p = append(p, pointer(name))
	}
	return p
}

// distance computes the largest plane value of the ranges of a block; after
// each plane but the first, seen is told where it is the largest so far.
func (s shape) distance(table reg.Register, at []reg.VecVirtual,
	seen func(plane int, where reg.Register)) reg.VecVirtual {
	out := ZMM()
	for j := range s.planes {
		v := ZMM()
		if j == 0 {
			v = out
		}
		VMOVUPD(s.plane(table, j, s.dims), v)
		for d := range s.dims {
			VFMADD231PD(s.plane(table, j, d), at[d], v)
		}
		if j == 0 {
			continue
		}
		if seen != nil {
			where := K()
			VCMPPD(Imm(less), v, out, where) // out < v
			seen(j, where)
		}
		VMAXPD(v, out, out)
	}
	return out
}

// fill makes rows of memberships.
func fill(s shape) {
	name := fmt.Sprintf("softFill%d%dAVX512", s.dims, s.planes)
	TEXT(name, NOSPLIT, fillSignature)
	Doc(name + fmt.Sprintf(" is the loop of Fill for %d planes in %d coordinates.", s.planes, s.dims))
	coords := s.coordinates()
	n, blocks := pointer("n"), pointer("blocks")
	values, index, ends, hashes, stored := pointer("values"), pointer("index"), pointer("ends"),
		pointer("hashes"), pointer("stored")
	scale, cut, zero := ZMM(), ZMM(), ZMM()
	VBROADCASTSD(parameter("scale"), scale)
	VBROADCASTSD(parameter("cut"), cut)
	VPXORQ(zero, zero, zero)
	one := broadcast(global.one)
	log2e, ln2Hi, ln2Lo := broadcast(global.log2e), broadcast(global.ln2Hi), broadcast(global.ln2Lo)

	Label("point")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	at := make([]reg.VecVirtual, s.dims)
	for d, p := range coords {
		at[d] = ZMM()
		VBROADCASTSD(Mem{Base: p}, at[d])
		ADDQ(Imm(8), p)
	}
	t, b, hash := pointer("table"), GP64(), GP64()
	XORQ(b, b)
	MOVQ(U32(1), hash)
	near := K()
	KXORW(near, near, near)
	Label("block")
	CMPQ(b, blocks)
	JGE(LabelRef("next"))
	out := s.distance(t, at, nil)
	inside, soft := K(), K()
	VCMPPD(Imm(lessEqual), zero, out, inside)
	VCMPPD(Imm(less), cut, out, soft)
	KANDNW(soft, inside, soft)
	KORTESTW(inside, soft)
	JZ(LabelRef("skip"))
	m := ZMM()
	VMOVAPD_Z(one, inside, m)
	KTESTB(soft, soft)
	JZ(LabelRef("store"))
	VMULPD(scale, out, out)
	k, p := ZMM(), ZMM()
	VMULPD(log2e, out, k)
	VRNDSCALEPD(Imm(0), k, k)
	VFNMADD231PD(ln2Hi, k, out)
	VFNMADD231PD(ln2Lo, k, out)
	VBROADCASTSD(global.coefficient[degree], p)
	for c := degree - 1; c >= 0; c-- {
		VFMADD213PD_BCST(global.coefficient[c], out, p)
	}
	VSCALEFPD(k, p, soft, m)
	Label("store")
	VMOVUPD(m, Mem{Base: values})
	ADDQ(Imm(zmm), values)
	MOVL(b.As32(), Mem{Base: index, Index: stored, Scale: 4})
	INCQ(stored)
	KORW(soft, near, near)
	held := GP32()
	KMOVB(inside, held)
	mix(hash, b, held)
	Label("skip")
	ADDQ(U32(s.stride()), t)
	INCQ(b)
	JMP(LabelRef("block"))
	Label("next")
	ORQ(Imm(1), hash)
	none := GP64()
	XORQ(none, none)
	KTESTB(near, near)
	CMOVQNE(none, hash)
	MOVQ(hash, Mem{Base: hashes})
	ADDQ(Imm(8), hashes)
	MOVL(stored.As32(), Mem{Base: ends})
	ADDQ(Imm(4), ends)
	DECQ(n)
	JMP(LabelRef("point"))
	Label("done")
	VZEROUPPER()
	Store(stored, ReturnIndex(0))
	RET()
}

// mix adds a block and which of its ranges hold the point to a row's hash.
func mix(hash, block, held reg.GPVirtual) {
	mixed := GP64()
	MOVQ(block, mixed)
	SHLQ(Imm(8), mixed)
	ADDQ(mixed, hash)
	ADDQ(held.As64(), hash)
	MOVQ(U64(hashFactor), mixed)
	IMULQ(mixed, hash)
}

// sum adds the lanes of z. The lowest lane of the result holds the sum.
func sum(z reg.VecVirtual) reg.VecVirtual {
	y, x := YMM(), XMM()
	VEXTRACTF64X4(Imm(1), z, y)
	VADDPD(z.AsY(), y, y)
	VEXTRACTF128(Imm(1), y, x)
	VADDPD(y.AsX(), x, x)
	swapped := XMM()
	VUNPCKHPD(x, x, swapped)
	VADDSD(swapped, x, x)
	return x
}

// walk goes over the stored blocks of a point: body gets the place of the
// membership and the byte offset of the range's weight.
func walk(label string, from, end, values, index reg.GPVirtual, body func(member Mem, number reg.GPVirtual)) {
	e, v, number := GP64(), GP64(), GP64()
	MOVQ(from, e)
	MOVQ(from, v)
	SHLQ(Imm(6), v)
	ADDQ(values, v)
	JMP(LabelRef(label + "Test"))
	Label(label)
	MOVLQSX(Mem{Base: index, Index: e, Scale: 4}, number)
	body(Mem{Base: v}, number)
	ADDQ(Imm(zmm), v)
	INCQ(e)
	Label(label + "Test")
	CMPQ(e, end)
	JL(LabelRef(label))
}

// step is a round of expectation and maximisation.
func step() {
	TEXT("softStepAVX512", NOSPLIT, stepSignature)
	Doc("softStepAVX512 is the loop of Step.")
	var total reg.VecVirtual
	stepLoop(func() {
		total = ZMM()
		VPXORQ(total, total, total)
	}, func(q reg.GPVirtual, member Mem, number reg.GPVirtual) {
		z := ZMM()
		VMOVUPD(member, z)
		VFMADD231PD(Mem{Base: q, Index: number, Scale: 1}, z, total)
	}, func() reg.VecVirtual {
		return sum(total)
	}, func(share reg.VecVirtual) func(sums reg.GPVirtual, member Mem, number reg.GPVirtual) {
		inverse := ZMM()
		VBROADCASTSD(share, inverse)
		return func(sums reg.GPVirtual, member Mem, number reg.GPVirtual) {
			z, at := ZMM(), Mem{Base: sums, Index: number, Scale: 1}
			VMOVUPD(at, z)
			VFMADD231PD(member, inverse, z)
			VMOVUPD(z, at)
		}
	})
}

// stepLoop is the loop over rows: begin clears a sum, weigh adds a block to it, end
// returns it, and add, given the row's share, adds blocks to the ranges' sums.
func stepLoop(begin func(), weigh func(q reg.GPVirtual, member Mem, number reg.GPVirtual), end func() reg.VecVirtual,
	add func(share reg.VecVirtual) func(sums reg.GPVirtual, member Mem, number reg.GPVirtual)) {
	values, index, bounds, n := pointer("values"), pointer("index"), pointer("bounds"), pointer("n")
	weights := pointer("weights")
	q, sums, a := pointer("q"), pointer("sums"), pointer("a")
	floor := Load(Param("floor"), XMM()).(reg.VecVirtual)
	from, to := GP64(), GP64()
	XORQ(from, from)
	Label("point")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	MOVLQSX(Mem{Base: bounds, Disp: 4}, to)
	ADDQ(Imm(4), bounds)
	begin()
	walk("weigh", from, to, values, index, func(member Mem, number reg.GPVirtual) {
		SHLQ(Imm(6), number)
		weigh(q, member, number)
	})
	x := end()
	VADDSD(floor, x, x)
	VMOVSD(x, Mem{Base: a})
	ADDQ(Imm(8), a)
	weight := XMM()
	VMOVSD(Mem{Base: weights}, weight)
	ADDQ(Imm(8), weights)
	VDIVSD(x, weight, x)
	body := add(x)
	walk("add", from, to, values, index, func(member Mem, number reg.GPVirtual) {
		SHLQ(Imm(6), number)
		body(sums, member, number)
	})
	MOVQ(to, from)
	DECQ(n)
	JMP(LabelRef("point"))
	Label("done")
	VZEROUPPER()
	RET()
}

// pushLoop holds what the loops of Push keep in registers: only what a block needs.
type pushLoop struct {
	table, values, index, q, i, row, from, end reg.GPVirtual
	one                                        reg.VecVirtual
}

// each is the current point's place of a slice.
func (p *pushLoop) each(name string, scale uint8) Mem {
	return Mem{Base: pointer(name), Index: p.i, Scale: scale}
}

// beginPush begins the loop over points.
func beginPush() *pushLoop {
	p := &pushLoop{pointer("table"), pointer("values"), pointer("index"), pointer("q"), GP64(), GP64(),
		GP64(), GP64(), XMM()}
	VMOVSD(global.one, p.one)
	XORQ(p.i, p.i)
	Label("point")
	CMPQ(p.i, parameter("n"))
	JGE(LabelRef("done"))
	MOVLQSX(p.each("rows", 4), p.row)
	bounds := pointer("bounds")
	MOVLQSX(Mem{Base: bounds, Index: p.row, Scale: 4}, p.from)
	MOVLQSX(Mem{Base: bounds, Index: p.row, Scale: 4, Disp: 4}, p.end)
	return p
}

// finish stores a point's sums, divided by its row's value, and ends the loop.
func (p *pushLoop) finish(s shape, sums []reg.VecVirtual) {
	inverse := XMM()
	VDIVSD(Mem{Base: pointer("a"), Index: p.row, Scale: 8}, p.one, inverse)
	for d, name := range []string{"gx", "gy", "gz"}[:s.dims] {
		VMULSD(inverse, sums[d], sums[d])
		VMOVSD(sums[d], p.each(name, 8))
	}
	INCQ(p.i)
	JMP(LabelRef("point"))
	Label("done")
	VZEROUPPER()
	RET()
}

// push makes gradients.
func push(s shape) {
	name := fmt.Sprintf("softPush%d%dAVX512", s.dims, s.planes)
	TEXT(name, NOSPLIT, pushSignature)
	Doc(name + fmt.Sprintf(" is the loop of Push for %d planes in %d coordinates.", s.planes, s.dims))
	zero := ZMM()
	VPXORQ(zero, zero, zero)
	p := beginPush()
	at, sums := make([]reg.VecVirtual, s.dims), make([]reg.VecVirtual, s.dims)
	for d, name := range []string{"x", "y", "z"}[:s.dims] {
		at[d], sums[d] = ZMM(), ZMM()
		VBROADCASTSD(p.each(name, 8), at[d])
		VPXORQ(sums[d], sums[d], sums[d])
	}
	walk("block", p.from, p.end, p.values, p.index, func(member Mem, number reg.GPVirtual) {
		t := GP64()
		IMUL3Q(U32(s.stride()), number, t)
		ADDQ(p.table, t)
		normal := make([]reg.VecVirtual, s.dims)
		for d := range normal {
			normal[d] = ZMM()
			VMOVUPD(s.plane(t, 0, d), normal[d])
		}
		out := s.distance(t, at, func(plane int, where reg.Register) {
			for d := range normal {
				VMOVUPD(s.plane(t, plane, d), where, normal[d])
			}
		})
		outside := K()
		VCMPPD(Imm(less), out, zero, outside) // 0 < out
		share := ZMM()
		SHLQ(Imm(6), number)
		VMOVUPD_Z(member, outside, share)
		VMULPD(Mem{Base: p.q, Index: number, Scale: 1}, share, share)
		for d := range normal {
			VFMADD231PD(normal[d], share, sums[d])
		}
	})
	var x []reg.VecVirtual
	for _, v := range sums {
		x = append(x, sum(v))
	}
	p.finish(s, x)
}
