package preprocess

import (
	"fmt"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/models"
	"entropipe/preprocess/net"
)

// In modes perturb and denoise a network moves the points. The queries that its
// model serves are answered on the moved cloud: where Approximates returns true,
// Stage.Hull2D, Hull3D, Maxima2D and Maxima3D replace the operators. Every other
// query gets the cloud as received.
//
// An answer is point numbers and its exact error with respect to the cloud as
// received. In mode perturb the answer is the hull, or the maxima, in original
// coordinates, of the points that the operator found on the moved cloud. In mode
// denoise maxima are those of the moved cloud, since original coordinates are
// noisy.

// approximate is the state of a Stage in modes perturb and denoise.
type approximate[T geom.Float] struct {
	mover  net.Mover[T] // mover.Net is nil in other modes
	serves []Op
	judge  net.Judge[T]
	cloud  geom.Cloud[T] // moved cloud of the last Apply
	hull2  hull.Hull2D[T]
	hull3  hull.Hull3D[T]
	maxima maxima.Maxima[T]
	found  []int32
	chosen []int32
	faces  []int32
	axes   [3][]T // coordinates of the found points
}

// takeNetwork stores the model's network and the queries that it serves.
func (s *Stage[T]) takeNetwork(m *models.EntropyNet) error {
	if m.Meta.Mode != string(s.mode) {
		return fmt.Errorf("mode %s needs a %s model, and this is a %s model", s.mode, s.mode, m.Meta.Mode)
	}
	if err := m.Validate(); err != nil {
		return err
	}
	for _, name := range m.Meta.Ops {
		if q, ok := ParseOp(name); ok && (len(s.queries) == 0 || slices.Contains(s.queries, q)) {
			s.approximate.serves = append(s.approximate.serves, q)
		}
	}
	if len(s.approximate.serves) == 0 {
		return fmt.Errorf("the model serves %v, none of %v", m.Meta.Ops, s.queries)
	}
	var err error
	s.approximate.mover.Net, err = net.New(m)
	s.model = m.SHA256
	return err
}

// move sets a.cloud to p.Cloud moved, and reports whether there is a network for
// the cloud's dimensions.
func (a *approximate[T]) move(p *Prepared[T]) bool {
	if a.mover.Net == nil || p.Cloud.Len() == 0 || a.mover.Net.Dims() == 3 && p.Cloud.Z == nil {
		return false
	}
	a.cloud = a.mover.Move(p.Cloud)
	p.moved = true
	return true
}

// Approximates reports whether the Stage, not the exact operator, answers q for
// this cloud.
func (s *Stage[T]) Approximates(q Op, p *Prepared[T]) bool {
	return p.moved && slices.Contains(s.approximate.serves, q)
}

// Moved returns the moved cloud, in memory of s, of the last Apply. Approximates must
// be true for some query.
func (s *Stage[T]) Moved() geom.Cloud[T] { return s.approximate.cloud }

// Hull2D appends the vertices of the approximate hull to dst, in the canonical
// order of hull.Hull2D, and returns the error: the largest distance of a point of
// p.Cloud to that hull, in the units of p.Cloud. p must be the result of the last
// Apply, and Approximates(Hull2D, p) true.
//
// Cost of all four methods: the operator on the moved cloud, and again on p.Cloud
// for the error. Apply has run the network already.
func (s *Stage[T]) Hull2D(dst []int32, p *Prepared[T]) (idx []int32, err float64) {
	a := &s.approximate
	a.found = a.hull2.Append(a.found[:0], a.cloud)
	return a.judge.Hull2D(dst, p.Cloud, a.found)
}

// Hull3D is Hull2D in space. It appends vertices and faces as hull.Hull3D does, and
// returns the dimension of the hull.
func (s *Stage[T]) Hull3D(vertices, faces []int32, p *Prepared[T]) (v, f []int32, dim int, err float64) {
	a := &s.approximate
	a.found, a.faces, _ = a.hull3.Append(a.found[:0], a.faces[:0], a.cloud)
	return a.judge.Hull3D(vertices, faces, p.Cloud, a.found)
}

// Maxima2D appends the approximate maxima in x and y to dst, ascending, and returns
// the error: the least ε such that every point of p.Cloud is dominated by one of
// them with ε added to each coordinate (additive ε-dominance).
func (s *Stage[T]) Maxima2D(dst []int32, p *Prepared[T]) (idx []int32, err float64) {
	return s.approximate.front(dst, p.Cloud, 2, s.mode)
}

// Maxima3D is Maxima2D in x, y and z.
func (s *Stage[T]) Maxima3D(dst []int32, p *Prepared[T]) (idx []int32, err float64) {
	return s.approximate.front(dst, p.Cloud, 3, s.mode)
}

// front appends the maxima found on the moved cloud. In mode Perturb it leaves
// out those that another found point dominates in the cloud as received.
func (a *approximate[T]) front(dst []int32, c geom.Cloud[T], dims int, mode Mode) ([]int32, float64) {
	moved, still := [][]T{a.cloud.X, a.cloud.Y, a.cloud.Z}[:dims], [][]T{c.X, c.Y, c.Z}[:dims]
	a.found = a.maxima.AppendD(a.found[:0], moved)
	if mode == Perturb {
		for d, axis := range still {
			a.axes[d] = a.axes[d][:0]
			for _, i := range a.found {
				a.axes[d] = append(a.axes[d], axis[i])
			}
		}
		a.chosen = a.maxima.AppendD(a.chosen[:0], a.axes[:dims])
		for k, i := range a.chosen { // ascending: never read behind what is written
			a.found[k] = a.found[i]
		}
		a.found = a.found[:len(a.chosen)]
	}
	return append(dst, a.found...), a.judge.Maxima(c, a.found, dims, [3]bool{})
}
