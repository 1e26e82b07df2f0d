// Command columns generates the kernels that go down the columns of matrices,
// and those of AdamW and Keep.
//
// A kernel takes strips of columns, four vectors wide, then one vector with a
// mask, and keeps what belongs to the columns in registers for all rows.
package main

import (
	"fmt"

	"entropipe/models/mat/gen/unit"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, u := range unit.Units {
		generate(u, "affine", "Affine", affine)
		generate(u, "moments", "Moments", moments)
		generate(u, "reluBackward", "ReLUBackward", reluBackward)
		generate(u, "normBackward", "NormBackward", normBackward)
		generate(u, "columnMax", "ColumnMax without rows", columnMax)
		generate(u, "columnMaxAt", "ColumnMax", columnMaxAt)
		adamW(u)
		keep(u)
	}
	Generate()
}

// Words of stripArgs: the rows, the columns, then matrices, each followed by
// its stride in bytes, then the columns' vectors, then what else there is.
const (
	matrices = 2
	vectors  = 8
	extra    = 12
)

// strip is a strip of columns in the making.
type strip struct {
	unit.Unit
	wide   int // vectors
	mask   unit.Mask
	args   Mem
	from   reg.GPVirtual // bytes to its left
	rows   reg.GPVirtual
	moving [][2]reg.GPVirtual // pointers into matrices, strides
}

// generate writes a function that takes strips from left to right.
func generate(u unit.Unit, name, does string, f func(s *strip)) {
	name += u.Level()
	TEXT(name, NOSPLIT, "func(args *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is %s; args is a *stripArgs.", name, does))
	args := Mem{Base: Load(Param("args"), GP64())}
	left, from := GP64(), GP64()
	MOVQ(args.Offset(8), left)
	XORQ(from, from)
	for _, wide := range []int{4, 1} {
		s := &strip{Unit: u, wide: wide, args: args, from: from}
		columns := wide * u.Lanes()
		Label(s.label("strip"))
		if wide == 4 {
			CMPQ(left, U8(uint8(columns)))
			JLT(LabelRef(s.label("below")))
		} else {
			TESTQ(left, left)
			JLE(LabelRef(s.label("below")))
			few, all := GP64(), GP64()
			MOVQ(left, few)
			MOVQ(U32(uint32(columns)), all)
			CMPQ(few, all)
			CMOVQGT(all, few)
			s.mask = u.First(few)
		}
		s.rows = s.word(0)
		f(s)
		SUBQ(U8(uint8(columns)), left)
		ADDQ(U32(uint32(wide*u.Bytes())), from)
		JMP(LabelRef(s.label("strip")))
		Label(s.label("below"))
	}
	VZEROUPPER()
	RET()
}

// pointer is a word that is the address of the first column.
func (s *strip) pointer(i int) reg.GPVirtual {
	r := s.word(i)
	ADDQ(s.from, r)
	return r
}

func (s *strip) label(name string) string { return fmt.Sprintf("%s%d", name, s.wide) }

func (s *strip) word(i int) reg.GPVirtual {
	r := GP64()
	MOVQ(s.args.Offset(8*i), r)
	return r
}

// matrix returns the pointer of the i-th matrix, counted from 0.
func (s *strip) matrix(i int) reg.GPVirtual {
	p, stride := s.pointer(matrices+2*i), s.word(matrices+1+2*i)
	s.moving = append(s.moving, [2]reg.GPVirtual{p, stride})
	return p
}

func (s *strip) at(p reg.Register, v int) Mem { return Mem{Base: p, Disp: v * s.Bytes()} }

func (s *strip) read(p reg.Register, v int) reg.VecVirtual {
	x := s.Vector()
	s.Load(s.at(p, v), s.mask, x)
	return x
}

func (s *strip) write(x reg.VecVirtual, p reg.Register, v int) { s.Store(x, s.mask, s.at(p, v)) }

// column reads the i-th of the columns' vectors.
func (s *strip) column(i int) []reg.VecVirtual {
	p := s.pointer(vectors + i)
	x := make([]reg.VecVirtual, s.wide)
	for v := range x {
		x[v] = s.read(p, v)
	}
	return x
}

func (s *strip) keep(i int, x []reg.VecVirtual) {
	p := s.pointer(vectors + i)
	for v := range x {
		s.write(x[v], p, v)
	}
}

// eachRow runs f for the vectors of every row; there is one.
func (s *strip) eachRow(f func(v int), after ...func()) {
	Label(s.label("row"))
	// Rows lie too far apart for the processor to see them coming.
	for _, m := range s.moving {
		for line := 0; line < s.wide*s.Bytes(); line += 64 {
			PREFETCHT0(Mem{Base: m[0], Index: m[1], Scale: 8, Disp: line})
		}
	}
	for v := range s.wide {
		f(v)
	}
	for _, m := range s.moving {
		ADDQ(m[1], m[0])
	}
	for _, a := range after {
		a()
	}
	DECQ(s.rows)
	JNZ(LabelRef(s.label("row")))
}

func affine(s *strip) {
	dst, x := s.matrix(0), s.matrix(1)
	scale, shift := s.column(0), s.column(1)
	floor := s.Broadcast(s.args.Offset(8 * extra))
	s.eachRow(func(v int) {
		y := s.read(x, v)
		VFMADD213PS(shift[v], scale[v], y)
		VMAXPS(floor, y, y)
		s.write(y, dst, v)
	})
}

func moments(s *strip) {
	x := s.matrix(0)
	sum, square, center := s.column(0), s.column(1), s.column(2)
	s.eachRow(func(v int) {
		y := s.read(x, v)
		VSUBPS(center[v], y, y)
		VADDPS(y, sum[v], sum[v])
		VFMADD231PS(y, y, square[v])
	})
	s.keep(0, sum)
	s.keep(1, square)
}

func reluBackward(s *strip) {
	d, h, z := s.matrix(0), s.matrix(1), s.matrix(2)
	sum, dot := s.column(0), s.column(1)
	centers := s.pointer(vectors + 2) // in memory: AVX2 has no registers left
	s.eachRow(func(v int) {
		g, y := s.read(d, v), s.read(h, v)
		zero := s.Zero()
		if s.Unit == 512 {
			k := K()
			VCMPPS(U8(1), y, zero, k) // 0 < y
			VMOVAPS_Z(g, k, g)
		} else {
			VCMPPS(U8(1), y, zero, y)
			VANDPS(y, g, g)
		}
		s.write(g, d, v)
		VADDPS(g, sum[v], sum[v])
		x := s.read(z, v)
		VSUBPS(s.read(centers, v), x, x)
		VFMADD231PS(x, g, dot[v])
	})
	s.keep(0, sum)
	s.keep(1, dot)
}

func normBackward(s *strip) {
	d, z := s.matrix(0), s.matrix(1)
	var columns [4]reg.GPVirtual // center, a, b, c: in memory, as above
	for i := range columns {
		columns[i] = s.pointer(vectors + i)
	}
	s.eachRow(func(v int) {
		x, g := s.read(z, v), s.read(d, v)
		VSUBPS(s.read(columns[0], v), x, x)
		y := s.read(columns[3], v)
		VFMADD231PS(x, s.read(columns[2], v), y)
		VFMADD231PS(g, s.read(columns[1], v), y)
		s.write(y, d, v)
	})
}

func columnMax(s *strip) {
	x := s.matrix(0)
	best := s.column(0)
	s.eachRow(func(v int) { VMAXPS(best[v], s.read(x, v), best[v]) })
	s.keep(0, best)
}

func columnMaxAt(s *strip) {
	x := s.matrix(0)
	best, at := s.column(0), s.column(1)
	number, one := s.Broadcast(s.args.Offset(8*(vectors+4))), s.Vector()
	VMOVUPS(unit.Bits(1), one)
	s.eachRow(func(v int) {
		y := s.read(x, v)
		if s.Unit == 512 {
			k := K()
			VCMPPS(U8(1), y, best[v], k) // best < y
			VMOVAPS(y, k, best[v])
			VMOVAPS(number, k, at[v])
			return
		}
		more := s.Vector()
		VCMPPS(U8(1), y, best[v], more)
		VBLENDVPS(more, y, best[v], best[v])
		VBLENDVPS(more, number, at[v], at[v])
	}, func() { VPADDD(one, number, number) })
	s.keep(0, best)
	s.keep(1, at)
}

