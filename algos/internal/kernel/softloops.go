package kernel

// softFill, softPush and softStep are the loops of Fill, Push and Step.
type (
	softFill = func(x, y, z, table *float64, n, blocks int, values *float64, index, ends *int32, hashes *uint64,
		stored int, scale, cut float64) int
	softPush = func(x, y, z, table *float64, n int, values *float64, index, bounds, rows *int32, q, a,
		gx, gy, gz *float64)
	softStep = func(values *float64, index, bounds *int32, weights *float64, n int, q, sums, a *float64, floor float64)
)

// softLoops are the loops of one level. fill and push have four shapes: 2 and 3 planes in
// 2 coordinates, 3 and 4 planes in 3 coordinates.
type softLoops struct {
	fill [4]softFill
	push [4]softPush
	step softStep
}

// loops returns the loops of the level in use and the shape of the ranges of s. l is nil
// where only the portable form exists.
func (s *Soft) loops() (l *softLoops, shape int) {
	shape = 2*(s.Dims-2) + s.Planes - s.Dims
	if level == Portable || s.Dims < 2 || s.Dims > 3 || s.Planes < s.Dims || s.Planes > s.Dims+1 {
		return nil, 0
	}
	return &softLevels[level], shape
}
