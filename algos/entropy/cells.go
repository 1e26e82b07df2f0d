package entropy

import (
	"math"

	"entropipe/algos/geom"
)

// cell is a box with some points of the core.
type cell struct {
	lo    [3]float64 // the least coordinates of the points
	right float64    // the largest x
	count float64
}

// cells is a grid over the core. A search takes the points of a cell as one class, which
// is in all ranges that meet the cell's box. That can only lower a lower bound of the
// entropy. Boxes are those of the points, not of the grid, so no rounding matters.
type cells struct {
	side  [3]int
	lo    [3]float64
	scale [3]float64 // cells a unit of length
	cells []cell
}

// reset makes an empty grid of side cells on each axis over a box.
func (g *cells) reset(box *Box, dims, side int) {
	g.side = [3]int{1, 1, 1}
	size := 1
	for d := range dims {
		g.side[d], g.lo[d], g.scale[d] = side, box.Lo[d], 0
		if w := box.Hi[d] - box.Lo[d]; w > 0 && w <= math.MaxFloat64 {
			g.scale[d] = float64(side) / w
		}
		size *= side
	}
	g.cells = g.cells[:0]
	for range size {
		g.cells = append(g.cells, cell{lo: [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}, right: math.Inf(-1)})
	}
}

// slot returns the number of a coordinate's cell on an axis. Any answer is right.
func (g *cells) slot(d int, v float64) int {
	return min(max(int((v-g.lo[d])*g.scale[d]), 0), g.side[d]-1)
}

// add adds a point in the plane.
func (g *cells) add(x, y float64) {
	c := &g.cells[g.slot(1, y)*g.side[0]+g.slot(0, x)]
	c.count++
	c.lo[0], c.lo[1], c.right = min(c.lo[0], x), min(c.lo[1], y), max(c.right, x)
}

// addSpace adds a point in space.
func (g *cells) addSpace(x, y, z float64) {
	c := &g.cells[(g.slot(2, z)*g.side[1]+g.slot(1, y))*g.side[0]+g.slot(0, x)]
	c.count++
	c.lo[0], c.lo[1], c.lo[2] = min(c.lo[0], x), min(c.lo[1], y), min(c.lo[2], z)
}

// outsideLine adds the points in a trapezoid below a line to g, and appends the others.
func outsideLine[T geom.Float](dst []int32, g *cells, c geom.Cloud[T], flip float64, t trapezoid) []int32 {
	for i, v := range c.X {
		x, y := float64(v), flip*float64(c.Y[i])
		if x >= t.from && x <= t.to && y <= t.at(x) {
			g.add(x, y)
			continue
		}
		dst = append(dst, int32(i))
	}
	return dst
}

// outsideBox adds the points below a place on all axes to g, and appends the others.
func outsideBox[T geom.Float](dst []int32, g *cells, c geom.Cloud[T], top [3]float64) []int32 {
	for i, v := range c.X {
		x, y, z := float64(v), float64(c.Y[i]), 0.0
		if c.Z != nil {
			z = float64(c.Z[i])
		}
		if x <= top[0] && y <= top[1] && z <= top[2] {
			g.addSpace(x, y, z)
			continue
		}
		dst = append(dst, int32(i))
	}
	return dst
}