// adamW updates n weights. Its constants are those of adamConstants, in order.
func adamW(u unit.Unit) {
	TEXT("adamW"+u.Level(), NOSPLIT, "func(p, grad, m, v *float32, n int, constants *float32)")
	Pragma("noescape")
	Doc("adamW" + u.Level() + " is AdamW.Update for n weights; constants is an *adamConstants.")
	p, g := Load(Param("p"), GP64()).(reg.GPVirtual), Load(Param("grad"), GP64()).(reg.GPVirtual)
	m, v := Load(Param("m"), GP64()).(reg.GPVirtual), Load(Param("v"), GP64()).(reg.GPVirtual)
	n, constants := Load(Param("n"), GP64()).(reg.GPVirtual), Load(Param("constants"), GP64())
	var c [9]reg.VecVirtual
	for i := range c {
		c[i] = u.Broadcast(Mem{Base: constants, Disp: 4 * i})
	}
	step := func(k unit.Mask) {
		load := func(from reg.Register) reg.VecVirtual {
			x := u.Vector()
			u.Load(Mem{Base: from}, k, x)
			return x
		}
		d, first, second := load(g), load(m), load(v)
		VMULPS(c[0], d, d)
		VMULPS(c[1], first, first)
		VFMADD231PS(d, c[2], first)
		u.Store(first, k, Mem{Base: m})
		VMULPS(d, d, d)
		VMULPS(c[3], second, second)
		VFMADD231PS(d, c[4], second)
		u.Store(second, k, Mem{Base: v})
		VSQRTPS(second, second)
		VMULPS(c[5], second, second)
		VADDPS(c[6], second, second)
		VMULPS(c[7], first, first)
		VDIVPS(second, first, first)
		w := load(p)
		VMULPS(c[8], w, w)
		VSUBPS(first, w, w)
		u.Store(w, k, Mem{Base: p})
	}
	Label("loop")
	CMPQ(n, U8(uint8(u.Lanes())))
	JLT(LabelRef("rest"))
	step(nil)
	for _, pointer := range []reg.GPVirtual{p, g, m, v} {
		ADDQ(U8(uint8(u.Bytes())), pointer)
	}
	SUBQ(U8(uint8(u.Lanes())), n)
	JMP(LabelRef("loop"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	step(u.First(n))
	Label("end")
	VZEROUPPER()
	RET()
}

// keep clears those of n numbers whose bit is 0.
func keep(u unit.Unit) {
	TEXT("keep"+u.Level(), NOSPLIT, "func(x *float32, n int, bits *uint64)")
	Pragma("noescape")
	Doc("keep" + u.Level() + " is Keep for n numbers.")
	x, bits := Load(Param("x"), GP64()), Load(Param("bits"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	step := func(m unit.Mask) {
		v, b := u.Vector(), GP32()
		u.Load(Mem{Base: x}, m, v)
		if u == 512 {
			k := K()
			MOVWLZX(Mem{Base: bits}, b)
			KMOVW(b, k)
			VMOVAPS_Z(v, k, v)
		} else {
			wide, places := YMM(), YMM()
			MOVBLZX(Mem{Base: bits}, b)
			VMOVD(b, wide.AsX())
			VPBROADCASTD(wide.AsX(), wide)
			VMOVUPS(unit.Places(), places)
			VPAND(places, wide, wide)
			VPCMPEQD(places, wide, wide)
			VANDPS(wide, v, v)
		}
		u.Store(v, m, Mem{Base: x})
	}
	Label("loop")
	CMPQ(n, U8(uint8(u.Lanes())))
	JLT(LabelRef("rest"))
	step(nil)
	ADDQ(U8(uint8(u.Bytes())), x)
	ADDQ(U8(uint8(u.Lanes()/8)), bits)
	SUBQ(U8(uint8(u.Lanes())), n)
	JMP(LabelRef("loop"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	step(u.First(n))
	Label("end")
	VZEROUPPER()
	RET()
}
