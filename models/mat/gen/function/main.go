// Command function generates the kernels of the functions of single numbers.
package main

import (
	"fmt"
	"math"

	"entropipe/models/mat/gen/unit"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, u := range unit.Units {
		generate(u, "exp", func(x reg.VecVirtual) { u.Exp(x) })
		generate(u, "tanh", func(x reg.VecVirtual) { tanh(u, x) })
		generate(u, "gelu", func(x reg.VecVirtual) { gelu(u, x) })
		generate(u, "geluTanh", func(x reg.VecVirtual) { geluTanh(u, x) })
		generate(u, "silu", func(x reg.VecVirtual) { silu(u, x) })
	}
	for _, u := range unit.Units {
		generate2(u, "multiply", "the product", func(a, b reg.VecVirtual) { VMULPS(a, b, a) })
		generate2(u, "geluGrad", "a times GELU's derivative at b", func(a, b reg.VecVirtual) { geluGrad(u, a, b) })
		generate2(u, "geluTanhGrad", "a times GELUTanh's derivative at b",
			func(a, b reg.VecVirtual) { geluTanhGrad(u, a, b) })
	}
	Generate()
}

// generate writes a function of the numbers at src.
func generate(u unit.Unit, name string, f func(x reg.VecVirtual)) {
	TEXT(name+u.Level(), NOSPLIT, "func(dst, src *float32, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s%s applies the function to n numbers at src and writes them at dst.", name, u.Level()))
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	loop(u, 2, []reg.Register{dst, src}, func(at int, m unit.Mask) {
		x := u.Vector()
		u.Load(Mem{Base: src, Disp: at}, m, x)
		f(x)
		u.Store(x, m, Mem{Base: dst, Disp: at})
	})
}

// generate2 writes a function of the numbers at a and those at b; f leaves it
// in a.
func generate2(u unit.Unit, name, what string, f func(a, b reg.VecVirtual)) {
	TEXT(name+u.Level(), NOSPLIT, "func(dst, a, b *float32, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s%s sets n numbers at dst to %s.", name, u.Level(), what))
	dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	loop(u, 1, []reg.Register{dst, a, b}, func(at int, m unit.Mask) {
		x, y := u.Vector(), u.Vector()
		u.Load(Mem{Base: a, Disp: at}, m, x)
		u.Load(Mem{Base: b, Disp: at}, m, y)
		f(x, y)
		u.Store(x, m, Mem{Base: dst, Disp: at})
	})
}

// loop runs step over n numbers, most vectors at a time, then one, then what
// remains: each number goes through the same instructions. It ends the
// function.
func loop(u unit.Unit, most int, pointers []reg.Register, step func(at int, m unit.Mask)) {
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	for vectors := most; vectors > 0; vectors-- {
		top, below := fmt.Sprintf("by%d", vectors), fmt.Sprintf("below%d", vectors)
		Label(top)
		CMPQ(n, U8(uint8(vectors*u.Lanes())))
		JLT(LabelRef(below))
		for v := range vectors {
			step(v*u.Bytes(), nil)
		}
		for _, p := range pointers {
			ADDQ(U32(uint32(vectors*u.Bytes())), p)
		}
		SUBQ(U8(uint8(vectors*u.Lanes())), n)
		JMP(LabelRef(top))
		Label(below)
	}
	TESTQ(n, n)
	JZ(LabelRef("end"))
	step(0, u.First(n))
	Label("end")
	VZEROUPPER()
	RET()
}

// tanh is e/(e+2), e = e^2x-1, which does not cancel near 0; from 9.02 on it is
// 1 in a float32.
func tanh(u unit.Unit, x reg.VecVirtual) {
	VMINPS(u.Const(9.1), x, x)
	VMAXPS(u.Const(-9.1), x, x)
	VADDPS(x, x, x)
	u.ExpM1(x)
	below := u.Vector()
	VADDPS(u.Const(2), x, below)
	VDIVPS(below, x, x)
}

// gelu is max(x, 0)-|x|·h with h the normal distribution at -|x|: e^(-x²/2)
// times t·p(t), t = 1/(1+0.3|x|), an old form of erfc (Hastings) with
// coefficients fitted here to a relative error of 1.3e-7 up to |x| = 13.5,
// where h is less than a float32 can tell from 0.
func gelu(u unit.Unit, x reg.VecVirtual) {
	size, h, _ := normal(u, x)
	p := u.Zero()
	VMAXPS(p, x, x)
	VFNMADD231PS(size, h, x)
}

