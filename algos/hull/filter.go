package hull

import (
	"math"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// filter recognises points strictly inside a convex polygon. It divides an
// interval of x into buckets. For each bucket it holds one chord of the polygon's
// upper chain and one of its lower chain, moved inwards by more than all rounding
// errors together. The coarse table is small enough for a kernel's registers.
// Points that pass it are tested against the fine table, which is made when it is
// first needed.
//
// With d = x - origin, a point falls into bucket round(d*scale) + half the
// number of buckets. It is inside when left < d < right and
// lowSlope*d + low < y < upSlope*d + up, all computed in T: widening would cost
// more than the filter. Inner buckets are equally wide; the outer two are narrow,
// since a chain may be so steep there that no chord is near it.
//
// Why that is sound. Let W be the width of the interval, u the unit roundoff of
// T, s the slope of a chord and r, t the slopes beside it; |d| <= W. Heights are
// computed in float64. The errors of a line at d, compared with the true chain:
//   - d is off by u*W, its place among the buckets by 3u*W at most, and so are
//     the buckets' bounds; left and right are moved inwards by 8u*W, so that
//     no point beyond the interval passes. The line of a bucket extended by
//     8u*W beyond its bound rises above the chain, concave and at least as high
//     as the next line, by no more than 8u*W*(|s|+|r|+|t|);
//   - a computed height is the chain's height up to 6u*W to the left or right,
//     which moves the line by 6u*W*|s|, and off by 8u of the numbers that were
//     added to get it, its "size";
//   - a slope rounded twice, 3u*W*|s|, and an offset, 3u*(|height| + |s|*W);
//   - slope*d + offset, 3u*W*|s| and 2u*(|height| + |s|*W).
//
// Together that is less than 28u*W*(|s|+|r|+|t|) + 13u*sizes; the margin has 32 and
// 16. Underflow adds less than tiny, because of the scales of x and y. Whether a
// multiplication is fused with an addition does not matter.
type filter[T geom.Float] struct {
	scales
	coarse kernel.Chords[T]
	fine   fine[T]
	made   bool // the fine table belongs to the present polygon
}

// fine is the second table. The four numbers that a point needs lie side by side in
// memory.
type fine[T geom.Float] struct {
	origin, scale, left, right T
	line                       [fineBuckets]lines[T]
}

type lines[T geom.Float] struct{ upSlope, up, lowSlope, low T }

const fineBuckets = 256

// Each outer bucket of a table takes this part of the interval.
const (
	coarseEnd = 1.0 / 256
	fineEnd   = 1.0 / 4096
)

// scales bring a cloud into the middle of T's range, and bound the interval to
// exclude points far from most others. They are computed from a sample and stay the
// same for the whole cloud.
type scales struct {
	x, y     float64 // powers of two, 1 for all but extreme clouds
	from, to float64 // the largest interval, in scaled x
}

// table is a filter's table before it is rounded to T.
type table struct {
	origin, scale float64
	left, right   float64
	width         float64
	unit, tiny    float64
	buckets       int
	bound         [fineBuckets + 1]float64 // the buckets' bounds, relative to origin
	upper, lower  chords
}

// chords hold one chain's heights at the buckets' bounds, the sizes of these
// heights, and the slopes between them, with 0 before the first and after the last.
type chords struct {
	height, size [fineBuckets + 1]float64
	slope        [fineBuckets + 2]float64
}

// build makes the coarse table of the convex polygon h, counter-clockwise from the
// lexicographic minimum. It returns false where h has fewer than three vertices,
// where the interval is no wider than its rounding errors, and where coordinates
// are beyond the scales.
func (f *filter[T]) build(h []vertex[T]) bool {
	var t table
	f.made = false
	if !makeTable(&t, f.scales, h, kernel.Buckets, coarseEnd) {
		return false
	}
	c := &f.coarse
	c.Origin, c.Scale, c.Left, c.Right = T(t.origin), T(t.scale), T(t.left), T(t.right)
	for j := range kernel.Buckets {
		c.UpSlope[j], c.Up[j] = line[T](&t, &t.upper, j, -1)
		c.LowSlope[j], c.Low[j] = line[T](&t, &t.lower, j, 1)
	}
	return true
}

// refine makes the fine table of h, the polygon of the last build.
func (f *filter[T]) refine(h []vertex[T]) {
	var t table
	f.made = true
	g := &f.fine
	if !makeTable(&t, f.scales, h, fineBuckets, fineEnd) {
		g.left, g.right = 0, 0 // nothing is inside
		return
	}
	g.origin, g.scale, g.left, g.right = T(t.origin), T(t.scale), T(t.left), T(t.right)
	for j := range g.line {
		b := &g.line[j]
		b.upSlope, b.up = line[T](&t, &t.upper, j, -1)
		b.lowSlope, b.low = line[T](&t, &t.lower, j, 1)
	}
}

// inside reports whether a point, in scaled coordinates, is certainly inside. No
// comparison here is true for NaN or infinity, so such a point is never inside.
func (f *fine[T]) inside(x, y T) bool {
	d := x - f.origin
	if !(d > f.left && d < f.right) {
		return false
	}
	b := &f.line[uint8(int32(T(d*f.scale)+(fineBuckets/2+0.5)))]
	return y < T(b.upSlope*d)+b.up && y > T(b.lowSlope*d)+b.low
}

// makeTable computes bounds, heights and slopes for a number of buckets. Each of
// the outer two buckets takes the fraction end of the interval.
func makeTable[T geom.Float](t *table, s scales, h []vertex[T], buckets int, end float64) bool {
	if len(h) < 3 {
		return false
	}
	right := 0
	for i, v := range h {
		if x, y := float64(v.x)*s.x, float64(v.y)*s.y; x-x != 0 || y-y != 0 {
			return false // a vertex found after the scales were computed, too far away for them
		}
		if v.x > h[right].x || v.x == h[right].x && v.y > h[right].y {
			right = i
		}
	}
	t.buckets = buckets
	t.unit, t.tiny = 0x1p-53, 0x1p-1000
	if is32[T]() {
		t.unit, t.tiny = 0x1p-24, 0x1p-120
	}
	from, to := max(s.from, float64(h[0].x)*s.x), min(s.to, float64(h[right].x)*s.x)
	wide := (to - from) * (1 - 2*end) / float64(buckets-2)
	t.origin = float64(T((from+to)/2 + wide/2)) // the middle of bucket buckets/2
	t.scale = float64(T(1 / wide))
	from, to = from-t.origin, to-t.origin
	t.width = to - from
	for j := range buckets + 1 {
		t.bound[j] = (float64(j-buckets/2) - 0.5) / t.scale
	}
	// The outer two bounds become the ends of the interval; rounding must have
	// left the outer buckets at least half of their fraction.
	part := t.width * end / 2
	if !(from > t.bound[0]+part && from < t.bound[1]-part && to > t.bound[buckets-1]+part &&
		to < t.bound[buckets]-part) {
		return false
	}
	t.bound[0], t.bound[buckets] = from, to
	t.left, t.right = from+8*t.unit*t.width, to-8*t.unit*t.width
	measure(t, &t.lower, s, h, right, 1)
	measure(t, &t.upper, s, h, right, len(h)-1)
	return true
}

// measure computes the heights and slopes of one chain, which leads from h[0] to
// h[right]; step leads from a vertex to the next, modulo len(h). A vertical edge
// counts as the vertex that belongs to the rest of the chain: its first vertex at
// the right end, its last vertex at the left end.
func measure[T geom.Float](t *table, c *chords, s scales, h []vertex[T], right, step int) {
	at := func(i int) (x, y float64) { return float64(h[i].x)*s.x - t.origin, float64(h[i].y) * s.y }
	j := step % len(h)
	ax, ay := at(0)
	bx, by := at(j)
	for k := range t.buckets + 1 {
		x := t.bound[k]
		for bx <= x && j != right {
			j = (j + step) % len(h)
			ax, ay = bx, by
			bx, by = at(j)
		}
		x = min(max(x, ax), bx)
		y, rise := ay, 0.0
		if bx > ax { // reckoned from the nearer end: the other may be far away
			if slope := (by - ay) / (bx - ax); x-ax <= bx-x {
				rise = float64(slope * (x - ax))
			} else {
				y, rise = by, float64(slope*(x-bx))
			}
		}
		c.height[k], c.size[k] = y+rise, math.Abs(y)+math.Abs(rise)
		if k > 0 {
			c.slope[k] = (c.height[k] - c.height[k-1]) / (t.bound[k] - t.bound[k-1])
		}
	}
}

// line returns the line of bucket j of a chain, moved by the margin: inwards is -1
// for the upper chain, 1 for the lower. Where T cannot hold the line, the result
// is a line at infinity, which lets every point of the bucket pass.
func line[T geom.Float](t *table, c *chords, j int, inwards float64) (slope, offset T) {
	s := float64(T(c.slope[j+1]))
	slopes := math.Abs(c.slope[j]) + math.Abs(c.slope[j+1]) + math.Abs(c.slope[j+2])
	margin := t.unit*(32*t.width*slopes+16*(c.size[j]+c.size[j+1])) + t.tiny
	slope, offset = T(s), T(c.height[j]-float64(s*t.bound[j])+inwards*margin)
	if slope-slope != 0 || offset-offset != 0 {
		return 0, T(math.Inf(int(inwards)))
	}
	return slope, offset
}

func is32[T geom.Float]() bool { return T(1)+T(0x1p-30) == 1 }
