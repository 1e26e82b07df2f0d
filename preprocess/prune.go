package preprocess

import "slices"

// Prune appends to dst, ascending, the points of p.Cloud that the declared
// queries (Config.For) can depend on, the survivors, and returns it. The
// queries on the survivors alone, in this order, have the same results as on
// the whole cloud, once indices are mapped back. A query in space is left out
// for a cloud without z.
//
// Survivors are the points that the queries' own operators find on the whole
// cloud, and these are exact: each other point lies in the convex hull of
// survivors, for every hull asked for, and equals or lies below one survivor on
// every axis, for the maxima. Of equal points the one of lowest index survives,
// which is the one that stands for all of them in every result.
//
// It is not the first half of an operator, a filter with a margin: that would
// leave several times as many points and save little time, since the second
// half works on few.
//
// Cost: that of the operators, hull3d with hints.
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