// normal returns |x|, the normal distribution at -|x|, and e^(-x²/2).
func normal(u unit.Unit, x reg.VecVirtual) (size, h, e reg.VecVirtual) {
	size, h, e = u.Vector(), u.Vector(), u.Vector()
	t, p := u.Vector(), u.Vector()
	VANDPS(unit.Bits(0x7fffffff), x, size)
	VMULPS(x, x, e)
	VMULPS(u.Const(-0.5), e, e)
	u.Exp(e)
	one := u.Vector()
	VMOVUPS(u.Const(1), one)
	VMOVUPS(u.Const(0.3), t)
	VFMADD213PS(one, size, t)
	VDIVPS(t, one, t)
	u.Polynomial(p, t, 0.11962638778747266, 0.12079835729174286, 0.09963750083996108, 0.12946917249016796,
		-0.05539378911370463, 0.20820653770063074, -0.1582759573684929, 0.03593172398929884)
	VMULPS(t, p, p)
	VMULPS(p, e, h)
	return size, h, e
}

// geluGrad multiplies d with Φ(x)+x·φ(x): h below zero, 1-h above.
func geluGrad(u unit.Unit, d, x reg.VecVirtual) {
	_, h, e := normal(u, x)
	above := u.Vector()
	VMOVUPS(u.Const(1), above)
	VSUBPS(h, above, above)
	if u == 512 {
		k := K()
		VPMOVD2M(x, k)
		VBLENDMPS(h, above, k, h)
	} else {
		VBLENDVPS(x, h, above, h)
	}
	VMULPS(u.Const(0.3989422804014327), e, e)
	VFMADD231PS(e, x, h)
	VMULPS(h, d, d)
}

// logistic returns s = 1/(1+e^w) and leaves w.
func logistic(u unit.Unit, w reg.VecVirtual) (s reg.VecVirtual) {
	s = u.Vector()
	one := u.Vector()
	VMOVUPS(w, s)
	u.Exp(s)
	VMOVUPS(u.Const(1), one)
	VADDPS(one, s, s)
	VDIVPS(s, one, s)
	return s
}

// gateGrad multiplies d with s·(1-w'·(1-s)·x) for s = 1/(1+e^w), x·s having
// been the value and w' the derivative of w.
func gateGrad(u unit.Unit, d, x, slope, s reg.VecVirtual) {
	t := u.Vector()
	VMOVUPS(u.Const(1), t)
	VSUBPS(s, t, t) // 1-s
	VMULPS(x, t, t)
	VFNMADD213PS(u.Const(1), slope, t) // 1-w'·x·(1-s)
	VMULPS(s, t, t)
	VMULPS(t, d, d)
}

func geluTanhGrad(u unit.Unit, d, x reg.VecVirtual) {
	const a = -2 * 0.7978845608028654
	VMINPS(u.Const(10), x, x) // beyond, the derivative is 1 or 0
	VMAXPS(u.Const(-10), x, x)
	square, w, slope := u.Vector(), u.Vector(), u.Vector()
	VMULPS(x, x, square)
	VMOVUPS(u.Const(a*0.044715), w)
	VFMADD213PS(u.Const(a), square, w)
	VMULPS(x, w, w)
	VMOVUPS(u.Const(3*a*0.044715), slope)
	VFMADD213PS(u.Const(a), square, slope)
	gateGrad(u, d, x, slope, logistic(u, w))
}

// geluTanh is x/(1+e^-w), w = 2√(2/π)·(x+0.044715x³).
func geluTanh(u unit.Unit, x reg.VecVirtual) {
	const a = -2 * 0.7978845608028654
	w := u.Vector()
	VMULPS(x, x, w)
	VMULPS(u.Const(a*0.044715), w, w)
	VADDPS(u.Const(a), w, w)
	VMULPS(x, w, w)
	gate(u, x, w)
}

func silu(u unit.Unit, x reg.VecVirtual) {
	w := u.Vector()
	VXORPS(unit.Bits(math.Float32bits(float32(math.Copysign(0, -1)))), x, w)
	gate(u, x, w)
}

// gate sets x to x/(1+e^w).
func gate(u unit.Unit, x, w reg.VecVirtual) {
	u.Exp(w)
	VADDPS(u.Const(1), w, w)
	VDIVPS(w, x, x)
}
