package maxima

import "math"

// sweepPlane marks the maximal survivors, without z: along descending x, those
// that rise above all points so far.
func (m *Maxima[T]) sweepPlane() {
	m.sorter.sort(m.v[0], m.v[1])
	m.touched += len(m.ids)
	ys, top := m.v[1], T(math.Inf(-1))
	for _, e := range m.sorter.order {
		if i := uint32(e); ys[i] > top {
			top = ys[i]
			m.keep(int32(i))
		}
	}
}

// sweepSpace marks the maximal survivors: along descending z, those that lie
// outside the staircase, the union of the quadrants x <= q.x, y <= q.y below
// points q so far. Equal points are neighbours, the lowest index first, and it
// covers the others.
func (m *Maxima[T]) sweepSpace() {
	m.sorter.sort(m.v[2], m.v[0], m.v[1])
	xs, ys := m.v[0], m.v[1]
	m.stair.reset()
	for _, e := range m.sorter.order {
		i := uint32(e)
		added, full := m.stair.add(xs[i], ys[i])
		if full {
			clear(m.kept)
			m.divideAxes()
			break
		}
		if added {
			m.keep(int32(i))
		}
	}
	m.touched += len(m.ids) + m.stair.moved
}
