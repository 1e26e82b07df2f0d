package preprocess

import (
	"math"

	"entropipe/algos/geom"
)

// HintFrom is the smallest number of points for which Apply makes hints. The hull
// of a smaller cloud, such as a real frame of 20,000 points, takes about as long
// as its hints would.
const HintFrom = 1 << 15

const sampleMost = 1 << 13 // sample size of the search for seeds; the sample has up to twice as many points

// findSeeds returns extreme points of a sample of c: first in the model's
// directions, then along the face normals of their hull, which finds extreme
// points that the model's directions miss. It returns nil if the sample has no
// volume.
func (s *Stage[T]) findSeeds(c geom.Cloud[T]) []int32 {
	s.seeds = s.seeds[:0]
	s.finder.Every = c.Len()/sampleMost | 1 // odd, as extreme.Finder explains
	if !s.finder.Look(c) {
		return nil
	}
	s.seeds = s.finder.Append(s.seeds, s.directions)
	if s.faceNormals(c); len(s.normals) > 0 {
		s.seeds = s.finder.Append(s.seeds, s.normals)
	}
	return s.seeds
}

// faceNormals sets s.normals to the face normals of the seeds' hull, [n][3], in
// the finder's coordinates.
func (s *Stage[T]) faceNormals(c geom.Cloud[T]) {
	p := &s.corners
	p.X, p.Y, p.Z, s.normals = p.X[:0], p.Y[:0], p.Z[:0], s.normals[:0]
	for _, i := range s.seeds {
		p.X, p.Y, p.Z = append(p.X, c.X[i]), append(p.Y, c.Y[i]), append(p.Z, c.Z[i])
	}
	size := s.finder.Size()
	s.seedIDs, s.faces, _ = s.inner.Append(s.seedIDs[:0], s.faces[:0], *p)
	for f := s.faces; len(f) > 0; f = f[3:] {
		var a, b [3]float64 // two edges
		for k, v := range [][]T{p.X, p.Y, p.Z} {
			a[k] = (float64(v[f[1]]) - float64(v[f[0]])) / size[k]
			b[k] = (float64(v[f[2]]) - float64(v[f[0]])) / size[k]
		}
		n := [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
		if large := max(math.Abs(n[0]), math.Abs(n[1]), math.Abs(n[2])); large > 0 {
			s.normals = append(s.normals, float32(n[0]/large), float32(n[1]/large), float32(n[2]/large))
		}
	}
}
