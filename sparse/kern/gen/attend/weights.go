package main

import (
	"entropipe/models/mat/gen/unit"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in weightArgs.
const (
	sData = 8 * iota
	sStride
	sRows
	sPairs
	sScale
	sTop
	sTotal
	sFactor
)

// weights turns rows of scores into 2^((score-top)·scale).
type weights struct{ unit.Unit }

func (w weights) generate() {
	name := "weights" + w.Level()
	TEXT(name, NOSPLIT, "func(args *byte)")
	Pragma("noescape")
	Doc(name + " turns rows of scores into weights; args is a *weightArgs.")
	args := Load(Param("args"), GP64())
	s, rows := load(args, sData), load(args, sRows)
	top, total, factor := load(args, sTop), load(args, sTotal), load(args, sFactor)
	scale := w.Broadcast(Mem{Base: args, Disp: sScale})
	Label("row")
	largest := w.largest(args, s, top)
	// What earlier chunks have counts less by the same function of their top.
	old := w.Broadcast(Mem{Base: top})
	VMOVSS(largest.AsX(), Mem{Base: top})
	VSUBPS(largest, old, old)
	w.exp2(scale, old)
	VMOVSS(old.AsX(), Mem{Base: factor})
	sum := w.exponentials(args, s, scale, largest)
	VMOVSS(Mem{Base: total}, old.AsX())
	VMULSS(Mem{Base: factor}, old.AsX(), old.AsX())
	VADDSS(sum.AsX(), old.AsX(), old.AsX())
	VMOVSS(old.AsX(), Mem{Base: total})
	for _, at := range []reg.GPVirtual{top, total, factor} {
		ADDQ(Imm(4), at)
	}
	ADDQ(Mem{Base: args, Disp: sStride}, s)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// perPair is the number of vectors of two panels.
func (w weights) perPair() int { return 2 * panel / w.Lanes() }

// largest returns the row's largest score, or the old top if that is larger, in
// every lane.
func (w weights) largest(args, s reg.Register, top reg.GPVirtual) reg.VecVirtual {
	at, left := GP64(), load(args, sPairs)
	MOVQ(s, at)
	best := make([]reg.VecVirtual, w.perPair())
	for v := range best {
		best[v] = w.Vector()
		VMOVUPS(Mem{Base: at, Disp: v * w.Bytes()}, best[v])
	}
	JMP(LabelRef("larger"))
	Label("more")
	for v, b := range best {
		VMAXPS(Mem{Base: at, Disp: v * w.Bytes()}, b, b)
	}
	Label("larger")
	ADDQ(U32(4*2*panel), at)
	DECQ(left)
	JNZ(LabelRef("more"))
	for n := len(best); n > 1; n /= 2 {
		for v := range n / 2 {
			VMAXPS(best[v], best[v+n/2], best[v])
		}
	}
	x := w.Fold(best[0], func(a, b, to Op) { VMAXPS(a, b, to) })
	VMAXSS(Mem{Base: top}, x.AsX(), x.AsX())
	all := w.Vector()
	VBROADCASTSS(x.AsX(), all)
	return all
}

// exponentials replaces the row and returns its sum in the first lane. Even and
// odd panels are summed apart.
func (w weights) exponentials(args, s reg.Register, scale, largest reg.VecVirtual) reg.VecVirtual {
	at, left := GP64(), load(args, sPairs)
	MOVQ(s, at)
	sums := make([]reg.VecVirtual, w.perPair())
	for v := range sums {
		sums[v] = w.Zero()
	}
	Label("pair")
	group := w.perPair()
	if w.Unit == 256 { // fewer registers
		group = 2
	}
	for first := 0; first < w.perPair(); first += group {
		xs := make([]reg.VecVirtual, group)
		for v := range xs {
			xs[v] = w.Vector()
			VMOVUPS(Mem{Base: at, Disp: (first + v) * w.Bytes()}, xs[v])
			VSUBPS(largest, xs[v], xs[v])
		}
		w.exp2(scale, xs...)
		for v, x := range xs {
			VMOVUPS(x, Mem{Base: at, Disp: (first + v) * w.Bytes()})
			VADDPS(x, sums[first+v], sums[first+v])
		}
	}
	ADDQ(U32(4*2*panel), at)
	DECQ(left)
	JNZ(LabelRef("pair"))
	for v := range len(sums) / 2 {
		VADDPS(sums[v+len(sums)/2], sums[v], sums[v])
	}
	if w.Unit == 256 {
		// The halves of what is one vector of the other unit.
		VADDPS(sums[1], sums[0], sums[0])
	}
	return w.Fold(sums[0], func(a, b, to Op) { VADDPS(a, b, to) })
}

// exp2 replaces each number x <= 0 by 2^(x·scale); 0 where that is below 2^-126,
// and for what is not a number: minus infinity less minus infinity, where
// nothing has been seen. The product is not rounded before its whole part is
// taken away, and x is a difference of scores, so that the error is 3 ulp and
// 2^-24 of the exponent, however large the scores are. 2^f for |f| <= 1/2 is the
// polynomial 1+f·q(f) that is best in the relative sense, off by 9.2e-8; 2^0 is
// 1.
func (w weights) exp2(scale reg.VecVirtual, xs ...reg.VecVirtual) {
	n, p := make([]reg.VecVirtual, len(xs)), make([]reg.VecVirtual, len(xs))
	keep := make([]reg.Register, len(xs))
	for v, x := range xs {
		n[v], p[v] = w.Vector(), w.Vector()
		VMULPS(scale, x, n[v])
		if w.Unit == 512 {
			k := K()
			VCMPPS(U8(0x1d), w.Const(-126), n[v], k) // not less, ordered
			VRNDSCALEPS(U8(8), n[v], n[v])
			keep[v] = k
		} else {
			m := YMM()
			VCMPPS(U8(0x1d), w.Const(-126), n[v], m)
			VROUNDPS(U8(8), n[v], n[v])
			keep[v] = m
		}
		VFMSUB213PS(n[v], scale, x)
		VMOVUPS(w.Const(exp2q[len(exp2q)-1]), p[v])
	}
	for i := len(exp2q) - 2; i >= 0; i-- {
		for v, x := range xs {
			VFMADD213PS(w.Const(exp2q[i]), x, p[v])
		}
	}
	for v, x := range xs {
		if w.Unit == 512 {
			VSCALEFPS_Z(n[v], p[v], keep[v], x)
			continue
		}
		VCVTPS2DQ(n[v], n[v])
		VPADDD(unit.Bits(127), n[v], n[v])
		VPSLLD(U8(23), n[v], n[v])
		VMULPS(n[v], p[v], x)
		VANDPS(keep[v].(reg.VecVirtual), x, x)
	}
}

var exp2q = []float32{1, 0.6931469775987172, 0.2402224208463469, 0.055507337435743924, 0.009671512688176877,
	0.0013264727247141227}

// transpose packs the numbers of 8 keys, 8 at a time.
func transpose() {
	TEXT("transpose8AVX2", NOSPLIT, "func(dst, src *float32, stride, n int)")
	Pragma("noescape")
	Doc("transpose8AVX2 sets 8 numbers at dst, and at every 16th from there, 8·n times,",
		"to one number of each of the 8 rows at src; stride is in bytes.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	stride, n := Load(Param("stride"), GP64()), Load(Param("n"), GP64())
	row3, row6 := GP64(), GP64()
	LEAQ(Mem{Base: src, Index: stride, Scale: 2}, row3)
	ADDQ(stride, row3)
	LEAQ(Mem{Base: row3, Index: stride, Scale: 2}, row6)
	ADDQ(stride, row6)
	Label("block")
	rows := [8]Mem{
		{Base: src}, {Base: src, Index: stride, Scale: 1}, {Base: src, Index: stride, Scale: 2},
		{Base: row3}, {Base: row3, Index: stride, Scale: 1}, {Base: row3, Index: stride, Scale: 2},
		{Base: row6}, {Base: row6, Index: stride, Scale: 1},
	}
	var x, y [8]reg.VecVirtual
	for i := range x {
		x[i], y[i] = YMM(), YMM()
	}
	// Quarters of rows i and i+4 share a vector, so that no lane is crossed later.
	for i := range 4 {
		VMOVUPS(rows[i], x[i].AsX())
		VINSERTF128(U8(1), rows[i+4], x[i], x[i])
		high := rows[i]
		high.Disp = 16
		VMOVUPS(high, x[i+4].AsX())
		high = rows[i+4]
		high.Disp = 16
		VINSERTF128(U8(1), high, x[i+4], x[i+4])
	}
	for h := 0; h < 8; h += 4 {
		VUNPCKLPS(x[h+1], x[h], y[h])
		VUNPCKHPS(x[h+1], x[h], y[h+1])
		VUNPCKLPS(x[h+3], x[h+2], y[h+2])
		VUNPCKHPS(x[h+3], x[h+2], y[h+3])
		for i := range 2 {
			VSHUFPS(U8(0x44), y[h+2+i], y[h+i], x[h])
			VMOVUPS(x[h], Mem{Base: dst, Disp: 64 * (h + 2*i)})
			VSHUFPS(U8(0xee), y[h+2+i], y[h+i], x[h])
			VMOVUPS(x[h], Mem{Base: dst, Disp: 64 * (h + 2*i + 1)})
		}
	}
	for _, at := range []reg.Register{src, row3, row6} {
		ADDQ(Imm(32), at)
	}
	ADDQ(U32(8*4*panel), dst)
	DECQ(n)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// scale writes a row of sums times a factor.
func scale() {
	TEXT("scaleAVX2", NOSPLIT, "func(dst, src *float32, n int, by float32)")
	Pragma("noescape")
	Doc("scaleAVX2 sets 8·n numbers at dst to those at src times by.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	by := YMM()
	at, err := Param("by").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(at.Addr, by)
	Label("eight")
	x := YMM()
	VMULPS(Mem{Base: src}, by, x)
	VMOVUPS(x, Mem{Base: dst})
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), dst)
	DECQ(n)
	JNZ(LabelRef("eight"))
	VZEROUPPER()
	RET()
}

// fetch asks for rows that will be read soon: strides of columns of a fused
// matrix are longer than what hardware follows.
func fetch() {
	TEXT("fetch", NOSPLIT, "func(rows *float32, stride, n, lines int)")
	Pragma("noescape")
	Doc("fetch asks for the first lines of 64 bytes of n rows; stride is in bytes. What lies",
		"there need not exist.")
	row, stride := Load(Param("rows"), GP64()), Load(Param("stride"), GP64())
	n, lines := Load(Param("n"), GP64()), Load(Param("lines"), GP64())
	Label("row")
	at, left := GP64(), GP64()
	MOVQ(row, at)
	MOVQ(lines, left)
	Label("line")
	PREFETCHT1(Mem{Base: at})
	ADDQ(Imm(64), at)
	DECQ(left)
	JNZ(LabelRef("line"))
	ADDQ(stride, row)
	DECQ(n)
	JNZ(LabelRef("row"))
	RET()
}
