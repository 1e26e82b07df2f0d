package entropy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// tight are limits with which a search of few points is exact; coarse are limits with
// which all that widens a bracket happens to few points, too.
var (
	tight = limits{work: 1 << 20,
		steps: -1, chords: 100, boxes: 100, share: 1, shareSpace: 1, sidePlane: 1, sideSpace: 1}
	coarse = limits{work: 1 << 20,
		steps: -1, chords: 3, boxes: 2, sample: 5, share: .5, shareSpace: .5, rounds: 20, sidePlane: 3, sideSpace: 2}
	cored = limits{work: 1 << 20,
		steps: -1, chords: 50, boxes: 50, sample: 9, share: .7, shareSpace: .7, whole: 1000, sidePlane: 3, sideSpace: 2}
)

var metered = []Problem{Maxima2D, Maxima3D, UpperHull, LowerHull, Hull3D}

// wrongMeasure says which bracket of a Meter about a cloud of few points is wrong.
func wrongMeasure(c geom.Cloud[float64]) string {
	const eps = 1e-9
	var f Family
	both := 0.0
	for _, p := range metered {
		out := outputs(c, p)
		Ranges(&f, c, out, p)
		least := leastPartition(c.Len(), setsOf(&f))
		if p == Hull3D {
			if wrong := wrongSolid(c, out); wrong != "" {
				return wrong
			}
			continue
		}
		for k, l := range []limits{ofStreams, tight, coarse, cored} {
			m := Meter[float64]{limits: l}
			b := m.Measure(c, out, p)
			if b.Lower > least+eps || b.Upper < least-eps || b.Upper < b.Lower || k == 1 && b.Gap() > eps {
				return fmt.Sprintf("%v, limits %d: %+v without %v", p, k, b, least)
			}
		}
		if p == UpperHull || p == LowerHull {
			both += least
		}
	}
	var m Meter[float64]
	if b := m.Measure(c, outputs(c, Hull2D), Hull2D); b.Lower > both+eps || b.Upper < both-eps {
		return fmt.Sprintf("both hulls: %+v without %v", b, both)
	}
	return ""
}

// wrongSolid says whether the bracket of a hull in space is wrong, against all partitions
// into groups that tetrahedra between vertices hold. These are some of the legal groups,
// and the upper bound's groups are some of them.
func wrongSolid(c geom.Cloud[float64], vertices []int32) string {
	var p points
	load(&p, c, Hull3D)
	var sets []uint32
	for four := range choices(len(vertices)) {
		var q [4]int32
		for k, v := range four {
			q[k] = vertices[v]
		}
		f := face{q[0], q[1], q[2]}
		if side(&p, f, p.at(q[3])) == 0 {
			continue
		}
		set := uint32(0)
		for i := range c.X {
			if inTetrahedron(&p, f, p.at(q[3]), p.at(int32(i))) {
				set |= 1 << i
			}
		}
		sets = append(sets, set)
	}
	least := leastPartition(c.Len(), sets)
	var m Meter[float64]
	b := m.Measure(c, vertices, Hull3D)
	if len(sets) > 0 && (b.Lower > least+1e-9 || b.Upper < least-1e-9) || b.Upper < b.Lower {
		return fmt.Sprintf("hull3d: %+v without %v", b, least)
	}
	return ""
}

// choices yields all choices of four of n.
func choices(n int) func(func([4]int) bool) {
	return func(yield func([4]int) bool) {
		for a := range n {
			for b := range a {
				for c := range b {
					for d := range c {
						if !yield([4]int{a, b, c, d}) {
							return
						}
					}
				}
			}
		}
	}
}

// The truth of a hull in space is no larger than the cover by the ranges of witnesses.
func TestTruthIsWithinItsBounds(t *testing.T) {
	for k, c := range []geom.Cloud[float64]{geomtest.Ball[float64](900, seed), geomtest.Cube[float64](900, seed),
		geomtest.Lidar[float64](1500, seed), geomtest.Shells[float64](500, seed)} {
		for _, p := range []Problem{Maxima3D, Hull3D, UpperHull, LowerHull, Hull2D} {
			out := outputs(c, p)
			truth := GroundTruth(c, out, p)
			s := Surrogate[float64]{Problem: p}
			if !(truth.Lower <= truth.Estimate && truth.Estimate <= truth.Upper) ||
				p == Hull3D && truth.Upper > s.Hard(c, s.Witnesses(nil, c, 64)).Upper {
				t.Errorf("cloud %d, %v: %+v", k, p, truth)
			}
		}
	}
}

