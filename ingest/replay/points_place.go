package replay

import (
	"fmt"
	"math"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// placer puts points at the positions that column point_idx names, and a point without coordinates
// at every other position: such a point is what an operator drops.
type placer struct {
	cloud codec.Cloud
	seen  []uint64 // a bit for each position
}

// place returns p with its points at the positions idx among n, which is p itself where they stand
// there. n < 0: the last position ends the cloud. limit bounds the bytes of the columns. The
// result is valid until the next call.
func (l *placer) place(p *codec.Points, idx []int64, n, limit int64) (*codec.Points, error) {
	ascending, last := true, int64(-1)
	for _, at := range idx {
		ascending = ascending && at > last
		last = max(last, at)
		if at < 0 || at >= math.MaxInt32 || n >= 0 && at >= n {
			return nil, fmt.Errorf("point_idx %s is no position among %d points", indexName(at), n)
		}
	}
	if n < 0 {
		n = last + 1
	}
	if ascending && n == int64(len(idx)) {
		return p, nil
	}
	if width := pointWidth(p); n*width > limit {
		return nil, tooManyPoints(n, width, limit)
	}
	if !ascending {
		if err := l.distinct(idx, int(n)); err != nil {
			return nil, err
		}
	}
	l.cloud.Reset()
	c := &l.cloud
	c.Double = p.Double
	if p.Double {
		c.Cloud64 = scatterCloud(c.Float64s, p.Cloud64, idx, int(n))
	} else {
		c.Cloud32 = scatterCloud(c.Float32s, p.Cloud32, idx, int(n))
	}
	nan := float32(math.NaN())
	c.Points.Intensity = scatter(c.Float32s, codec.Intensity, p.Intensity, idx, int(n), nan)
	c.Elongation = scatter(c.Float32s, codec.Elongation, p.Elongation, idx, int(n), nan)
	c.TOffsetNs = scatter(c.Int64s, codec.TOffset, p.TOffsetNs, idx, int(n), codec.NoInt64)
	to := c.Extra.Int32s()
	for i, from := range p.Extra.Int32s() {
		*to[i] = scatter(c.Int32s, int32Roles[i], *from, idx, int(n), codec.NoInt32)
	}
	return &c.Points, nil
}

// int32Roles are the roles of the columns that codec.Extra.Int32s returns.
var int32Roles = [codec.Int32Columns]codec.Role{codec.Ring, codec.Return, codec.Laser, codec.Label, codec.Red,
	codec.Green, codec.Blue}

func indexName(at int64) string {
	if at == codec.NoInt64 {
		return "null"
	}
	return fmt.Sprint(at)
}

// distinct returns an error if a position comes twice.
func (l *placer) distinct(idx []int64, n int) error {
	l.seen = resize(l.seen, (n+63)/64)
	clear(l.seen)
	for _, at := range idx {
		if l.seen[at/64]>>(at%64)&1 != 0 {
			return fmt.Errorf("point_idx %d comes twice", at)
		}
		l.seen[at/64] |= 1 << (at % 64)
	}
	return nil
}

// pointWidth returns the bytes of a point, counted as fillCloud counts them.
func pointWidth(p *codec.Points) int64 {
	width := int64(16)
	for _, is := range []bool{p.HasZ(), p.Intensity != nil, p.Elongation != nil, p.TOffsetNs != nil} {
		if is {
			width += 8
		}
	}
	for _, v := range p.Extra.Int32s() {
		if *v != nil {
			width += 8
		}
	}
	return width
}

func scatterCloud[T geom.Float](memory func(codec.Role, int) []T, from geom.Cloud[T], idx []int64,
	n int) (c geom.Cloud[T]) {
	nan := T(math.NaN())
	c.X = scatter(memory, codec.X, from.X, idx, n, nan)
	c.Y = scatter(memory, codec.Y, from.Y, idx, n, nan)
	c.Z = scatter(memory, codec.Z, from.Z, idx, n, nan)
	return c
}

// scatter returns a column of n values with from[k] at idx[k], and null elsewhere; nil if from is.
func scatter[T any](memory func(codec.Role, int) []T, role codec.Role, from []T, idx []int64, n int, null T) []T {
	if from == nil {
		return nil
	}
	to := memory(role, n)
	for i := range to {
		to[i] = null
	}
	for k, at := range idx {
		to[at] = from[k]
	}
	return to
}
