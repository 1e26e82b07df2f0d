package preprocess

import "slices"

// Prune appends the survivors to dst and returns dst: the points of p.Cloud that
// the declared queries (Config.For) can depend on, ascending. Each query has the
// same result on the survivors, in this order, as on the whole cloud, once indices
// are mapped back. For a cloud without z Prune skips the queries in space.
//
// The survivors are the results of the queries' own exact operators on the whole
// cloud. So every other point lies in the convex hull of the survivors, for each
// declared hull, and is dominated by a survivor, for the maxima. Among equal points
// the one with the lowest number survives, as it does in every result.
//
// A filter with a margin, the first half of an operator, would keep several times
// as many points and save little time: the second half works on few points.
//
// Cost: the sum of the operators' costs; hull3d uses the hints.
func (s *Stage[T]) Prune(dst []int32, p *Prepared[T]) []int32 {
	base := len(dst)
	for _, q := range s.queries {
		if p.Cloud.Z == nil && (q == Hull3D || q == Maxima3D) {
			continue
		}
		switch q {
		case Hull2D:
			dst = s.hull2.Append(dst, p.Cloud)
		case Hull3D:
			s.hull3.Seeds = p.Hints.Hull3D
			dst, s.faces, _ = s.hull3.Append(dst, s.faces[:0], p.Cloud)
		case Maxima2D:
			dst = s.maxima.Append2D(dst, p.Cloud)
		case Maxima3D:
			dst = s.maxima.Append3D(dst, p.Cloud)
		}
	}
	slices.Sort(dst[base:])
	return dst[:base+len(slices.Compact(dst[base:]))]
}
