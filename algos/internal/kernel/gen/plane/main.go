// Command plane generates the kernels that test points against the planes of
// the cells of a cube.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// As in package kernel.
const (
	cells     = 16
	sideCells = cells * cells
	cubeCells = 6 * sideCells
	tiny      = 0x1p-100
)

// Comparisons that are false for NaN.
const (
	equal     = 0x00
	less      = 0x11
	lessEqual = 0x12
)

func main() {
	ConstraintExpr("amd64")
	avx512(32)
	avx512(64)
	avx2(32)
	avx2(64)
	Generate()
}

type frame struct {
	bits            int
	planes, x, y, z reg.Register
	blocks, mask    reg.GPVirtual
}

func begin(unit string, bits int) frame {
	name := fmt.Sprintf("beyond%d%s", bits, unit)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(p, x, y, z *float%d, blocks int, mask *uint64)", bits))
	Doc(name + " is beyond for blocks of 64 points; p points to a Planes.")
	load := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	return frame{bits, load("p"), load("x"), load("y"), load("z"), load("blocks"), load("mask")}
}

// loop runs body for every lanes points, and steps of it a block.
func (f frame) loop(lanes int, body func()) {
	steps := 64 / lanes
	SHLQ(Imm(uint64(math.Log2(float64(steps)))), f.blocks)
	Label("loop")
	TESTQ(f.blocks, f.blocks)
	JZ(LabelRef("done"))
	body()
	for _, p := range []reg.Register{f.x, f.y, f.z} {
		ADDQ(U32(uint32(lanes*f.bits/8)), p)
	}
	ADDQ(U32(uint32(lanes/8)), f.mask)
	DECQ(f.blocks)
	JMP(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}

func (f frame) center(axis int) Mem { return Mem{Base: f.planes, Disp: axis * f.bits / 8} }
func (f frame) scale(axis int) Mem  { return Mem{Base: f.planes, Disp: (3 + axis) * f.bits / 8} }
func (f frame) normal(axis int, cell reg.Register) Mem {
	return Mem{Base: f.planes, Disp: 6*f.bits/8 + axis*4*cubeCells, Index: cell, Scale: 4}
}

func floatBits(v float32) uint32 { return math.Float32bits(v) }

func avx512(bits int) {
	f := begin("AVX512", bits)
	broadcast := VBROADCASTSS
	if bits == 64 {
		broadcast = VBROADCASTSD
	}
	var center, scale [3]reg.VecVirtual
	for k := range 3 {
		center[k], scale[k] = ZMM(), ZMM()
		broadcast(f.center(k), center[k])
		broadcast(f.scale(k), scale[k])
	}
	constant := func(v uint32) reg.VecVirtual {
		g, z := GP32(), ZMM()
		MOVL(U32(v), g)
		VPBROADCASTD(g, z)
		return z
	}
	magnitude, one, least := constant(1<<31-1), constant(floatBits(1)), constant(floatBits(tiny))
	half, last := constant(floatBits(cells/2)), constant(cells-1)
	sides := [3]reg.VecVirtual{constant(0), constant(2 * sideCells), constant(4 * sideCells)}

	f.loop(16, func() {
		var v, size [3]reg.VecVirtual
		for k, p := range []reg.Register{f.x, f.y, f.z} {
			v[k], size[k] = ZMM(), ZMM()
			if bits == 32 {
				VSUBPS(center[k], loaded32(p), v[k])
				VMULPS(scale[k], v[k], v[k])
			} else {
				wide, low, high := ZMM(), YMM(), YMM()
				for i, half := range []reg.VecVirtual{low, high} {
					VMOVUPD(Mem{Base: p, Disp: 64 * i}, wide)
					VSUBPD(center[k], wide, wide)
					VMULPD(scale[k], wide, wide)
					VCVTPD2PS(wide, half)
				}
				VINSERTF64X4(Imm(1), high, low.AsZ(), v[k])
			}
			VPANDD(magnitude, v[k], size[k])
		}
		m := ZMM()
		VMAXPS(size[0], size[1], m)
		VMAXPS(size[2], m, m)
		near, isX, isY, isXY := K(), K(), K(), K()
		VCMPPS(Imm(lessEqual), one, m, near)
		VCMPPS(Imm(equal), m, size[0], isX)
		VCMPPS(Imm(equal), m, size[1], isY)
		KORW(isX, isY, isXY)
		a, b, major, side := ZMM(), ZMM(), ZMM(), ZMM()
		VBLENDMPS(v[1], v[0], isX, a)
		VBLENDMPS(v[2], v[1], isXY, b)
		VBLENDMPS(v[1], v[2], isY, major)
		VMOVAPS(v[0], isX, major)
		VPBLENDMD(sides[1], sides[2], isY, side)
		VMOVDQA32(sides[0], isX, side)
		VPSRLD(Imm(31), major, major)
		VPSLLD(Imm(8), major, major)
		VPADDD(major, side, side)
		VMAXPS(least, m, m)
		VDIVPS(m, half, m)
		for _, c := range []reg.VecVirtual{a, b} {
			VMULPS(m, c, c) // rounded, not fused: as the portable form does
			VADDPS(half, c, c)
			VCVTTPS2DQ(c, c)
			VPMINSD(last, c, c)
		}
		VPSLLD(Imm(4), a, a)
		VPADDD(a, side, side)
		VPADDD(b, side, side)
		for k := range 3 {
			n, lanes := ZMM(), K()
			VPXORD(n, n, n)
			KMOVW(near, lanes) // a gather eats its mask
			VGATHERDPS(f.normal(k, side), lanes, n)
			VMULPS(n, v[k], v[k])
		}
		VADDPS(v[1], v[0], v[0])
		VADDPS(v[2], v[0], v[0])
		VCMPPS(Imm(less), one, v[0], near, near)
		KNOTW(near, near)
		KMOVW(near, Mem{Base: f.mask})
	})
}

func loaded32(p reg.Register) reg.VecVirtual {
	z := ZMM()
	VMOVUPS(Mem{Base: p}, z)
	return z
}

// vector is a constant in memory, eight times.
func vector(name string, v uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(v))
	}
	return m
}

