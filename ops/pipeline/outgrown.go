package pipeline

import "entropipe/schemas"

const (
	// largeFrame is the number of points from which scratch memory is worth
	// giving back: a triangulation's is some 75 MB then.
	largeFrame = 1 << 18
	// patience is how many messages in a row leave most of the scratch memory
	// unused before it is given back. A sensor whose large frames come more often
	// than that finds the memory still there.
	patience = 64
)

// outgrown watches how much of a worker's scratch memory is in use. It grows
// with the largest cloud, some 300 bytes a point with a triangulation and
// beside --memory; without this a single giant would cost a process that much
// for as long as it runs, and the collector its peace.
type outgrown struct {
	grown int // points of the largest frame since the scratch was new
	small int // messages in a row with less than an eighth of that
}

// after is told of a message's frames, and reports whether scratch memory is to
// begin anew.
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
