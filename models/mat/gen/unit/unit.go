// Package unit lets one generator write a loop for AVX-512 and for AVX2.
package unit

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Unit is a vector unit, named by the bits of its vectors: 512 or 256.
type Unit int

// Units are all there are.
var Units = []Unit{512, 256}

// Level is how functions for the unit end their names.
func (u Unit) Level() string {
	if u == 512 {
		return "AVX512"
	}
	return "AVX2"
}

func (u Unit) Bytes() int { return int(u) / 8 }
func (u Unit) Lanes() int { return int(u) / 32 }

func (u Unit) Vector() reg.VecVirtual {
	if u == 512 {
		return ZMM()
	}
	return YMM()
}

func (u Unit) Zero() reg.VecVirtual {
	x := u.Vector()
	VXORPS(x, x, x)
	return x
}

func (u Unit) Broadcast(from Mem) reg.VecVirtual {
	x := u.Vector()
	VBROADCASTSS(from, x)
	return x
}

var constants = map[uint32]Mem{}

// Const is a vector of x in memory.
func (u Unit) Const(x float32) Mem { return Bits(math.Float32bits(x)) }

// Bits is a vector of 32 bits each in memory, long enough for either unit.
func Bits(b uint32) Mem {
	m, known := constants[b]
	if !known {
		m = GLOBL(fmt.Sprintf("x%08x", b), 8|16) // RODATA, NOPTR
		for i := range 8 {
			DATA(8*i, U64(uint64(b)<<32|uint64(b)))
		}
		constants[b] = m
	}
	return m
}

// Mask selects the first lanes of a vector; nil selects all.
type Mask reg.Register

// First returns the mask of the first n lanes, n from 0 to all.
func (u Unit) First(n reg.GPVirtual) Mask {
	if u == 512 {
		bits, k := GP64(), K()
		MOVQ(n, reg.RCX)
		MOVL(U32(1), bits.As32())
		SHLQ(reg.CL, bits)
		DECQ(bits)
		KMOVW(bits.As32(), k)
		return k
	}
	at, table, m := GP64(), GP64(), YMM()
	LEAQ(lanes(), table)
	MOVQ(n, at)
	NEGQ(at)
	VMOVUPS(Mem{Base: table, Index: at, Scale: 4, Disp: 32}, m)
	return m
}

var laneTable *Mem

// lanes is a table of 8 lanes that are selected and 8 that are not.
func lanes() Mem {
	if laneTable == nil {
		m := GLOBL("lanes", 8|16) // RODATA, NOPTR
		laneTable = &m
		for i := range 4 {
			DATA(8*i, U64(math.MaxUint64))
		}
		for i := range 4 {
			DATA(32+8*i, U64(0))
		}
	}
	return *laneTable
}

var placeTable *Mem

// Places are the powers of 2 from 1 to 128 in memory.
func Places() Mem {
	if placeTable == nil {
		m := GLOBL("places", 8|16) // RODATA, NOPTR
		placeTable = &m
		for i := range 4 {
			DATA(8*i, U64(2<<(2*i)<<32|1<<(2*i)))
		}
	}
	return *placeTable
}

// Load reads x, zeros where the mask does not select; what lies there is not
// touched.
func (u Unit) Load(from Mem, m Mask, x reg.VecVirtual) {
	switch {
	case m == nil:
		VMOVUPS(from, x)
	case u == 512:
		VMOVUPS_Z(from, m, x)
	default:
		VMASKMOVPS(from, m, x)
	}
}

// Store writes the lanes of x that the mask selects.
func (u Unit) Store(x reg.VecVirtual, m Mask, to Mem) {
	switch {
	case m == nil:
		VMOVUPS(x, to)
	case u == 512:
		VMOVUPS(x, m, to)
	default:
		VMASKMOVPS(x, m, to)
	}
}

// Fold reduces x to its first lane: halves are combined until one is left.
func (u Unit) Fold(x reg.VecVirtual, combine func(a, b, to Op)) reg.VecVirtual {
	y := x.AsY()
	if u == 512 {
		t := YMM()
		VEXTRACTF64X4(U8(1), x, t)
		combine(x.AsY(), t, t)
		y = t
	}
	t := XMM()
	VEXTRACTF128(U8(1), y, t)
	combine(y.(reg.VecVirtual).AsX(), t, t)
	s := XMM()
	VPERMILPS(U8(0x4e), t, s)
	combine(t, s, s)
	VPERMILPS(U8(0xb1), s, t)
	combine(s, t, t)
	return t
}

// Exp replaces x by e^x, within 1.02 ulp, infinite above 88.8 and denormal or
// zero below -87.3.
func (u Unit) Exp(x reg.VecVirtual) {
	VMINPS(u.Const(89), x, x) // e^89 overflows by itself
	VMAXPS(u.Const(-104), x, x)
	n, p := u.reduce(x)
	VADDPS(u.Const(1), p, p)
	if u == 512 {
		VSCALEFPS(n, p, x)
		return
	}
	// 2ⁿ in two factors, since n reaches beyond the exponents of normal
	// numbers; only the second multiplication can round.
	half := YMM()
	VCVTPS2DQ(n, n)
	VPSRAD(U8(1), n, half)
	VPSUBD(half, n, n)
	power(half)
	power(n)
	VMULPS(half, p, p)
	VMULPS(n, p, x)
}

// ExpM1 replaces x by e^x-1, for x from -80 to 80, with an error relative to
// the result: 2ⁿ·(e^r-1)+(2ⁿ-1), of which the first is small where x is.
func (u Unit) ExpM1(x reg.VecVirtual) {
	n, p := u.reduce(x)
	if u == 512 {
		one := u.Vector()
		VMOVUPS(u.Const(1), one)
		VSCALEFPS(n, one, n)
	} else {
		VCVTPS2DQ(n, n)
		power(n)
	}
	VADDPS(u.Const(-1), n, x)
	VFMADD231PS(p, n, x)
}

// reduce returns n and e^r-1 with x = n·ln 2+r, n the nearest integer to
// x/ln 2. e^r-1 for |r| <= ln 2/2 is r+r²·p(r), p the best polynomial of
// degree 4 in the relative sense for e^r, which is off by 3.1e-9.
func (u Unit) reduce(x reg.VecVirtual) (n, p reg.VecVirtual) {
	n, p = u.Vector(), u.Vector()
	VMULPS(u.Const(math.Log2E), x, n)
	if u == 512 {
		VRNDSCALEPS(U8(8), n, n)
	} else {
		VROUNDPS(U8(8), n, n)
	}
	ln2 := float32(math.Ln2)
	VFNMADD231PS(u.Const(ln2), n, x)
	VFNMADD231PS(u.Const(float32(math.Ln2-float64(ln2))), n, x)
	u.Polynomial(p, x, 0.4999999345057988, 0.1666652067306389, 0.04166838755861632, 0.008368711859902884,
		0.0013814609044174855)
	square := u.Vector()
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	return n, p
}

// power replaces integers by the powers of 2.
func power(n reg.VecVirtual) {
	VPADDD(Bits(127), n, n)
	VPSLLD(U8(23), n, n)
}

// Polynomial sets p to the sum of c[i]·xⁱ.
func (u Unit) Polynomial(p, x reg.VecVirtual, c ...float64) {
	VMOVUPS(u.Const(float32(c[len(c)-1])), p)
	for i := len(c) - 2; i >= 0; i-- {
		VFMADD213PS(u.Const(float32(c[i])), x, p)
	}
}
