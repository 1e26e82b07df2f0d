package foxglove

import (
	"math"

	"entropipe/schemas/codec"
)

// matrix returns the motion of p; nil for the identity. ok is false for numbers that are not
// finite.
func (p *Pose) matrix() (m *codec.Pose, ok bool) {
	v, q := p.Position, p.Orientation
	for _, x := range [...]float64{v.X, v.Y, v.Z, q.X, q.Y, q.Z, q.W} {
		if x-x != 0 {
			return nil, false
		}
	}
	rotated := q.X != 0 || q.Y != 0 || q.Z != 0
	if !rotated && v == (Vector{}) {
		return nil, true
	}
	m = &codec.Pose{1, 0, 0, v.X, 0, 1, 0, v.Y, 0, 0, 1, v.Z}
	if !rotated {
		return m, true
	}
	length := math.Hypot(math.Hypot(q.X, q.Y), math.Hypot(q.Z, q.W))
	x, y, z, w := q.X/length, q.Y/length, q.Z/length, q.W/length
	m[0], m[1], m[2] = 1-2*(y*y+z*z), 2*(x*y-z*w), 2*(x*z+y*w)
	m[4], m[5], m[6] = 2*(x*y+z*w), 1-2*(x*x+z*z), 2*(y*z-x*w)
	m[8], m[9], m[10] = 2*(x*z-y*w), 2*(y*z+x*w), 1-2*(x*x+y*y)
	return m, true
}

// PoseOf returns the position and the unit quaternion of m, whose left part must be a
// rotation; the identity for nil.
func PoseOf(m *codec.Pose) Pose {
	if m == nil {
		return Pose{}
	}
	p := Pose{Position: Vector{m[3], m[7], m[11]}}
	// The largest of the four components is computed first, so that no small one divides.
	trace := m[0] + m[5] + m[10]
	var q Quaternion
	switch {
	case trace >= m[0] && trace >= m[5] && trace >= m[10]:
		q = Quaternion{m[9] - m[6], m[2] - m[8], m[4] - m[1], 1 + trace}
	case m[0] >= m[5] && m[0] >= m[10]:
		q = Quaternion{1 + m[0] - m[5] - m[10], m[1] + m[4], m[2] + m[8], m[9] - m[6]}
	case m[5] >= m[10]:
		q = Quaternion{m[1] + m[4], 1 - m[0] + m[5] - m[10], m[6] + m[9], m[2] - m[8]}
	default:
		q = Quaternion{m[2] + m[8], m[6] + m[9], 1 - m[0] - m[5] + m[10], m[4] - m[1]}
	}
	length := math.Hypot(math.Hypot(q.X, q.Y), math.Hypot(q.Z, q.W))
	p.Orientation = Quaternion{q.X / length, q.Y / length, q.Z / length, q.W / length}
	return p
}
