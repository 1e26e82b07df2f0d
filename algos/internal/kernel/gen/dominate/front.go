package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// front is what both forms of the list keep in registers.
type front struct {
	axis                      func(int) reg.GPVirtual
	list, last, stride, at    reg.GPVirtual // last: end of the entries in use
	row, i, points, n, budget reg.GPVirtual
	a                         Mem
}

func frontBegin(a Mem, bits, dims int) front {
	f := front{axis: func(k int) reg.GPVirtual { return load(a.Offset(axes + 8*k)) }, a: a}
	f.list, f.stride, f.points = load(a.Offset(list)), load(a.Offset(stride)), load(a.Offset(points))
	f.n, f.budget = load(a.Offset(count)), load(a.Offset(budget))
	f.last, f.at, f.row, f.i = GP64(), GP64(), GP64(), load(a.Offset(done))
	LEAQ(Mem{Base: f.list, Index: f.n, Scale: uint8(bits / 8)}, f.last)
	return f
}

// next goes to the following point, unless the budget is spent.
func (f *front) next() {
	INCQ(f.i)
	TESTQ(f.budget, f.budget)
	JNS(LabelRef("point"))
	JMP(LabelRef("end"))
}

// keep appends the point to the list, unless that is full.
func (f *front) keep(bits int, p []reg.VecVirtual) {
	Label("keep")
	CMPQ(f.n, f.a.Offset(limit))
	JGE(LabelRef("end"))
	MOVQ(f.last, f.row)
	for k := range p {
		if k > 0 {
			ADDQ(f.stride, f.row)
		}
		wide(bits, func(a, b Op) { VMOVSS(a, b) }, func(a, b Op) { VMOVSD(a, b) })(p[k].AsX(), Mem{Base: f.row})
	}
	MOVQ(f.a.Offset(kept), f.row)
	MOVL(f.i.As32(), Mem{Base: f.row, Index: f.n, Scale: 4})
	ADDQ(U8(uint8(bits/8)), f.last)
	INCQ(f.n)
	f.next()
}

func (f *front) end(a Mem) {
	Label("end")
	MOVQ(f.n, a.Offset(count))
	MOVQ(f.i, a.Offset(done))
	MOVQ(f.budget, a.Offset(budget))
	VZEROUPPER()
	RET()
}
