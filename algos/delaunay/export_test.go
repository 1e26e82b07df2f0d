package delaunay

import "entropipe/algos/geom"

// Steps triangulates c and returns how many triangles were walked through and
// edges flipped.
func (t *Triangulator[T]) Steps(c geom.Cloud[T]) int {
	t.zones = zones{} // with counters of zero
	t.Triangulate(c)
	steps := t.zones.main.steps
	for k := range t.zones.each {
		steps += t.zones.each[k].steps
	}
	return steps
}

// Left returns how many points of the last call's parallel rounds were left to
// one goroutine.
func (t *Triangulator[T]) Left() int { return t.zones.left }