// On whole turns of a real scanner brackets are as narrow as the documentation says.
func TestMeterOfRealFrames(t *testing.T) {
	frames := geomtest.RealFrames(t)
	if *campaign < 240 {
		frames = frames[:2]
	}
	var m Meter[float32]
	for _, frame := range frames {
		c := frame.Cloud
		for p, most := range map[Problem]float64{Maxima2D: 0, Maxima3D: .05, Hull2D: .05, Hull3D: 3} {
			if b := m.Measure(c, outputs(wide(c), p), p); b.Gap() > most || b.Lower <= 0 {
				t.Errorf("%s, %v: %+v is %.3f wide", frame.Name, p, b, b.Gap())
			}
		}
	}
}

// A Meter is right about few points, for which all partitions are looked at.
func TestMeterHoldsTheLeastPartition(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 9))
	for round := range 300 {
		c := small(r)
		if wrong := wrongMeasure(c); wrong != "" {
			t.Fatalf("seed %d, round %d: %s: %+v", seed, round, wrong, c)
		}
	}
}

func TestMeterOfTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := geomtest.Tied[float64](3).Draw(t, "cloud")
		c = c.Slice(0, min(c.Len(), 8))
		if c.Len() == 0 {
			return
		}
		if wrong := wrongMeasure(c); wrong != "" {
			t.Fatal(wrong)
		}
	})
}

// Brackets of clouds of all families hold the exact entropy of maxima, and meet all other
// brackets of the same entropy.
func TestMeterOfFamilies(t *testing.T) {
	for _, p := range []Problem{Maxima2D, UpperHull} {
		families := geomtest.MaximaFamilies()
		if p == UpperHull {
			families = geomtest.HullFamilies()
		}
		for k, family := range families {
			for round := range 1 + *campaign/100 {
				c := family.Make(200+300*round, seed+uint64(10*k+round))
				out := outputs(c, p)
				truth := GroundTruth(c, out, p)
				if !(truth.Lower <= truth.Estimate && truth.Estimate <= truth.Upper) {
					t.Errorf("%s %d, %v: %+v", family.Name, round, p, truth)
				}
				for j, l := range []limits{ofStreams, cored, coarse} {
					if j == 0 {
						l.steps = -1
					}
					m := Meter[float64]{limits: l}
					b := m.Measure(c, out, p)
					if b.Lower > truth.Upper+1e-9 || b.Upper < truth.Lower-1e-9 || b.Lower > b.Upper {
						t.Errorf("%s %d, %v, limits %d: %+v, truth %+v", family.Name, round, p, j, b, truth)
					}
				}
			}
		}
	}
}

// Frames of a scanner have narrow brackets, in every order of their points.
func TestMeterOfScans(t *testing.T) {
	c := geomtest.Lidar[float32](60_000, seed)
	other, perm := geomtest.Permuted(c, seed)
	for _, p := range []Problem{Maxima2D, Maxima3D, Hull2D} {
		var m Meter[float32]
		out := outputs(wide(c), p)
		b := m.Measure(c, out, p)
		if b.Gap() > .15 || b.Lower <= .1 {
			t.Errorf("%v: %+v is %v wide", p, b, b.Gap())
		}
		var moved []int32
		for _, i := range out {
			moved = append(moved, int32(slices.Index(perm, int(i))))
		}
		if o := m.Measure(other, moved, p); o.Lower > b.Upper || o.Upper < b.Lower || o.Gap() > .15 {
			t.Errorf("%v: %+v, in another order %+v", p, b, o)
		}
	}
}

func wide(c geom.Cloud[float32]) geom.Cloud[float64] {
	return geom.Cloud[float64]{X: widen(nil, c.X, 1), Y: widen(nil, c.Y, 1), Z: widen(nil, c.Z, 1)}
}

// Hostile coordinates give a bracket within [0, log n].
func TestMeterOfHostileClouds(t *testing.T) {
	var m Meter[float64]
	for k, named := range hostile[float64]() {
		if testing.Short() && k%3 > 0 {
			continue
		}
		for _, scale := range []float64{1, 1e300, 1e-310}[:1+2*(k%2)] {
			c := scaled(named.Cloud, scale)
			if !c.Finite() {
				continue
			}
			for _, p := range problems {
				if p.dims() == 3 && c.Z == nil {
					continue
				}
				out, most := outputs(c, p), math.Log(float64(max(c.Len(), 1)))
				if p == Hull2D {
					most *= 2
				}
				if b := m.Measure(c, out, p); !(b.Lower >= 0 && b.Lower <= b.Upper && b.Upper <= most+1e-12) {
					t.Errorf("%s × %g, %v: %+v", named.Name, scale, p, b)
				}
			}
		}
	}
}
