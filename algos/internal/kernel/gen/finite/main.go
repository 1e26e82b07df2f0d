// Command finite generates the kernels that look for non-finite values.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// classes of VFPCLASS that are not finite: quiet NaN, both infinities,
// signalling NaN.
const nonFinite = 0x01 | 0x08 | 0x10 | 0x80

func main() {
	ConstraintExpr("amd64")
	avx512(32)
	avx512(64)
	Generate()
}

// avx512 generates the test whether whole blocks of 64 bytes hold finite values only.
func avx512(bits int) {
	TEXT(fmt.Sprintf("finite%dAVX512", bits), NOSPLIT, fmt.Sprintf("func(v *float%d, blocks int) bool", bits))
	Doc(fmt.Sprintf("finite%dAVX512 tells whether blocks of 64 bytes at v hold finite values only.", bits))
	ptr := Load(Param("v"), GP64())
	n := Load(Param("blocks"), GP64())
	class := func(at Mem, k reg.Register) {
		if bits == 32 {
			VFPCLASSPSZ(Imm(nonFinite), at, k)
		} else {
			VFPCLASSPDZ(Imm(nonFinite), at, k)
		}
	}
	k, all := K(), K()
	KXORW(all, all, all)
	Label("loop")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	class(Mem{Base: ptr}, k)
	KORW(k, all, all)
	ADDQ(Imm(64), ptr)
	DECQ(n)
	JMP(LabelRef("loop"))
	Label("done")
	ok, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	KORTESTW(all, all)
	SETEQ(ok.Addr)
	RET()
}
