package main

import (
	"flag"
	"log"
	"os"
	"strings"

	"entropipe/models/mat/gen/evex"
	"entropipe/models/mat/gen/unit"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var pairs = flag.Bool("pairs", false, "the kernels for weights of bf16")

// generatePairs writes the file of -out, with what avo does not know as bytes.
func generatePairs() {
	for panels, rows := range heights {
		if panels > 0 {
			kernel{bits: 512, panels: panels, masked: true, form: paired}.generate(rows)
			kernel{bits: 512, panels: panels, masked: true, form: split}.generate(rows)
		}
	}
	for _, masked := range []bool{false, true} {
		kernel{bits: 256, panels: 1, masked: masked, form: split}.generate([]int{6, 4, 2, 1})
	}
	roundPairs()
	for _, u := range unit.Units {
		round(u)
	}
	Generate()
	out := flag.Lookup("out").Value.String()
	text, err := os.ReadFile(out)
	if err == nil {
		err = os.WriteFile(out, evex.Bytes(text), 0o666)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// rename is the name of the kernel of this form: mul4BF16 and mul4SplitAVX512.
func (f form) rename(name string) string {
	switch f {
	case paired:
		return strings.Replace(name, "AVX512", "BF16", 1)
	case split:
		return strings.Replace(name, "AVX", "SplitAVX", 1)
	}
	return name
}

// step is how many bytes of a row of a one step takes: one number, or a pair
// in as many bytes, or two.
func (f form) step() uint64 {
	if f == split {
		return 8
	}
	return 4
}

// splitStep takes a pair's rows apart, each with its zeros below as a float32,
// and multiplies one after the other.
func (k kernel) splitStep(s *state, sums [][]reg.VecVirtual, bases []reg.Register, b reg.Register, fetch func()) {
	numbers := make([]reg.VecVirtual, k.vectors())
	for half := range 2 {
		for v := range numbers {
			numbers[v] = k.vector()
			VMOVUPS(k.at(b, v), numbers[v])
			if half == 1 {
				VPSRLD(Imm(16), numbers[v], numbers[v])
			}
			VPSLLD(Imm(16), numbers[v], numbers[v])
		}
		if half == 0 {
			fetch()
		}
		for r := range sums {
			at := k.factor(s, bases, r)
			at.Disp += 4 * half
			k.row(numbers, sums[r], at)
		}
	}
}

// roundPairs generates what rounds a row of a to pairs.
func roundPairs() {
	TEXT("roundPairs", NOSPLIT, "func(dst *uint32, src *float32, n int)")
	Pragma("noescape")
	Doc("roundPairs sets dst to the pairs of bf16 that n numbers round to, with zeros up to the next 16 pairs.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64()).(reg.GPVirtual)
	low, high := ZMM(), ZMM()
	Label("whole")
	CMPQ(n, U8(32))
	JLT(LabelRef("part"))
	VMOVUPS(Mem{Base: src}, low)
	VMOVUPS(Mem{Base: src, Disp: 64}, high)
	evex.Round(low, high, low)
	VMOVUPS(low, Mem{Base: dst})
	ADDQ(U32(128), src)
	ADDQ(U32(64), dst)
	SUBQ(U8(32), n)
	JMP(LabelRef("whole"))
	Label("part")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	bits, first, second := GP64(), K(), K()
	MOVQ(n, reg.RCX)
	MOVL(U32(1), bits.As32())
	SHLQ(reg.CL, bits)
	DECQ(bits)
	KMOVW(bits.As32(), first)
	SHRQ(U8(16), bits)
	KMOVW(bits.As32(), second)
	VMOVUPS_Z(Mem{Base: src}, first, low)
	VMOVUPS_Z(Mem{Base: src, Disp: 64}, second, high)
	evex.Round(low, high, low)
	VMOVUPS(low, Mem{Base: dst})
	Label("end")
	VZEROUPPER()
	RET()
}

// round generates what rounds a row of a and leaves it float32.
func round(u unit.Unit) {
	TEXT("round"+u.Level(), NOSPLIT, "func(dst *uint32, src *float32, n int)")
	Pragma("noescape")
	Doc("round" + u.Level() + " sets dst to the bits of n numbers rounded to bf16.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64()).(reg.GPVirtual)
	each := func(m unit.Mask) {
		x, odd := u.Vector(), u.Vector()
		u.Load(Mem{Base: src}, m, x)
		VPSLLD(Imm(15), x, odd) // the bit that decides between equally near ones
		VPSRLD(Imm(31), odd, odd)
		VPADDD(odd, x, x)
		VPADDD(unit.Bits(0x7fff), x, x)
		VPSRLD(Imm(16), x, x)
		VPSLLD(Imm(16), x, x)
		u.Store(x, m, Mem{Base: dst})
	}
	Label("whole")
	CMPQ(n, U8(uint8(u.Lanes())))
	JLT(LabelRef("part"))
	each(nil)
	ADDQ(U8(uint8(u.Bytes())), src)
	ADDQ(U8(uint8(u.Bytes())), dst)
	SUBQ(U8(uint8(u.Lanes())), n)
	JMP(LabelRef("whole"))
	Label("part")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	each(u.First(n))
	Label("end")
	VZEROUPPER()
	RET()
}
