// Package evex writes instructions that neither avo nor Go's assembler knows,
// as bytes: those of AVX512_BF16, on whole vectors in registers.
package evex

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Prefixes that EVEX says in two bits.
const (
	f3 = 2
	f2 = 3
)

// operations are all of map 0F38, W0, 512 bits.
var operations = map[string]struct{ prefix, code byte }{
	"VDPBF16PS":      {f3, 0x52},
	"VCVTNE2PS2BF16": {f2, 0x72},
}

// Encode returns the bytes of an operation on registers Z0 to Z31, with the
// destination last, as Go writes it: a is what Intel calls the second source.
func Encode(name string, a, b, dst int) [6]byte {
	op, known := operations[name]
	if !known {
		panic("evex: " + name)
	}
	// Bits of register numbers beyond the third stand inverted in the prefix.
	bit := func(register, n int) byte { return byte(^register >> n & 1) }
	return [6]byte{
		0x62,
		bit(dst, 3)<<7 | bit(a, 4)<<6 | bit(a, 3)<<5 | bit(dst, 4)<<4 | 2,
		byte(^b&15)<<3 | 4 | op.prefix,
		2<<5 | bit(b, 4)<<3, // 512 bits, no mask
		op.code,
		3<<6 | byte(dst&7)<<3 | byte(a&7),
	}
}

// Dot adds to each of the 16 numbers of sum the two products of its pair in a
// with its pair in b.
func Dot(a, b, sum reg.VecVirtual) { emit("VDPBF16PS", a, b, sum, sum) }

// Round rounds 32 numbers to bf16, the nearest one, of equally near ones the
// even one: low's come first.
func Round(low, high, dst reg.VecVirtual) { emit("VCVTNE2PS2BF16", low, high, dst) }

func emit(name string, a, b, dst reg.VecVirtual, more ...operand.Op) {
	build.Instruction(&ir.Instruction{
		Opcode:   name,
		Operands: []operand.Op{a, b, dst},
		Inputs:   append([]operand.Op{a, b}, more...),
		Outputs:  []operand.Op{dst},
		ISA:      []string{"AVX512_BF16"},
	})
}

var written = regexp.MustCompile(`(?m)^\t(VDPBF16PS|VCVTNE2PS2BF16) +Z(\d+), Z(\d+), Z(\d+)$`)

// Bytes replaces the operations in the assembly that avo wrote.
func Bytes(assembly []byte) []byte {
	return written.ReplaceAllFunc(assembly, func(line []byte) []byte {
		part := written.FindSubmatch(line)
		var z [3]int
		for i := range z {
			z[i], _ = strconv.Atoi(string(part[2+i])) // digits
		}
		c := Encode(string(part[1]), z[0], z[1], z[2])
		return fmt.Appendf(nil, "\tLONG $0x%02x%02x%02x%02x; WORD $0x%02x%02x // %s Z%d, Z%d, Z%d",
			c[3], c[2], c[1], c[0], c[5], c[4], part[1], z[0], z[1], z[2])
	})
}
