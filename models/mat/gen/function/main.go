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
	Generate()
}

// generate writes a loop over n numbers, two vectors at a time, then one, then
// what remains: each number goes through the same instructions.
func generate(u unit.Unit, name string, f func(x reg.VecVirtual)) {
	TEXT(name+u.Level(), NOSPLIT, "func(dst, src *float32, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s%s sets n numbers at dst to the function of those at src.", name, u.Level()))
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	step := func(vectors int, m unit.Mask) {
		for v := range vectors {
			x := u.Vector()
			u.Load(Mem{Base: src, Disp: v * u.Bytes()}, m, x)
			f(x)
			u.Store(x, m, Mem{Base: dst, Disp: v * u.Bytes()})
		}
	}
	for _, vectors := range []int{2, 1} {
		top, below := fmt.Sprintf("by%d", vectors), fmt.Sprintf("below%d", vectors)
		Label(top)
		CMPQ(n, U8(uint8(vectors*u.Lanes())))
		JLT(LabelRef(below))
		step(vectors, nil)
		ADDQ(U32(uint32(vectors*u.Bytes())), src)
		ADDQ(U32(uint32(vectors*u.Bytes())), dst)
		SUBQ(U8(uint8(vectors*u.Lanes())), n)
		JMP(LabelRef(top))
		Label(below)
	}
	TESTQ(n, n)
	JZ(LabelRef("end"))
	step(1, u.First(n))
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
	size, t, h, p := u.Vector(), u.Vector(), u.Vector(), u.Vector()
	VANDPS(unit.Bits(0x7fffffff), x, size)
	VMULPS(x, x, h)
	VMULPS(u.Const(-0.5), h, h)
	u.Exp(h)
	one := u.Vector()
	VMOVUPS(u.Const(1), one)
	VMOVUPS(u.Const(0.3), t)
	VFMADD213PS(one, size, t)
	VDIVPS(t, one, t)
	u.Polynomial(p, t, 0.11962638778747266, 0.12079835729174286, 0.09963750083996108, 0.12946917249016796,
		-0.05539378911370463, 0.20820653770063074, -0.1582759573684929, 0.03593172398929884)
	VMULPS(t, p, p)
	VMULPS(p, h, h)
	VXORPS(p, p, p)
	VMAXPS(p, x, x)
	VFNMADD231PS(size, h, x)
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
