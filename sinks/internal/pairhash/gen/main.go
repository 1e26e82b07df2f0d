// Command gen generates the kernel that compresses blocks of two SHA-256 messages at once.
//
// A SHA256RNDS2 waits four cycles for the one before it, and a unit could begin one at least
// every two cycles. So the instructions of two messages alternate, four rounds each, and take the
// time of one.
//
// Source: FIPS 180-4; Intel, "New Instructions Supporting the Secure Hash Algorithm", 2013.
package main

import (
	"math"
	"math/big"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const lanes = 2

// lane is where a message is kept.
type lane struct {
	state, data reg.Register
	abef, cdgh  reg.VecPhysical    // the state in the order of the instructions
	words       [4]reg.VecPhysical // the newest 16 words of the schedule
	before      Mem                // the state before the block
}

func main() {
	ConstraintExpr("amd64")
	constants, flip := tables()
	TEXT("blocksSHANI", NOSPLIT, "func(a *[8]uint32, p *byte, b *[8]uint32, q *byte, blocks int)")
	Doc("blocksSHANI adds blocks of 64 bytes at p to the state a, and as many at q to the state b. It needs SHA,",
		"SSSE3 and SSE4.1.")
	Pragma("noescape")
	all := [lanes]*lane{newLane("a", "p", reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6),
		newLane("b", "q", reg.X7, reg.X8, reg.X9, reg.X10, reg.X11, reg.X12)}
	spare, order := reg.X13, reg.X14
	blocks := Load(Param("blocks"), GP64())
	k := GP64()
	LEAQ(constants, k)
	MOVOU(flip, order)
	for _, l := range all {
		l.load()
	}
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	Label("loop")
	for _, l := range all {
		MOVOU(l.abef, l.before)
		MOVOU(l.cdgh, l.before.Offset(16))
		for i, w := range l.words {
			MOVOU(Mem{Base: l.data, Disp: 16 * i}, w)
			PSHUFB(order, w)
		}
	}
	for group := range 16 {
		for _, l := range all {
			l.rounds(group, Mem{Base: k, Disp: 16 * group}, spare)
		}
	}
	for _, l := range all {
		MOVOU(l.before, spare)
		PADDD(spare, l.abef)
		MOVOU(l.before.Offset(16), spare)
		PADDD(spare, l.cdgh)
		ADDQ(Imm(64), l.data)
	}
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	Label("done")
	for _, l := range all {
		l.store()
	}
	RET()
	Generate()
}

// tables writes the constants of the rounds, and the shuffle that makes words of bytes.
func tables() (constants, flip Mem) {
	constants = GLOBL("constants", RODATA|NOPTR)
	n := 0
	for prime := int64(2); n < 64; prime++ {
		if big.NewInt(prime).ProbablyPrime(0) {
			DATA(4*n, U32(cubeRoot(prime)))
			n++
		}
	}
	flip = GLOBL("flip", RODATA|NOPTR)
	for i := range 16 {
		DATA(i, U8(i^3))
	}
	return constants, flip
}

// cubeRoot returns the first 32 bits of the fraction of n's cube root, ⌊∛n·2³²⌋ mod 2³².
func cubeRoot(n int64) uint32 {
	want := new(big.Int).Lsh(big.NewInt(n), 96)
	root := uint64(math.Cbrt(float64(n)) * (1 << 32)) // near it
	above := func(r uint64) bool {
		b := new(big.Int).SetUint64(r)
		return b.Exp(b, big.NewInt(3), nil).Cmp(want) > 0
	}
	for above(root) {
		root--
	}
	for !above(root + 1) {
		root++
	}
	return uint32(root)
}

func newLane(state, data string, x ...reg.VecPhysical) *lane {
	l := &lane{state: Load(Param(state), GP64()), data: Load(Param(data), GP64()), abef: x[0], cdgh: x[1],
		before: AllocLocal(32)}
	copy(l.words[:], x[2:])
	return l
}

// load takes the state from memory.
func (l *lane) load() {
	first := l.words[0]
	MOVOU(Mem{Base: l.state}, first)            // lanes from the top: d c b a
	MOVOU(Mem{Base: l.state, Disp: 16}, l.cdgh) // h g f e
	PSHUFD(Imm(0xb1), first, first)             // c d a b
	PSHUFD(Imm(0x1b), l.cdgh, l.cdgh)           // e f g h
	MOVO(first, l.abef)
	PALIGNR(Imm(8), l.cdgh, l.abef)
	PBLENDW(Imm(0xf0), first, l.cdgh)
}

// store is the inverse of load.
func (l *lane) store() {
	first := l.words[0]
	PSHUFD(Imm(0x1b), l.abef, l.abef)
	PSHUFD(Imm(0xb1), l.cdgh, l.cdgh)
	MOVO(l.abef, first)
	PBLENDW(Imm(0xf0), l.cdgh, l.abef)
	PALIGNR(Imm(8), first, l.cdgh)
	MOVOU(l.abef, Mem{Base: l.state})
	MOVOU(l.cdgh, Mem{Base: l.state, Disp: 16})
}

// rounds does four rounds, whose words are l.words[group%4], and their part of the schedule: words
// 16 and on come of the four groups before.
func (l *lane) rounds(group int, constants Mem, spare reg.VecPhysical) {
	at := func(i int) reg.VecPhysical { return l.words[(group+i+4)%4] }
	sum := reg.X0 // words plus constants; SHA256RNDS2 takes no other register
	MOVO(at(0), sum)
	PADDD(constants, sum)
	SHA256RNDS2(sum, l.abef, l.cdgh)
	if group >= 3 && group < 15 {
		MOVO(at(0), spare)
		PALIGNR(Imm(4), at(-1), spare)
		PADDD(spare, at(1))
		SHA256MSG2(at(0), at(1))
	}
	PSHUFD(Imm(0x0e), sum, sum)
	SHA256RNDS2(sum, l.cdgh, l.abef)
	if group >= 1 && group < 13 {
		SHA256MSG1(at(0), at(-1))
	}
}
