package model

import (
	"math"

	"entropipe/models/mat"
)

// longest returns 1 + the last position of the batch.
func (s *Session) longest() int {
	n := 0
	for i := range max(len(s.starts)-1, 0) {
		n = max(n, s.offset(i)+int(s.starts[i+1]-s.starts[i]))
	}
	return n
}

// turnsTo extends the table of rotations to at least n positions.
func (s *Session) turnsTo(n int) {
	half := len(s.m.inverse)
	if half == 0 || n <= s.cos.Rows {
		return
	}
	n = min(max(n, 2*s.cos.Rows, 64), s.m.config.MaxPositions)
	s.cos, s.sin = mat.Of(n, half, make([]float32, n*half)), mat.Of(n, half, make([]float32, n*half))
	for p := range n {
		for i, f := range s.m.inverse {
			// The angle is rounded to float32 as in training; sine and cosine are exact.
			angle := float64(float32(p) * f)
			s.cos.Row(p)[i], s.sin.Row(p)[i] = float32(math.Cos(angle)), float32(math.Sin(angle))
		}
	}
}

// turn rotates the queries and keys of qkv, whose first row is row lo of the batch:
// it rotates the pair of numbers i and i+dim/2 of a head by an angle that grows with
// the position (Su et al. 2021).
func (s *Session) turn(qkv mat.Matrix, lo int) {
	c := s.m.config
	heads := c.Heads + c.KVHeads
	sequence := s.sequence(lo)
	for r := range qkv.Rows {
		for int(s.starts[sequence+1]) <= lo+r {
			sequence++
		}
		p := s.offset(sequence) + lo + r - int(s.starts[sequence])
		cos, sin := s.cos.Row(p), s.sin.Row(p)
		for h := range heads {
			v := qkv.Row(r)[h*c.Dim : (h+1)*c.Dim]
			a, b := v[:len(cos)], v[len(cos):][:len(cos)]
			for i, k := range cos {
				x, y := a[i], b[i]
				a[i] = float32(x*k) - float32(y*sin[i])
				b[i] = float32(y*k) + float32(x*sin[i])
			}
		}
	}
}
