// Package preprocess is the stage between decoding and the operators: a cloud
// goes in, a cloud, hints and a report come out.
//
// In every mode the stage removes what no operator can use, the points with a
// non-finite coordinate, and counts them. It never changes a coordinate that an
// operator is given. Operators work on the prepared cloud; their indices are
// mapped back to the frame as it was received.
//
// A "hint" is what a learned model knows of a stream's frames, put into a form
// that an operator can use and need not believe: with any hint the result is
// the same. To "prune" is to keep only the points that declared queries can
// depend on, the "survivors".
//
// It is not a filter for performance: operators bring their own. So mode seed
// hints at hull3d alone: the planar hull and the maxima take less time than it
// would take to find them better samples.
package preprocess

import (
	"fmt"
	"slices"

	"entropipe/algos/extreme"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/models"
)

// Mode names what the stage does to a cloud.
type Mode string

const (
	Off   Mode = "off"   // nothing beyond dropping non-finite points
	Seed  Mode = "seed"  // hints from a frozen model; results are exact
	Prune Mode = "prune" // as Seed, or without a model; Stage.Prune finds survivors

	// Modes whose results are approximate, each with its exact error; see perturb.go.
	Perturb Mode = "perturb"
	Denoise Mode = "denoise"
)

// Op names a query.
type Op uint8

// The queries that prune knows, and of which seed hints at Hull3D.
const (
	Hull2D Op = iota
	Hull3D
	Maxima2D
	Maxima3D
)

var opNames = [...]string{"hull2d", "hull3d", "maxima2d", "maxima3d"}

func (o Op) String() string { return opNames[o] }

// ParseOp returns the query of that name.
func ParseOp(name string) (o Op, ok bool) {
	i := slices.Index(opNames[:], name)
	return Op(max(i, 0)), i >= 0
}

// Report says what the stage did to one frame.
type Report struct {
	Mode     Mode
	Received int    // points as received
	Dropped  int    // points with a non-finite coordinate
	Model    string // SHA-256 of the model that gave hints or moved points; empty: none did
}

// Hints are for operators on Prepared.Cloud, and indices into it. The zero
// value gives none.
type Hints struct {
	Hull3D []int32 // for hull.Hull3D's Seeds
}

