package pipeline

import "entropipe/schemas"

const (
	// largeFrame is the number of points from which scratch memory is worth giving
	// back: a triangulation takes some 75 MB then.
	largeFrame = 1 << 18
	// patience is the number of messages in a row that must leave most of the scratch
	// memory unused before it is given back. A sensor whose large frames come more
	// often finds the memory still there.
	patience = 64
)

// outgrown decides when a worker's scratch memory is too large. Scratch grows with
// the worker's largest cloud, some 300 bytes a point with a triangulation, and does
// not count against --memory. Without outgrown a single giant cloud would cost the
// process that memory, and the garbage collector its work, for as long as it runs.
type outgrown struct {
	grown int // points of the largest frame since the scratch was new
	small int // messages in a row with less than an eighth of that
}

// after records the frames of a message, and tells whether scratch memory is to be
// allocated anew.
func (o *outgrown) after(frames []schemas.Frame) bool {
	n := 0
	for i := range frames {
		n = max(n, frames[i].Len())
	}
	if o.grown = max(o.grown, n); o.grown < largeFrame || n >= o.grown/8 {
		o.small = 0
		return false
	}
	if o.small++; o.small < patience {
		return false
	}
	*o = outgrown{}
	return true
}
