package delaunay

import "entropipe/algos/geom"

// Steps triangulates c and returns how many triangles were walked through and
// edges flipped.
func (t *Triangulator[T]) Steps(c geom.Cloud[T]) int {
	t.main.steps = 0
	t.Triangulate(c)
	return t.main.steps
}
