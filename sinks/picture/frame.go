package picture

import (
	"fmt"
	"slices"

	"entropipe/schemas"
)

// Names of the layers, in the order in which they are drawn.
const (
	LayerTriangles = "triangles"
	LayerPoints    = "points"
	LayerHull3D    = "hull3d"
	LayerHull      = "hull"
	LayerMaxima    = "maxima"
)

// TableOfLayer is the table that holds a layer.
var TableOfLayer = map[string]string{LayerTriangles: "triangles", LayerPoints: "points", LayerHull3D: "hulls3d",
	LayerHull: "hulls", LayerMaxima: "maxima"}

// Frame is a frame, as the tables have it, of which some layers are
// shown. Without points it has those layers alone that bring their
// coordinates.
type Frame struct {
	*schemas.Result
	layers map[string]bool
}

// NewFrame returns the frame of r, whose Points it completes.
func NewFrame(r *schemas.Result, layers []string) *Frame {
	s := &Frame{Result: r, layers: map[string]bool{}}
	for _, layer := range layers {
		s.layers[layer] = true
	}
	if r.Points == nil {
		r.Points = &schemas.Points{}
		if r.NPoints > r.NDropped {
			s.layers = map[string]bool{LayerHull: true}
		}
	}
	if p := r.Points; p.Idx == nil {
		for i := range p.Len() {
			p.Idx = append(p.Idx, int32(i))
		}
	}
	return s
}

// at returns the coordinates of the point that stands k-th in table points. z
// is 0 where the cloud has none.
func (s *Frame) at(k int) (x, y, z float64) {
	p := s.Points
	if p.X64 != nil {
		if p.Z64 != nil {
			z = p.Z64[k]
		}
		return p.X64[k], p.Y64[k], z
	}
	if p.Z32 != nil {
		z = float64(p.Z32[k])
	}
	return float64(p.X32[k]), float64(p.Y32[k]), z
}

// place returns where point i of the frame as received stands in table points.
func (s *Frame) place(i int32) int {
	k, found := slices.BinarySearch(s.Points.Idx, i)
	if !found {
		panic("export: check has let a stranger through")
	}
	return k
}

func (s *Frame) hasZ() bool { return s.Points.Z32 != nil || s.Points.Z64 != nil }

// Check compares the tables with one another: every point that a layer names
// must be in table points.
func (s *Frame) Check() error {
	n := len(s.Points.Idx)
	for table, idx := range s.indices() {
		last := -1 // most follow one another
		for _, i := range idx {
			if last+1 < n && s.Points.Idx[last+1] == i {
				last++
				continue
			}
			k, found := slices.BinarySearch(s.Points.Idx, i)
			if !found {
				return fmt.Errorf("table %s names point %d of this frame, which table points does not have: the "+
					"output is damaged (entropipe verify)", table, i)
			}
			last = k
		}
	}
	return nil
}

// indices returns the points that the layers shown name, by table.
func (s *Frame) indices() map[string][]int32 {
	all := map[string][]int32{}
	if len(s.Points.Idx) == 0 {
		return all
	}
	if s.layers[LayerTriangles] {
		all["triangles"] = s.Triangles
	}
	if s.layers[LayerHull] && s.Hull != nil {
		all["hulls"] = s.Hull.Idx
	}
	if s.layers[LayerHull3D] && s.Hull3 != nil {
		all["hulls3d"] = slices.Concat(s.Hull3.Idx, s.Hull3.Faces)
	}
	if s.layers[LayerMaxima] {
		for _, m := range s.Maxima {
			all["maxima"] = append(all["maxima"], m.Idx...)
		}
	}
	return all
}

// name is what a person would call the frame.
func (s *Frame) name() string {
	text := fmt.Sprintf("%s / %s, frame %d", s.Dataset, s.Sequence, s.FrameID)
	if s.Drawing != nil {
		text += fmt.Sprintf(": %s %d", s.Drawing.Label, s.Drawing.ID)
	}
	return text
}

// Unit is that of the coordinates.
func (s *Frame) Unit() string {
	if s.Drawing != nil {
		return "px"
	}
	return "m"
}
