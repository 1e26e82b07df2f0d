package delaunay

// point is a copy of a coordinate pair, so that points inserted one after the
// other lie side by side in memory.
type point struct{ x, y float64 }

// less is the lexicographic order: by x, then by y.
func (p point) less(q point) bool { return p.x < q.x || p.x == q.x && p.y < q.y }

// triangle fills one line of the cache.
//
// v[0], v[1], v[2] are its vertices, counter-clockwise; v[2] is never infinity.
// v[kind] is its kind: four entries, so that an index masked by 3 needs no check.
// n[k] is the code of the twin of half-edge k, the edge from v[k] to the next
// vertex.
//
// a, b, c, d are its circle as a plane below the paraboloid over the frame:
// a·x + b·y + c·(x² + y²) + d is the determinant of InCircle for the point (x, y)
// in the frame. Each circle is tested several times, and a test reads no memory
// but this line. A determinant within err·(1 + x² + y²) of 0 decides nothing.
// Ghosts have infinite or NaN err, so the filter never decides for a ghost.
type triangle struct {
	v          [4]int32
	n          [3]int32
	err        float32
	a, b, c, d float64
}

// kind is the place of a triangle's kind in v. (A method would leave a no-op for
// each call in the hot loops.)
const kind = 3

// infinity is the vertex that all ghosts share.
const infinity = -1

// Kinds of triangles. A kind from 0 to maxZones-1 is a zone: all vertices of the
// triangle belong to that zone.
const (
	ghost  int32 = -1
	unused int32 = -2      // memory of a duplicate: v[0] is its number, v[1] its other triangle
	shared int32 = 1 << 30 // vertices in several zones
)

// next and prev are the slots after and before a slot in its triangle. Entry 3
// is never read; it makes the tables' length a power of two.
var (
	next = [4]int32{1, 2, 0, 0}
	prev = [4]int32{2, 0, 1, 0}
)
