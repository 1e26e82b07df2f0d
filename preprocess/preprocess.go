// Package preprocess is the stage between decoding and the operators: a cloud
// goes in, a cloud and a report come out.
//
// In mode off, the only one there is without a model, the stage removes what no
// operator can use, the points with a non-finite coordinate, and counts them.
// It never changes a coordinate. Operators work on the prepared cloud; their
// indices are mapped back to the frame as it was received.
//
// It is not a filter for performance: operators bring their own.
package preprocess

import "entropipe/algos/geom"

// Mode names what the stage does to a cloud.
type Mode string

// Off drops non-finite points and leaves all else as it is: results are exact.
const Off Mode = "off"

// Report says what the stage did to one frame.
type Report struct {
	Mode     Mode
	Received int // points as received
	Dropped  int // points with a non-finite coordinate
}

// Prepared is a cloud that operators may work on: every coordinate is finite.
// It is valid until the next Apply of the same Stage, and no longer than the
// cloud that went in.
type Prepared[T geom.Float] struct {
	Cloud geom.Cloud[T]
	index []int32 // position as received of each point; nil: unchanged
}

// Original maps point numbers of p.Cloud to positions in the frame as it was
// received, in place, and returns idx. Order is kept: the mapping ascends.
func (p *Prepared[T]) Original(idx []int32) []int32 {
	if p.index != nil {
		for i, v := range idx {
			idx[i] = p.index[v]
		}
	}
	return idx
}

// Stage prepares clouds. The zero value is ready and in mode off. It owns the
// memory of what it returns: one Stage a worker, not for concurrent use.
type Stage[T geom.Float] struct {
	x, y, z []T
	index   []int32
}

// Apply returns c without its non-finite points. Almost every cloud has none:
// then the result is c itself and the cost is one read of the coordinates.
func (s *Stage[T]) Apply(c geom.Cloud[T]) (Prepared[T], Report) {
	rep := Report{Mode: Off, Received: c.Len()}
	if c.Finite() {
		return Prepared[T]{Cloud: c}, rep
	}
	s.x, s.y, s.z, s.index = s.x[:0], s.y[:0], s.z[:0], s.index[:0]
	for i := range c.X {
		ok := c.X[i]-c.X[i] == 0 && c.Y[i]-c.Y[i] == 0
		if c.Z != nil {
			ok = ok && c.Z[i]-c.Z[i] == 0
		}
		if !ok {
			continue
		}
		s.x, s.y, s.index = append(s.x, c.X[i]), append(s.y, c.Y[i]), append(s.index, int32(i))
		if c.Z != nil {
			s.z = append(s.z, c.Z[i])
		}
	}
	out := geom.Cloud[T]{X: s.x, Y: s.y}
	if c.Z != nil {
		out.Z = s.z[:len(s.x):len(s.x)]
		if out.Z == nil {
			out.Z = []T{} // still three-dimensional, though no point is left
		}
	}
	rep.Dropped = rep.Received - len(s.x)
	return Prepared[T]{Cloud: out, index: s.index}, rep
}
