package preprocess

import (
	"math"

	"entropipe/algos/geom"
)

// HintFrom is the least number of points of a cloud that gets hints. Smaller
// ones, real frames of 20,000 points among them, have hulls in about the time
// that hints take.
const HintFrom = 1 << 15

const sampleMost = 1 << 13 // points that seeds are looked for among, up to twice as many

// findSeeds returns points of c far out: those that a sample has in the model's
// directions, then those in the normals of their hull, so that what the model
// does not know of this frame is found too. It returns nothing where the sample
// has no volume.
func (s *Stage[T]) findSeeds(c geom.Cloud[T]) []int32 {
	s.seeds = s.seeds[:0]
	s.finder.Every = c.Len()/sampleMost | 1 // odd: see there
	if !s.finder.Look(c) {
		return nil
	}
	s.seeds = s.finder.Append(s.seeds, s.directions)
	if s.faceNormals(c); len(s.normals) > 0 {
		s.seeds = s.finder.Append(s.seeds, s.normals)
	}
	return s.seeds
}

// faceNormals fills s.normals with those of the seeds' hull, in the finder's
// coordinates.
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
