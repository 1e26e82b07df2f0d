// Command attend generates the kernels of attention: products of some query
// rows with panels of keys, weights from scores, products of weights with
// values, and the packing of keys.
//
// Every number is one chain of fused multiplications and additions in an order
// that only the lists of panels decide, in whichever kernel, so it has the same
// bits in each, and on either vector unit.
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
	for _, rows := range []int{6, 4, 2, 1} {
		for _, panels := range []int{4, 2, 1} {
			product{512, rows, panels}.scores()
			product{512, rows, panels}.values()
		}
		product{256, rows, 1}.scores()
		product{256, rows, 1}.values()
	}
	for _, u := range unit.Units {
		weights{u}.generate()
	}
	transpose()
	scale()
	fetch()
	Generate()
}

// Offsets in productArgs.
const (
	aData = 8 * iota
	aStride
	bData
	bPanel
	bStep
	steps
	list
	count
	cData
	cStride
	factors
)

// panel is the number of keys, or of columns of values, that go together.
const panel = 16

// product multiplies rows of numbers with panels.
type product struct {
	bits, rows, panels int
}

func (p product) unit() unit.Unit { return unit.Unit(p.bits) }
func (p product) vectors() int    { return p.panels * panel / p.unit().Lanes() }

// perPanel is the number of vectors of a panel.
func (p product) perPanel() int { return panel / p.unit().Lanes() }

func (p product) text(what, doc string) reg.Register {
	name := fmt.Sprintf("%s%dx%d%s", what, p.rows, p.panels, p.unit().Level())
	TEXT(name, NOSPLIT, "func(args *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes %s; args is a *productArgs.", name, doc))
	return Load(Param("args"), GP64())
}

func load(args reg.Register, offset int) reg.GPVirtual {
	r := GP64()
	MOVQ(Mem{Base: args, Disp: offset}, r)
	return r
}

func (p product) sums() [][]reg.VecVirtual {
	sums := make([][]reg.VecVirtual, p.rows)
	for r := range sums {
		for range p.vectors() {
			sums[r] = append(sums[r], p.unit().Vector())
		}
	}
	return sums
}

// scores writes c = a·b for count tuples of panels of keys, which list names.
func (p product) scores() {
	args := p.text("scores", fmt.Sprintf("%d rows of scores with tuples of %d panels", p.rows, p.panels))
	a, stride, named := load(args, aData), load(args, aStride), load(args, list)
	left, c := load(args, count), load(args, cData)
	Label("tuple")
	panels := make([]reg.GPVirtual, p.panels)
	for i := range panels {
		panels[i] = GP64()
		MOVLQSX(Mem{Base: named, Disp: 4 * i}, panels[i])
		IMULQ(Mem{Base: args, Disp: bPanel}, panels[i])
		ADDQ(Mem{Base: args, Disp: bData}, panels[i])
	}
	sums := p.sums()
	for _, row := range sums {
		for _, x := range row {
			VXORPS(x, x, x)
		}
	}
	bases := p.bases(a, stride)
	step := load(args, steps)
	Label("step")
	numbers := make([]Mem, 0, 4)
	for _, at := range panels {
		for v := range p.perPanel() {
			numbers = append(numbers, Mem{Base: at, Disp: v * p.unit().Bytes()})
		}
	}
	p.step(sums, numbers, bases, stride, 0)
	for _, at := range append(panels, bases...) {
		by := 4
		if !contains(bases, at) {
			by = 4 * panel
		}
		ADDQ(U32(by), at)
	}
	DECQ(step)
	JNZ(LabelRef("step"))
	at, next := GP64(), load(args, cStride)
	MOVQ(c, at)
	for r, row := range sums {
		for v, x := range row {
			VMOVUPS(x, Mem{Base: at, Disp: v * p.unit().Bytes()})
		}
		if r < len(sums)-1 {
			ADDQ(next, at)
		}
	}
	ADDQ(U32(4*panel*p.panels), c)
	ADDQ(U32(4*p.panels), named)
	DECQ(left)
	JNZ(LabelRef("tuple"))
	VZEROUPPER()
	RET()
}