var constants map[string]Mem

// shared makes the constants once for both widths.
func shared() map[string]Mem {
	if constants == nil {
		constants = map[string]Mem{
			"magnitude": vector("planeMagnitude", 1<<31-1),
			"one":       vector("planeOne", floatBits(1)),
			"least":     vector("planeLeast", floatBits(tiny)),
			"half":      vector("planeHalf", floatBits(cells/2)),
			"last":      vector("planeLast", cells-1),
			"y":         vector("planeY", 2*sideCells),
			"z":         vector("planeZ", 4*sideCells),
		}
	}
	return constants
}

func avx2(bits int) {
	c := shared()
	f := begin("AVX2", bits)
	f.loop(8, func() {
		var v, size [3]reg.VecVirtual
		for k, p := range []reg.Register{f.x, f.y, f.z} {
			v[k] = YMM()
			center, scale := YMM(), YMM()
			if bits == 32 {
				VBROADCASTSS(f.center(k), center)
				VBROADCASTSS(f.scale(k), scale)
				VMOVUPS(Mem{Base: p}, v[k])
				VSUBPS(center, v[k], v[k])
				VMULPS(scale, v[k], v[k])
			} else {
				VBROADCASTSD(f.center(k), center)
				VBROADCASTSD(f.scale(k), scale)
				wide, low, high := YMM(), XMM(), XMM()
				for i, half := range []reg.VecVirtual{low, high} {
					VMOVUPD(Mem{Base: p, Disp: 32 * i}, wide)
					VSUBPD(center, wide, wide)
					VMULPD(scale, wide, wide)
					VCVTPD2PSY(wide, half)
				}
				VINSERTF128(Imm(1), high, low.AsY(), v[k])
			}
			size[k] = YMM()
			VANDPS(c["magnitude"], v[k], size[k])
		}
		m := YMM()
		VMAXPS(size[0], size[1], m)
		VMAXPS(size[2], m, m)
		near, isX, isY := YMM(), size[0], size[1]
		VCMPPS(Imm(lessEqual), c["one"], m, near)
		VCMPPS(Imm(equal), m, size[0], isX)
		VCMPPS(Imm(equal), m, size[1], isY)
		a, b, major, side := YMM(), YMM(), YMM(), YMM()
		VBLENDVPS(isX, v[1], v[0], a)
		VBLENDVPS(isY, v[1], v[2], major)
		VBLENDVPS(isX, v[0], major, major)
		VMOVUPS(c["z"], side)
		VBLENDVPS(isY, c["y"], side, side)
		VANDNPS(side, isX, side)
		VORPS(isX, isY, isY)
		VBLENDVPS(isY, v[2], v[1], b)
		VPSRLD(Imm(31), major, major)
		VPSLLD(Imm(8), major, major)
		VPADDD(major, side, side)
		VMAXPS(c["least"], m, m)
		half := YMM()
		VMOVUPS(c["half"], half)
		VDIVPS(m, half, m)
		for _, w := range []reg.VecVirtual{a, b} {
			VMULPS(m, w, w) // rounded, not fused: as the portable form does
			VADDPS(half, w, w)
			VCVTTPS2DQ(w, w)
			VPMINSD(c["last"], w, w)
		}
		VPSLLD(Imm(4), a, a)
		VPADDD(a, side, side)
		VPADDD(b, side, side)
		for k := range 3 {
			n, lanes := YMM(), YMM()
			VXORPS(n, n, n)
			VMOVAPS(near, lanes) // a gather eats its mask
			VGATHERDPS(lanes, f.normal(k, side), n)
			VMULPS(n, v[k], v[k])
		}
		VADDPS(v[1], v[0], v[0])
		VADDPS(v[2], v[0], v[0])
		VCMPPS(Imm(less), c["one"], v[0], v[0])
		VANDPS(near, v[0], v[0])
		out := GP32()
		VMOVMSKPS(v[0], out)
		NOTL(out)
		MOVB(out.As8(), Mem{Base: f.mask})
	})
}
