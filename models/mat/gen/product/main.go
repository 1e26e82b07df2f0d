// Command product generates the kernels of Mul and TMul.
//
// A kernel computes all rows of some panels of 16 columns of a result, in
// blocks whose sums stay in registers: as many rows at a time as these hold,
// then fewer for the rows that remain. Every number is one chain of fused
// multiplications and additions in ascending order, in whichever block, so it
// has the same bits in each. The chain begins at zero; what c held, and what was
// held back, is added behind it.
//
// With -pairs it generates those for weights of bf16 instead, in pairs of rows:
// a step takes two of the products' numbers.
package main

import (
	"flag"
	"fmt"
	"strings"

	"entropipe/models/mat/gen/evex"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	flag.Parse()
	if *pairs {
		generatePairs()
		return
	}
	// Rows of a block: with the panels' numbers of one step and a factor they
	// fill the registers.
	for panels, rows := range heights {
		if panels > 0 {
			kernel{bits: 512, panels: panels, masked: true}.generate(rows)
			kernel{bits: 512, panels: panels, turned: true, masked: true}.generate(rows)
		}
	}
	for _, masked := range []bool{false, true} { // masks are slow here
		kernel{bits: 256, panels: 1, masked: masked}.generate([]int{6, 4, 2, 1})
		kernel{bits: 256, panels: 1, turned: true, masked: masked}.generate([]int{6, 4, 2, 1})
	}
	Generate()
}

// heights are the rows of blocks for each number of panels, with AVX-512.
var heights = [][]int{1: {12, 4, 2, 1}, 2: {12, 4, 2, 1}, 3: {8, 4, 2, 1}, 4: {6, 4, 2, 1}}

// kernel is one function: of Mul, or turned, of TMul. If it is masked, the last
// panel may lack columns.
type kernel struct {
	bits, panels   int
	turned, masked bool
	form           form
}

// form is what the weights are.
type form int

const (
	plain  form = iota // float32
	paired             // pairs of bf16, multiplied and added by one instruction
	split              // pairs of bf16, taken apart
)

// Offsets in productArgs.
const (
	rows = 8 * iota
	steps
	aData
	aStride
	bData
	bStride
	cData
	cStride
	bias
	add
	relu
	mask  // AVX-512: mask of the last panel
	low   // AVX2: mask of the first half of the last panel
	_     // AVX2: mask of its second half
	ahead // next address to prefetch, while it is below aheadEnd
	aheadEnd
	held // further rows to add to the sums; 0 if there are none
	heldStride
	heldAt // offset of the next held row
)

func (k kernel) vectors() int { return k.panels * 512 / k.bits }

func (k kernel) vector() reg.VecVirtual {
	if k.bits == 512 {
		return ZMM()
	}
	return YMM()
}

func (k kernel) at(base reg.Register, v int) Mem {
	return Mem{Base: base, Disp: v * k.bits / 8}
}

// state is what a kernel keeps in registers across blocks.
type state struct {
	args                 reg.Register
	rows, a, lda, c, ldc reg.Register
	ldb                  reg.Register
	k                    reg.Register // AVX-512: mask of the last panel
}

func (k kernel) generate(heights []int) {
	name := fmt.Sprintf("mul%dAVX%d", k.panels, k.bits)
	what := "a·b"
	if k.turned {
		name, what = "t"+name, "aᵀ·b"
	}
	if k.bits == 256 {
		name = strings.Replace(name, "1AVX256", "WholeAVX2", 1)
		if k.masked {
			name = strings.Replace(name, "Whole", "Part", 1)
		}
	}
	name = k.form.rename(name)
	TEXT(name, NOSPLIT, "func(args *byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes %d columns of %s; args is a *productArgs.", name, 16*k.panels, what))
	s := &state{args: Load(Param("args"), GP64())}
	load := func(offset int) reg.Register {
		r := GP64()
		MOVQ(Mem{Base: s.args, Disp: offset}, r)
		return r
	}
	s.rows, s.a, s.lda, s.c, s.ldc = load(rows), load(aData), load(aStride), load(cData), load(cStride)
	if k.turned || k.bits != 512 {
		s.ldb = load(bStride)
	}
	if k.bits == 512 {
		s.k = K()
		KMOVW(Mem{Base: s.args, Disp: mask}, s.k)
	}
	for _, h := range heights {
		top, below := fmt.Sprintf("rows%d", h), fmt.Sprintf("below%d", h)
		Label(top)
		CMPQ(s.rows, Imm(uint64(h)))
		JLT(LabelRef(below))
		if h == 6 && k.bits == 512 { // 8 is better cut into 4 and 4
			CMPQ(s.rows, Imm(8))
			JEQ(LabelRef(below))
		}
		k.block(s, h)
		SUBQ(Imm(uint64(h)), s.rows)
		if h != 1 {
			JMP(LabelRef(top))
		}
		Label(below)
	}
	VZEROUPPER()
	RET()
}

