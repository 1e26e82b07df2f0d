package kernel

import "math"

//go:generate go run -C gen ./plane -out ../plane_amd64.s -stubs ../plane_amd64.go -pkg kernel

// Cells is the number of cells along one edge of the cube of Planes, a power of two, and
// CubeCells the number of all cells on its six sides.
const (
	Cells     = 16
	CubeCells = 6 * Cells * Cells
)

// Planes is a star-shaped region around a centre. A cube around it has Cells ×
// Cells cells a side; in the pyramid from the centre through a cell, one plane
// bounds the region.
//
// With v = (p - Center)·Scale, axis by axis, a point p is in the region if no coordinate
// of v exceeds 1 in magnitude and n·v < 1, where n is the normal of v's cell. Cells
// are numbered by side (+x, -x, +y, -y, +z, -z), then by the first of the other
// two coordinates, then by the second. A NaN as normal leaves nothing inside.
type Planes[T float32 | float64] struct {
	Center, Scale [3]T
	Normal        [3][CubeCells]float32
}

// Beyond sets bit i of mask for every point i that is not in the region, and clears all
// other bits of the first ceil(len(x)/64) words of mask. x, y and z have equal lengths
// and finite values. For float64 only the first subtraction and multiplication have that
// precision; the other operations are in float32. Cost: one read of the points, about
// 3 ns each with vector units, 12 ns without.
func Beyond[T float32 | float64](p *Planes[T], x, y, z []T, mask []uint64) {
	blocks := 0
	if level > Portable {
		blocks = len(x) / 64
		if blocks > 0 {
			beyondBlocks(p, &x[0], &y[0], &z[0], blocks, &mask[0])
		}
	}
	beyond(p, x[64*blocks:], y[64*blocks:], z[64*blocks:], mask[blocks:])
}

// beyondLoops are the vector forms of Beyond at a level.
type beyondLoops struct {
	loop32 func(p, x, y, z *float32, blocks int, mask *uint64)
	loop64 func(p, x, y, z *float64, blocks int, mask *uint64)
}

var beyondLevels = [...]beyondLoops{
	AVX2:   {beyond32AVX2, beyond64AVX2},
	AVX512: {beyond32AVX512, beyond64AVX512},
}

// beyondBlocks is Beyond for blocks of 64 points, in the vector form for T.
func beyondBlocks[T float32 | float64](p *Planes[T], x, y, z *T, blocks int, mask *uint64) {
	loops := &beyondLevels[level]
	if p, single := any(&p.Center[0]).(*float32); single {
		loops.loop32(p, any(x).(*float32), any(y).(*float32), any(z).(*float32), blocks, mask)
		return
	}
	loops.loop64(any(&p.Center[0]).(*float64), any(x).(*float64), any(y).(*float64), any(z).(*float64), blocks, mask)
}

// beyond is the portable form of Beyond.
func beyond[T float32 | float64](p *Planes[T], x, y, z []T, mask []uint64) {
	y, z = y[:len(x)], z[:len(x)]
	for k := 0; k < len(x); k += 64 {
		word := uint64(0)
		for i := k; i < min(k+64, len(x)); i++ {
			u := float32((x[i] - p.Center[0]) * p.Scale[0])
			v := float32((y[i] - p.Center[1]) * p.Scale[1])
			w := float32((z[i] - p.Center[2]) * p.Scale[2])
			if !p.inside(u, v, w) {
				word |= 1 << (i - k)
			}
		}
		mask[k/64] = word
	}
}

// tiny is the least divisor: the centre itself would divide by 0.
const tiny = 0x1p-100

func (p *Planes[T]) inside(u, v, w float32) bool {
	if !(magnitude(u) <= 1 && magnitude(v) <= 1 && magnitude(w) <= 1) {
		return false
	}
	at := CellOf(u, v, w)
	return float32(float32(p.Normal[0][at]*u)+float32(p.Normal[1][at]*v))+float32(p.Normal[2][at]*w) < 1
}

// CellOf returns the cell of a direction whose coordinates are finite.
func CellOf(u, v, w float32) int {
	au, av, aw := magnitude(u), magnitude(v), magnitude(w)
	side, m, major, a, b := 4, aw, w, u, v
	switch {
	case au >= av && au >= aw:
		side, m, major, a, b = 0, au, u, v, w
	case av >= aw:
		side, m, major, a, b = 2, av, v, u, w
	}
	if m < tiny {
		m = tiny
	}
	side += int(math.Float32bits(major) >> 31)
	scale := Cells / 2 / m
	i := min(int32(float32(a*scale)+Cells/2), Cells-1)
	j := min(int32(float32(b*scale)+Cells/2), Cells-1)
	return (side*Cells+int(i))*Cells + int(j)
}

func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }
