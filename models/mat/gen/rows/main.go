// Command rows generates the kernels that functions of whole rows are made of.
package main

import (
	"fmt"

	"entropipe/models/mat/gen/unit"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sums is the number of vectors that a row is summed in: enough that an
// addition need not wait for the one before.
const sums = 4

func main() {
	ConstraintExpr("amd64")
	for _, u := range unit.Units {
		rowMax(u)
		rowSum(u)
		rowSquares(u)
		rowExp(u)
		rowScale(u)
		rowApply(u)
		rowDot(u)
		rowSoftmaxGrad(u)
		normGather(u)
		normSpread(u)
	}
	Generate()
}

// begin starts a function of n numbers at x.
func begin(u unit.Unit, name, parameters, doc string) (x, n reg.GPVirtual) {
	TEXT(name+u.Level(), NOSPLIT, "func(x *float32, n int"+parameters)
	Pragma("noescape")
	Doc(name + u.Level() + " " + doc)
	return Load(Param("x"), GP64()).(reg.GPVirtual), Load(Param("n"), GP64()).(reg.GPVirtual)
}

// each runs f over n numbers, sums vectors at a time, then one vector, which
// counts to the first sum, then what remains. f moves no pointer: those given
// are moved behind it.
func each(u unit.Unit, n reg.GPVirtual, pointers []reg.GPVirtual, f func(sum int, m unit.Mask)) {
	for _, vectors := range []int{sums, 1} {
		top, below := fmt.Sprintf("by%d", vectors), fmt.Sprintf("below%d", vectors)
		Label(top)
		CMPQ(n, U8(uint8(vectors*u.Lanes())))
		JLT(LabelRef(below))
		for v := range vectors {
			f(v, nil)
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
	f(0, u.First(n))
	Label("end")
}

// finish combines the sums and returns their one number.
func finish(u unit.Unit, s []reg.VecVirtual, combine func(a, b, to Op)) {
	Store(fold(u, s, combine), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func fold(u unit.Unit, s []reg.VecVirtual, combine func(a, b, to Op)) reg.VecVirtual {
	combine(s[0], s[1], s[0])
	combine(s[2], s[3], s[2])
	combine(s[0], s[2], s[0])
	return u.Fold(s[0], combine).AsX().(reg.VecVirtual)
}

func total(u unit.Unit, s []reg.VecVirtual) reg.VecVirtual { return fold(u, s, add) }

func add(a, b, to Op) { VADDPS(a, b, to) }

func zeros(u unit.Unit) []reg.VecVirtual {
	s := make([]reg.VecVirtual, sums)
	for i := range s {
		s[i] = u.Zero()
	}
	return s
}

func at(u unit.Unit, p reg.Register, v int) Mem { return Mem{Base: p, Disp: v * u.Bytes()} }

func rowMax(u unit.Unit) {
	x, n := begin(u, "rowMax", ") float32", "returns the largest of n numbers; n is at least 1.")
	top := make([]reg.VecVirtual, sums)
	for i := range top {
		top[i] = u.Broadcast(Mem{Base: x})
	}
	each(u, n, []reg.GPVirtual{x}, func(sum int, m unit.Mask) {
		v := u.Vector()
		switch {
		case m == nil:
			VMAXPS(at(u, x, sum), top[sum], top[sum])
		case u == 512:
			VMAXPS(at(u, x, sum), top[sum], m, top[sum])
		default: // zeros are loaded for what does not exist: not these
			u.Load(at(u, x, sum), m, v)
			VBLENDVPS(m, v, top[sum], v)
			VMAXPS(v, top[sum], top[sum])
		}
	})
	finish(u, top, func(a, b, to Op) { VMAXPS(a, b, to) })
}

func rowSum(u unit.Unit) {
	x, n := begin(u, "rowSum", ") float32", "returns Σx.")
	s := zeros(u)
	each(u, n, []reg.GPVirtual{x}, func(sum int, m unit.Mask) {
		v := u.Vector()
		u.Load(at(u, x, sum), m, v)
		VADDPS(v, s[sum], s[sum])
	})
	finish(u, s, add)
}

func rowSquares(u unit.Unit) {
	x, n := begin(u, "rowSquares", ", center float32) float32", "returns Σ(x-center)².")
	center := broadcastParam(u, "center")
	s := zeros(u)
	each(u, n, []reg.GPVirtual{x}, func(sum int, m unit.Mask) {
		v := u.Vector()
		u.Load(at(u, x, sum), m, v)
		switch {
		case u == 512 && m != nil:
			VSUBPS_Z(center, v, m, v)
		case u == 512:
			VSUBPS(center, v, v)
		default:
			VSUBPS(center, v, v)
			if m != nil {
				VANDPS(m, v, v)
			}
		}
		VFMADD231PS(v, v, s[sum])
	})
	finish(u, s, add)
}

func rowExp(u unit.Unit) {
	x, n := begin(u, "rowExp", ", top, scale float32) float32",
		"replaces numbers by exp(scale·(x-top)) and returns their sum.")
	top, scale := broadcastParam(u, "top"), broadcastParam(u, "scale")
	s := zeros(u)
	each(u, n, []reg.GPVirtual{x}, func(sum int, m unit.Mask) {
		v := u.Vector()
		u.Load(at(u, x, sum), m, v)
		VSUBPS(top, v, v)
		VMULPS(scale, v, v)
		u.Exp(v)
		u.Store(v, m, at(u, x, sum))
		switch {
		case m == nil:
			VADDPS(v, s[sum], s[sum])
		case u == 512:
			VADDPS(v, s[sum], m, s[sum])
		default:
			VANDPS(m, v, v)
			VADDPS(v, s[sum], s[sum])
		}
	})
	finish(u, s, add)
}

func rowScale(u unit.Unit) {
	x, n := begin(u, "rowScale", ", factor float32)", "multiplies by factor.")
	factor := broadcastParam(u, "factor")
	each(u, n, []reg.GPVirtual{x}, func(sum int, m unit.Mask) {
		v := u.Vector()
		u.Load(at(u, x, sum), m, v)
		VMULPS(factor, v, v)
		u.Store(v, m, at(u, x, sum))
	})
	VZEROUPPER()
	RET()
}

func rowApply(u unit.Unit) {
	x, n := begin(u, "rowApply", ", dst *float32, center, factor float32, gamma, beta *float32)",
		"sets dst to (x-center)·factor·gamma, plus beta if beta is not nil.")
	dst := Load(Param("dst"), GP64()).(reg.GPVirtual)
	gamma, beta := Load(Param("gamma"), GP64()).(reg.GPVirtual), Load(Param("beta"), GP64()).(reg.GPVirtual)
	center, factor := broadcastParam(u, "center"), broadcastParam(u, "factor")
	from := GP64() // an offset, since a nil beta must stay
	XORQ(from, from)
	label := 0
	step := func(m unit.Mask) {
		label++
		done := fmt.Sprintf("done%d", label)
		v, w := u.Vector(), u.Vector()
		u.Load(Mem{Base: x, Index: from, Scale: 1}, m, v)
		u.Load(Mem{Base: gamma, Index: from, Scale: 1}, m, w)
		VSUBPS(center, v, v)
		VMULPS(factor, v, v)
		VMULPS(w, v, v)
		TESTQ(beta, beta)
		JZ(LabelRef(done))
		u.Load(Mem{Base: beta, Index: from, Scale: 1}, m, w)
		VADDPS(w, v, v)
		Label(done)
		u.Store(v, m, Mem{Base: dst, Index: from, Scale: 1})
	}
	Label("loop")
	CMPQ(n, U8(uint8(u.Lanes())))
	JLT(LabelRef("rest"))
	step(nil)
	ADDQ(U8(uint8(u.Bytes())), from)
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

func rowDot(u unit.Unit) {
	x, n := begin(u, "rowDot", ", y *float32) float32", "returns Σx·y.")
	y := Load(Param("y"), GP64()).(reg.GPVirtual)
	s := zeros(u)
	each(u, n, []reg.GPVirtual{x, y}, func(sum int, m unit.Mask) {
		v, w := u.Vector(), u.Vector()
		u.Load(at(u, x, sum), m, v)
		u.Load(at(u, y, sum), m, w)
		VFMADD231PS(v, w, s[sum])
	})
	finish(u, s, add)
}

func rowSoftmaxGrad(u unit.Unit) {
	x, n := begin(u, "rowSoftmaxGrad", ", w *float32, mean float32)", "sets x to w·(x-mean).")
	w := Load(Param("w"), GP64()).(reg.GPVirtual)
	mean := broadcastParam(u, "mean")
	each(u, n, []reg.GPVirtual{x, w}, func(sum int, m unit.Mask) {
		v, f := u.Vector(), u.Vector()
		u.Load(at(u, x, sum), m, v)
		u.Load(at(u, w, sum), m, f)
		VSUBPS(mean, v, v)
		VMULPS(f, v, v)
		u.Store(v, m, at(u, x, sum))
	})
	VZEROUPPER()
	RET()
}

// normGather needs no mask in its sums: where dy does not exist it is zero.
func normGather(u unit.Unit) {
	x, n := begin(u, "normGather", ", dy, gamma, dgamma, dbeta *float32, center, factor float32, sums *[2]float32)",
		"adds, with y = (x-center)·factor, dy to dbeta and dy·y to dgamma, and sets sums to Σdy·gamma and Σdy·gamma·y.")
	pointers := []reg.GPVirtual{x}
	for _, name := range []string{"dy", "gamma", "dgamma", "dbeta"} {
		pointers = append(pointers, Load(Param(name), GP64()).(reg.GPVirtual))
	}
	center, factor := broadcastParam(u, "center"), broadcastParam(u, "factor")
	s, dots := zeros(u), zeros(u)
	each(u, n, pointers, func(sum int, m unit.Mask) {
		y, d, t := u.Vector(), u.Vector(), u.Vector()
		u.Load(at(u, x, sum), m, y)
		VSUBPS(center, y, y)
		VMULPS(factor, y, y)
		u.Load(at(u, pointers[1], sum), m, d)
		u.Load(at(u, pointers[3], sum), m, t)
		VFMADD231PS(y, d, t)
		u.Store(t, m, at(u, pointers[3], sum))
		u.Load(at(u, pointers[4], sum), m, t)
		VADDPS(d, t, t)
		u.Store(t, m, at(u, pointers[4], sum))
		u.Load(at(u, pointers[2], sum), m, t)
		VMULPS(t, d, d)
		VADDPS(d, s[sum], s[sum])
		VFMADD231PS(y, d, dots[sum])
	})
	to := Load(Param("sums"), GP64())
	VMOVSS(total(u, s), Mem{Base: to})
	VMOVSS(total(u, dots), Mem{Base: to, Disp: 4})
	VZEROUPPER()
	RET()
}

func normSpread(u unit.Unit) {
	x, n := begin(u, "normSpread", ", dy, gamma, dx *float32, center, factor, a, b float32)",
		"adds (dy·gamma-a-(x-center)·b)·factor to dx.")
	dy, gamma := Load(Param("dy"), GP64()).(reg.GPVirtual), Load(Param("gamma"), GP64()).(reg.GPVirtual)
	dx := Load(Param("dx"), GP64()).(reg.GPVirtual)
	center, factor := broadcastParam(u, "center"), broadcastParam(u, "factor")
	a, b := broadcastParam(u, "a"), broadcastParam(u, "b")
	each(u, n, []reg.GPVirtual{x, dy, gamma, dx}, func(sum int, m unit.Mask) {
		y, d, t := u.Vector(), u.Vector(), u.Vector()
		u.Load(at(u, x, sum), m, y)
		VSUBPS(center, y, y)
		u.Load(at(u, dy, sum), m, d)
		u.Load(at(u, gamma, sum), m, t)
		VFMSUB213PS(a, t, d)
		VFNMADD231PS(y, b, d)
		u.Load(at(u, dx, sum), m, t)
		VFMADD231PS(factor, d, t)
		u.Store(t, m, at(u, dx, sum))
	})
	VZEROUPPER()
	RET()
}

func broadcastParam(u unit.Unit, name string) reg.VecVirtual {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return u.Broadcast(p.Addr)
}