// block computes h rows and moves a and c on to the next ones.
func (k kernel) block(s *state, h int) {
	id := fmt.Sprintf("%d", h)
	sums := make([][]reg.VecVirtual, h)
	for r := range sums {
		sums[r] = make([]reg.VecVirtual, k.vectors())
		for v := range sums[r] {
			sums[r][v] = k.vector()
			VXORPS(sums[r][v], sums[r][v], sums[r][v])
		}
	}
	k.loop(s, sums, id)
	if k.turned {
		k.addRows(s, s.c, s.ldc, sums)
		ADDQ(Imm(uint64(4*h)), s.a)
	} else {
		k.addBias(s, sums, id)
		CMPQ(Mem{Base: s.args, Disp: add}, Imm(0))
		JEQ(LabelRef("fresh" + id))
		k.addRows(s, s.c, s.ldc, sums)
		Label("fresh" + id)
		k.addHeld(s, sums, id)
		k.cut(s, sums, id)
		t := GP64()
		IMUL3Q(Imm(uint64(h)), s.lda, t)
		ADDQ(t, s.a)
	}
	k.store(s, sums)
}

// addRows adds the numbers of the rows at c to the sums, once, at their end: a
// large number that a sum began with would coarsen each of its steps.
func (k kernel) addRows(s *state, from, stride reg.Register, sums [][]reg.VecVirtual) {
	old, c := k.vector(), GP64()
	MOVQ(from, c)
	for r := range sums {
		for v, sum := range sums[r] {
			k.load(s, k.at(c, v), v, old)
			VADDPS(old, sum, sum)
		}
		ADDQ(stride, c)
	}
}

// addHeld adds the rows that were held back, if any, and moves on to the next
// ones: by an offset, since the collector must not see a pointer behind the last.
func (k kernel) addHeld(s *state, sums [][]reg.VecVirtual, id string) {
	p, stride := GP64(), GP64()
	MOVQ(Mem{Base: s.args, Disp: held}, p)
	TESTQ(p, p)
	JZ(LabelRef("unheld" + id))
	MOVQ(Mem{Base: s.args, Disp: heldStride}, stride)
	ADDQ(Mem{Base: s.args, Disp: heldAt}, p)
	k.addRows(s, p, stride, sums)
	IMUL3Q(Imm(uint64(len(sums))), stride, stride)
	ADDQ(stride, Mem{Base: s.args, Disp: heldAt})
	Label("unheld" + id)
}

// loop runs over the steps of the sums.
func (k kernel) loop(s *state, sums [][]reg.VecVirtual, id string) {
	left, b := GP64(), GP64()
	MOVQ(Mem{Base: s.args, Disp: steps}, left)
	MOVQ(Mem{Base: s.args, Disp: bData}, b)
	TESTQ(left, left)
	JZ(LabelRef("done" + id))
	// A base for every third row; an index reaches two more.
	bases := []reg.Register{GP64()}
	MOVQ(s.a, bases[0])
	if !k.turned {
		for r := 3; r < len(sums); r += 3 {
			next := GP64()
			LEAQ(Mem{Base: bases[len(bases)-1], Index: s.lda, Scale: 2}, next)
			ADDQ(s.lda, next)
			bases = append(bases, next)
		}
	}
	fetched := k.fetch(s, id)
	Label("step" + id)
	if k.form == split {
		k.splitStep(s, sums, bases, b, func() { fetched.step(id) })
	} else {
		numbers := k.numbers(s, b)
		fetched.step(id)
		for r := range sums {
			k.row(numbers, sums[r], k.factor(s, bases, r))
		}
	}
	if k.turned {
		ADDQ(s.lda, bases[0])
		ADDQ(s.ldb, b)
	} else {
		for _, base := range bases {
			ADDQ(Imm(k.form.step()), base)
		}
		if k.bits == 512 {
			ADDQ(U32(uint32(64*k.panels)), b)
		} else {
			ADDQ(s.ldb, b)
		}
	}
	DECQ(left)
	JNZ(LabelRef("step" + id))
	fetched.end(s)
	Label("done" + id)
}

// factor is where the factor of row r of a block is.
func (k kernel) factor(s *state, bases []reg.Register, r int) Mem {
	if k.turned {
		return Mem{Base: bases[0], Disp: 4 * r}
	}
	at := Mem{Base: bases[r/3]}
	if r%3 > 0 {
		at.Index, at.Scale = s.lda, uint8(r%3)
	}
	return at
}