func contains(set []reg.GPVirtual, x reg.GPVirtual) bool {
	for _, y := range set {
		if x == y {
			return true
		}
	}
	return false
}

// bases returns pointers to every third row of a.
func (p product) bases(a, stride reg.GPVirtual) []reg.GPVirtual {
	bases := []reg.GPVirtual{GP64()}
	MOVQ(a, bases[0])
	for r := 3; r < p.rows; r += 3 {
		next := GP64()
		LEAQ(Mem{Base: bases[len(bases)-1], Index: stride, Scale: 2}, next)
		ADDQ(stride, next)
		bases = append(bases, next)
	}
	return bases
}

// step multiplies one number of every row with the vectors at numbers.
func (p product) step(sums [][]reg.VecVirtual, numbers []Mem, bases []reg.GPVirtual, stride reg.GPVirtual, disp int) {
	b := make([]reg.VecVirtual, len(numbers))
	for v, from := range numbers {
		b[v] = p.unit().Vector()
		VMOVUPS(from, b[v])
	}
	for r := range sums {
		at := Mem{Base: bases[r/3], Disp: disp}
		if r%3 > 0 {
			at.Index, at.Scale = stride, uint8(r%3)
		}
		if p.bits == 512 && len(b) == 1 { // with more vectors, one broadcast factor serves all of them
			VFMADD231PS_BCST(at, b[0], sums[r][0])
			continue
		}
		factor := p.unit().Broadcast(at)
		for v := range b {
			VFMADD231PS(factor, b[v], sums[r][v])
		}
	}
}

// unrolled is the number of keys that one round of values takes.
const unrolled = 4

// values sets c = factor·c + a·b over the keys of count panels, which list
// names; b's rows are those of the keys.
func (p product) values() {
	args := p.text("values", fmt.Sprintf("%d rows of %d columns of sums of values", p.rows, panel*p.panels))
	stride, named, left := load(args, aStride), load(args, list), load(args, count)
	c, next, f := load(args, cData), load(args, cStride), load(args, factors)
	sums := p.sums()
	for r, row := range sums {
		factor := p.unit().Broadcast(Mem{Base: f, Disp: 4 * r})
		for v, x := range row {
			VMULPS(Mem{Base: c, Disp: v * p.unit().Bytes()}, factor, x)
		}
		if r < len(sums)-1 {
			ADDQ(next, c)
		}
	}
	bases := p.bases(load(args, aData), stride)
	down := load(args, bStep)
	Label("panel")
	b := GP64()
	MOVLQSX(Mem{Base: named}, b)
	IMULQ(Mem{Base: args, Disp: bPanel}, b)
	ADDQ(Mem{Base: args, Disp: bData}, b)
	keys := GP64()
	MOVQ(U32(panel/unrolled), keys)
	Label("keys")
	for k := range unrolled {
		numbers := make([]Mem, p.vectors())
		for v := range numbers {
			numbers[v] = Mem{Base: b, Disp: v * p.unit().Bytes()}
		}
		p.step(sums, numbers, bases, stride, 4*k)
		ADDQ(down, b)
	}
	for _, base := range bases {
		ADDQ(U32(4*unrolled), base)
	}
	DECQ(keys)
	JNZ(LabelRef("keys"))
	ADDQ(Imm(4), named)
	DECQ(left)
	JNZ(LabelRef("panel"))
	for r := len(sums) - 1; r >= 0; r-- { // c stands at the last row
		for v, x := range sums[r] {
			VMOVUPS(x, Mem{Base: c, Disp: v * p.unit().Bytes()})
		}
		if r > 0 {
			SUBQ(next, c)
		}
	}
	VZEROUPPER()
	RET()
}