// Prepared is a cloud that operators may work on: every coordinate is finite.
// It is valid until the next Apply of the same Stage, and no longer than the
// cloud that went in.
type Prepared[T geom.Float] struct {
	Cloud geom.Cloud[T]
	Hints Hints
	index []int32 // position as received of each point; nil: unchanged
	moved bool    // Stage.approximate holds the moved cloud
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

// Numbers is the way back: it appends to dst the point numbers in p.Cloud of
// points that Original gave the positions of. Cost: O(log n) a point where points
// were dropped.
func (p *Prepared[T]) Numbers(dst, positions []int32) []int32 {
	if p.index == nil {
		return append(dst, positions...)
	}
	for _, at := range positions {
		k, _ := slices.BinarySearch(p.index, at)
		dst = append(dst, int32(k))
	}
	return dst
}

// Config says what a Stage does.
type Config struct {
	Mode Mode
	// Model is a seed model for Seed, where it is required, and Prune, where it
	// is optional; for Perturb and Denoise one of that mode.
	Model *models.EntropyNet
	// For are the queries: those of Prune, and in both modes those that hints
	// are for. Seed gives no hints for others; without any, for all that the
	// model serves.
	For []Op
}

// Stage prepares clouds. The zero value is ready and in mode off. It owns the
// memory of what it returns: one Stage a worker, not for concurrent use.
type Stage[T geom.Float] struct {
	// Unhinted leaves out the hints while it is set.
	Unhinted bool

	mode       Mode
	queries    []Op
	directions []float32 // directions for hull3d, [n][3]; nil: no hints
	model      string    // its SHA-256

	x, y, z []T
	index   []int32
	finder  extreme.Finder[T]
	seeds   []int32
	inner   hull.Hull3D[T]
	corners geom.Cloud[T]
	normals []float32
	seedIDs []int32
	hull2   hull.Hull2D[T]
	hull3   hull.Hull3D[T]
	maxima  maxima.Maxima[T]
	faces   []int32

	approximate approximate[T] // state of modes Perturb and Denoise
}

// New returns a Stage that works as cfg says. It is an error if the mode lacks
// what it needs, or if the model is of another mode or serves none of the
// queries. Which stream a model is for is not checked here: see
// models.EntropyNet.Matches.
func New[T geom.Float](cfg Config) (*Stage[T], error) {
	s := &Stage[T]{mode: cfg.Mode, queries: slices.Clone(cfg.For)}
	switch cfg.Mode {
	case Off, "":
		if cfg.Model != nil {
			return nil, fmt.Errorf("mode %s uses no model", Off)
		}
		return s, nil
	case Seed, Perturb, Denoise:
		if cfg.Model == nil {
			return nil, fmt.Errorf("mode %s needs a model", cfg.Mode)
		}
	case Prune:
		if len(cfg.For) == 0 {
			return nil, fmt.Errorf("mode %s needs queries: points matter to some only", Prune)
		}
	default:
		return nil, fmt.Errorf("mode %q is unknown", cfg.Mode)
	}
	if cfg.Model == nil {
		return s, nil
	}
	if cfg.Mode == Perturb || cfg.Mode == Denoise {
		if err := s.takeNetwork(cfg.Model); err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := s.take(cfg.Model); err != nil {
		return nil, err
	}
	return s, nil
}

// take keeps what the model knows of the queries.
func (s *Stage[T]) take(m *models.EntropyNet) error {
	if m.Meta.Mode != models.Seed {
		return fmt.Errorf("mode %s needs a %s model, and this is a %s model", s.mode, models.Seed, m.Meta.Mode)
	}
	if err := m.Validate(); err != nil {
		return err
	}
	s.model = m.SHA256
	if len(s.queries) > 0 && !slices.ContainsFunc(m.Meta.Ops, func(name string) bool {
		o, ok := ParseOp(name)
		return ok && slices.Contains(s.queries, o)
	}) {
		return fmt.Errorf("the model serves %v, none of %v", m.Meta.Ops, s.queries)
	}
	if slices.Contains(m.Meta.Ops, Hull3D.String()) && (len(s.queries) == 0 || slices.Contains(s.queries, Hull3D)) {
		s.directions = m.Tensors["directions3"].Data
	}
	return nil
}

// Apply returns c without its non-finite points, hints in modes seed and prune,
// and in modes perturb and denoise what Hull2D and its like work on. Almost every cloud has none of the former: then the result is c itself
// and the cost is one read of the coordinates. Hints look at some 10,000 points;
// clouds without z and those smaller than HintFrom go without.
func (s *Stage[T]) Apply(c geom.Cloud[T]) (Prepared[T], Report) {
	rep := Report{Mode: s.mode, Received: c.Len()}
	if rep.Mode == "" {
		rep.Mode = Off
	}
	p := Prepared[T]{Cloud: c}
	if !c.Finite() {
		p = s.keepFinite(c)
		rep.Dropped = rep.Received - p.Cloud.Len()
	}
	if s.directions != nil && !s.Unhinted && p.Cloud.Z != nil && p.Cloud.Len() >= HintFrom {
		p.Hints.Hull3D = s.findSeeds(p.Cloud)
		if len(p.Hints.Hull3D) > 0 {
			rep.Model = s.model
		}
	}
	if s.approximate.move(&p) {
		rep.Model = s.model
	}
	return p, rep
}

// keepFinite copies the points whose coordinates are all finite.
func (s *Stage[T]) keepFinite(c geom.Cloud[T]) Prepared[T] {
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
	return Prepared[T]{Cloud: out, index: s.index}
}