// row adds the numbers times a factor to the sums of a row.
func (k kernel) row(numbers, sums []reg.VecVirtual, at Mem) {
	if k.bits == 512 && len(numbers) == 1 && k.form == plain { // more vectors share one broadcast factor
		VFMADD231PS_BCST(at, numbers[0], sums[0])
		return
	}
	factor := k.vector()
	VBROADCASTSS(at, factor)
	for v, n := range numbers {
		if k.form == paired {
			evex.Dot(factor, n, sums[v])
		} else {
			VFMADD231PS(factor, n, sums[v])
		}
	}
}

// numbers reads what one step multiplies with the factors: a row of the panels.
func (k kernel) numbers(s *state, b reg.Register) []reg.VecVirtual {
	numbers := make([]reg.VecVirtual, k.vectors())
	for v := range numbers {
		numbers[v] = k.vector()
		if k.turned {
			k.load(s, k.at(b, v), v, numbers[v])
		} else {
			VMOVUPS(k.at(b, v), numbers[v])
		}
	}
	return numbers
}

// fetch is what brings the band after this one to the second cache, two
// lines in each step: bands come from memory once, in order, and where they are
// used for a few dozen rows, waiting for them costs up to a quarter of the time.
type fetch struct{ at, bytes reg.GPVirtual }

func (k kernel) fetch(s *state, id string) *fetch {
	if k.turned || k.bits != 512 || k.panels < 4 {
		return nil
	}
	f := &fetch{GP64(), GP64()}
	MOVQ(Mem{Base: s.args, Disp: ahead}, f.at)
	XORL(f.bytes.As32(), f.bytes.As32())
	CMPQ(f.at, Mem{Base: s.args, Disp: aheadEnd})
	JCC(LabelRef("fetched" + id))
	MOVL(U32(128), f.bytes.As32())
	Label("fetched" + id)
	return f
}

func (f *fetch) step(id string) {
	if f == nil {
		return
	}
	TESTL(f.bytes.As32(), f.bytes.As32())
	JZ(LabelRef("none" + id))
	PREFETCHT1(Mem{Base: f.at})
	PREFETCHT1(Mem{Base: f.at, Disp: 64})
	ADDQ(f.bytes, f.at)
	Label("none" + id)
}

func (f *fetch) end(s *state) {
	if f != nil {
		MOVQ(f.at, Mem{Base: s.args, Disp: ahead})
	}
}

// addBias adds the columns' bias, if there is one.
func (k kernel) addBias(s *state, sums [][]reg.VecVirtual, id string) {
	p := GP64()
	MOVQ(Mem{Base: s.args, Disp: bias}, p)
	TESTQ(p, p)
	JZ(LabelRef("plain" + id))
	for v := range k.vectors() {
		x := k.vector()
		k.load(s, k.at(p, v), v, x)
		for r := range sums {
			VADDPS(x, sums[r][v], sums[r][v])
		}
	}
	Label("plain" + id)
}

// cut makes negative sums zero, if that is wanted.
func (k kernel) cut(s *state, sums [][]reg.VecVirtual, id string) {
	CMPQ(Mem{Base: s.args, Disp: relu}, Imm(0))
	JEQ(LabelRef("signed" + id))
	zero := k.vector()
	VXORPS(zero, zero, zero)
	for r := range sums {
		for v := range sums[r] {
			VMAXPS(zero, sums[r][v], sums[r][v])
		}
	}
	Label("signed" + id)
}

// store writes the sums and leaves c at the next row.
func (k kernel) store(s *state, sums [][]reg.VecVirtual) {
	for r := range sums {
		for v, sum := range sums[r] {
			switch {
			case !k.masked || k.bits == 512 && v < k.vectors()-1:
				VMOVUPS(sum, k.at(s.c, v))
			case k.bits == 512:
				VMOVUPS(sum, s.k, k.at(s.c, v))
			default:
				VMASKMOVPS(sum, k.laneMask(s, v), k.at(s.c, v))
			}
		}
		ADDQ(s.ldc, s.c)
	}
}

// load reads a vector of columns, zeros for those that do not exist.
func (k kernel) load(s *state, from Mem, v int, x reg.VecVirtual) {
	switch {
	case !k.masked || k.bits == 512 && v < k.vectors()-1:
		VMOVUPS(from, x)
	case k.bits == 512:
		VMOVUPS_Z(from, s.k, x)
	default:
		VMASKMOVPS(from, k.laneMask(s, v), x)
	}
}

func (k kernel) laneMask(s *state, v int) reg.VecVirtual {
	p, m := GP64(), YMM()
	MOVQ(Mem{Base: s.args, Disp: low + 8*v}, p)
	VMOVUPS(Mem{Base: p}, m)
	return m
}
