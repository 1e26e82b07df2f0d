// Package preprocess is the stage between decoding and the operators: it turns a
// cloud into a prepared cloud, hints and a report.
//
// In every mode the stage removes and counts the points with a non-finite
// coordinate, which no operator can use. Operators work on the prepared cloud;
// Prepared.Original maps their indices back to the frame as received. In modes
// off, seed and prune the stage changes no coordinate.
//
// A "hint" is a model's guess of points that matter, which an operator uses
// without trusting it: the result is the same with any hint. To "prune" is to
// keep the "survivors", the points that declared queries can depend on.
//
// The stage is not a filter for performance, since operators have their own.
// Mode seed therefore makes hints for hull3d alone: finding samples for the
// planar hull or the maxima takes longer than these operators.
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
	Off   Mode = "off"   // drops non-finite points and does no more
	Seed  Mode = "seed"  // makes hints from a frozen model; results are exact
	Prune Mode = "prune" // makes hints if there is a model; Stage.Prune finds survivors

	// Modes whose results are approximate, each with its exact error; see perturb.go.
	Perturb Mode = "perturb"
	Denoise Mode = "denoise"
)

// Op names a query.
type Op uint8

// The queries of mode Prune. Mode Seed makes hints for Hull3D alone.
const (
	Hull2D Op = iota
	Hull3D
	Maxima2D
	Maxima3D
)

var opNames = [...]string{"hull2d", "hull3d", "maxima2d", "maxima3d"}

func (o Op) String() string { return opNames[o] }

// ParseOp returns the query with the name, and false for an unknown name.
func ParseOp(name string) (o Op, ok bool) {
	i := slices.Index(opNames[:], name)
	return Op(max(i, 0)), i >= 0
}

// Report says what the stage did to one frame.
type Report struct {
	Mode     Mode
	Received int    // points as received
	Dropped  int    // points with a non-finite coordinate
	Model    string // SHA-256 of the model that made hints or moved points; empty without one
}

// Hints are point numbers in Prepared.Cloud for its operators. The zero value
// holds no hints.
type Hints struct {
	Hull3D []int32 // value for the field Seeds of hull.Hull3D
}

// Prepared is a cloud whose coordinates are all finite. It is valid until the
// next Apply of the same Stage, and as long as the cloud that Apply received.
type Prepared[T geom.Float] struct {
	Cloud geom.Cloud[T]
	Hints Hints
	index []int32 // position of each point in the frame as received; nil: its own number
	moved bool    // Stage.approximate holds the moved cloud
}

// Original replaces point numbers of p.Cloud by positions in the frame as
// received, in place, and returns idx. The mapping ascends, so ascending numbers
// stay ascending.
func (p *Prepared[T]) Original(idx []int32) []int32 {
	if p.index != nil {
		for i, v := range idx {
			idx[i] = p.index[v]
		}
	}
	return idx
}

// Numbers is the inverse of Original: it appends to dst the point numbers in
// p.Cloud of points at positions in the frame as received. Every position must
// be one that Original can return. Cost: O(1) a position, O(log n) if points were
// dropped.
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

// Config is the configuration of a Stage.
type Config struct {
	Mode Mode
	// Model is a seed model in modes Seed (required) and Prune (optional), and a
	// model of the same mode in Perturb and Denoise (required).
	Model *models.EntropyNet
	// For holds the queries. Mode Prune keeps the points that they depend on. The
	// other modes use the model for these queries alone, or for all queries that
	// it serves if For is empty.
	For []Op
}

// Stage prepares clouds. The zero value is a stage in mode off. A Stage owns the
// memory that it returns and is not safe for concurrent use: each worker has its
// own.
type Stage[T geom.Float] struct {
	// Unhinted turns hints off while it is true.
	Unhinted bool

	mode       Mode
	queries    []Op
	directions []float32 // directions for hull3d, [n][3]; nil: no hints
	model      string    // SHA-256 of the model

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

// New returns a Stage with the configuration. New fails if the mode is unknown,
// if the mode needs a model or queries that cfg lacks, or if the model has another
// mode or serves none of the queries. New does not compare the model's stream with
// the data: models.EntropyNet.Matches does.
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
			return nil, fmt.Errorf("mode %s needs queries, which decide the points that are kept", Prune)
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

// take stores the model's directions for the queries.
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

// Apply returns c without its non-finite points, with hints in modes seed and
// prune. In modes perturb and denoise Apply also moves a copy of the points, which
// Hull2D, Hull3D, Maxima2D and Maxima3D then use. Without non-finite points the
// prepared cloud is c itself, not a copy.
//
// Cost: one read of the coordinates; hints examine some 10,000 points more. Clouds
// without z or with fewer than HintFrom points get no hints.
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
