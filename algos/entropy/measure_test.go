package entropy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/algos/optimal"
)

func TestMeasureVectors(t *testing.T) {
	v := readVectors(t)
	var f Family
	var g Cover
	for i, row := range v.Maxima2D {
		c := cloudOf(row.Points)
		n := c.Len()
		b, ok := ExactMaxima(c, row.MaximaByX)
		if !ok || b.Kind != Exact || b.Lower != b.Upper {
			t.Errorf("row %d: %v %v", i, b, ok)
		}
		near(t, "exact", i, b.Upper, row.HExact)
		Ranges(&f, c, row.MaximaByX, Maxima2D)
		greedy := g.Greedy(&f)
		near(t, "greedy", i, greedy.Upper, row.Greedy)
		if !slices.Equal(g.Sizes, row.GreedySizes) {
			t.Errorf("row %d: greedy sizes %v, want %v", i, g.Sizes, row.GreedySizes)
		}
		size := FromSize(Maxima2D, n, row.H)
		near(t, "size, lower", i, size.Lower, row.HLower)
		near(t, "size, upper", i, size.Upper, row.HUpper)
		near(t, "tree", i, FromTree(c, row.MaximaByX, Maxima2D).Upper, row.HKd)
	}
	for i, row := range v.Maxima3D {
		c := cloudOf(row.Points)
		Ranges(&f, c, row.Maxima, Maxima3D)
		near(t, "greedy in space", i, g.Greedy(&f).Upper, row.Greedy)
		near(t, "tree in space", i, FromTree(c, row.Maxima, Maxima3D).Upper, row.HKd)
	}
	for i, row := range v.UpperHull2D {
		c := cloudOf(row.Points)
		Ranges(&f, c, row.HullByX, UpperHull)
		if len(row.HullByX) <= fullChords {
			near(t, "greedy chords", i, g.Greedy(&f).Upper, row.Greedy)
		}
		near(t, "slabs", i, FromSlabs(c, row.HullByX, UpperHull).Upper, row.HVert)
		b := bestTriangulation(c, geomtest.Hull2D(c))
		near(t, "triangulation", i, b.Upper, row.HTriangulation)
	}
}

// leastPartition is the least entropy over all partitions into groups that fit:
// sets[i] is a set of points that one range holds, as bits.
func leastPartition(n int, sets []uint32) float64 {
	legal := make([]bool, 1<<n)
	for _, s := range sets {
		legal[s] = true
	}
	for i := range n {
		legal[1<<i] = true
	}
	for s := len(legal) - 1; s > 0; s-- { // subsets of legal sets are legal
		for i := range n {
			if legal[s] && s>>i&1 == 1 {
				legal[s&^(1<<i)] = true
			}
		}
	}
	best := make([]float64, 1<<n) // largest sum of m log m
	for s := 1; s < len(best); s++ {
		best[s] = math.Inf(-1)
		low := s & -s
		for part := s; part > 0; part = (part - 1) & s {
			if part&low != 0 && legal[part] {
				size := 0
				for q := part; q > 0; q &= q - 1 {
					size++
				}
				best[s] = max(best[s], best[s&^part]+mlogm(float64(size)))
			}
		}
	}
	return max(0, math.Log(float64(n))-best[len(best)-1]/float64(n)) // but for rounding
}

// small is a cloud of a few points: random, or on a grid, with ties and duplicates.
func small(r *rand.Rand) geom.Cloud[float64] {
	n, grid := 1+r.IntN(8), r.IntN(2) == 0
	c := random(n, r.Uint64())
	for i := range n {
		for _, v := range axes(c, i) {
			if grid {
				*v = math.Floor(4 * *v)
			}
		}
	}
	return c
}

// outputs returns what measurements need to know of a cloud.
func outputs(c geom.Cloud[float64], p Problem) []int32 {
	var m maxima.Maxima[float64]
	var h2 hull.Hull2D[float64]
	var h3 hull.Hull3D[float64]
	switch p {
	case Maxima2D:
		return m.Append2D(nil, c)
	case Maxima3D:
		return m.Append3D(nil, c)
	case Hull3D:
		v, _, _ := h3.Append(nil, nil, c)
		return v
	}
	return h2.Append(nil, c)
}

// Everything that says something about H is on the right side of H, which is found
// from the definition: all partitions of few points.
func TestBracketsHoldTheLeastPartition(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 3))
	for round := range 200 {
		c := small(r)
		if wrong := wrongBracket(c, 1+r.IntN(8)); wrong != "" {
			t.Fatalf("seed %d, round %d: %s: %+v", seed, round, wrong, c)
		}
	}
}

func FuzzBrackets(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x01\x02\x03\x04\x01\x01\x01"), uint8(2))
	f.Add([]byte{}, uint8(0))
	// Five vertices in space whose tetrahedra are better than those of all vertices.
	f.Add([]byte("00\x97\x84\x97\x97\x8d\x97\x970\x9700\x95\xa9\xa0\xa0\xa0\xa0\xa0"), uint8(5))
	// Six points that one range holds: 0, but for the rounding of a logarithm.
	f.Add([]byte("\xd9\x01\xc7\xde\x00\xc7\xc7\xc7\xc7\xc7\xc7"), uint8('t'))
	f.Fuzz(func(t *testing.T, b []byte, k uint8) {
		c := geomtest.FromBytes[float64](b, 3)
		c = c.Slice(0, min(c.Len(), 8))
		if c.Len() == 0 || !c.Finite() {
			return
		}
		if wrong := wrongBracket(c, int(k)); wrong != "" {
			t.Errorf("%s: %+v", wrong, c)
		}
	})
}

// wrongBracket says which answer about a cloud of few points is wrong, with k
// witnesses where they matter.
func wrongBracket(c geom.Cloud[float64], k int) string {
	var f Family
	var g Cover
	const eps = 1e-9
	n := c.Len()
	both := 0.0 // sum over the two hulls in the plane
	for _, p := range []Problem{Maxima2D, Maxima3D, UpperHull, LowerHull, Hull3D} {
		out := outputs(c, p)
		Ranges(&f, c, out, p)
		least := leastPartition(n, setsOf(&f))
		greedy := g.Greedy(&f)
		answers := []Bracket{greedy, pointwiseBound(&f), fractionalBound(&f, 50), FromSize(p, n, len(out)),
			FromTree(c, out, p), GroundTruth(c, out, p).Bracket}
		switch p {
		case Maxima2D:
			b, _ := ExactMaxima(c, out)
			if math.Abs(b.Upper-least) > eps {
				return fmt.Sprintf("%v exactly %v, all partitions %v", p, b.Upper, least)
			}
			var o optimal.Maxima[float64]
			o.Append(nil, c)
			answers = append(answers, b, fromTrace(groups(&o.Trace)))
		case UpperHull, LowerHull:
			var o optimal.Hull2D[float64]
			o.Append(nil, c)
			trace := &o.Upper
			if p == LowerHull {
				trace = &o.Lower
			}
			if both += least; p == LowerHull {
				if b := FromSize(Hull2D, n, len(out)); b.Lower > both+eps || b.Upper < both-eps {
					return fmt.Sprintf("both hulls: %+v without %v", b, both)
				}
			}
			chain, _ := chainOf(c, out, p)
			answers[3] = FromSize(p, n, len(chain))
			answers = append(answers, FromSlabs(c, out, p), FromQuickhull(c, out, p), fromTrace(groups(trace)))
		case Hull3D: // the fans are not all tetrahedra: only what needs no more than them
			answers = []Bracket{{Upper: greedy.Upper, Kind: Greedy}, fractionalBound(&f, 50),
				{FromSize(p, n, len(out)).Lower, math.Inf(1), Size}}
		}
		s := Surrogate[float64]{Problem: p}
		witnesses := out[:min(k, len(out))]
		if b := s.Hard(c, witnesses); p != Hull3D {
			answers = append(answers, b)
		} else { // the fans of few vertices have tetrahedra that those of all have not
			Ranges(&f, c, witnesses, p)
			if own := leastPartition(n, setsOf(&f)); b.Lower > own+eps || b.Upper < own-eps || b.Upper > own+1+eps {
				return fmt.Sprintf("%v, %d witnesses: [%v, %v], of their tetrahedra %v", p, len(witnesses),
					b.Lower, b.Upper, own)
			}
		}
		for _, b := range answers {
			if b.Lower > least+eps || b.Upper < least-eps || b.Upper < b.Lower {
				return fmt.Sprintf("%v, %v: [%v, %v] without %v", p, b.Kind, b.Lower, b.Upper, least)
			}
		}
		if greedy.Upper > least+1+eps {
			return fmt.Sprintf("%v: greedy %v, least %v", p, greedy.Upper, least)
		}
	}
	return ""
}

// setsOf gives the ranges of a family of few points as bits.
func setsOf(f *Family) []uint32 {
	sets := make([]uint32, f.Len())
	for r := range sets {
		for _, i := range f.Range(r) {
			sets[r] |= 1 << i
		}
	}
	return sets
}

// groups returns the sizes of a trace's groups.
func groups(t *optimal.Trace) []int32 {
	sizes := make([]int32, len(t.Ranges))
	for _, g := range t.Group {
		sizes[g]++
	}
	return sizes
}

// For larger clouds the brackets agree with each other, and F with hard ranges of
// all maximal points stays below the truth and above what halved weights allow.
func TestBracketsAgree(t *testing.T) {
	var f Family
	var g Cover
	const n, eps = 120, 1e-9
	for _, named := range slices.Concat(geomtest.Clouds2D[float64](n, seed), geomtest.Clouds3D[float64](n, seed)) {
		c := named.Cloud
		for _, p := range problems {
			if p.dims() == 3 && c.Z == nil {
				continue
			}
			out := outputs(c, p)
			truth := GroundTruth(c, out, p)
			if truth.Lower > truth.Upper || truth.Lower > truth.Estimate+eps || truth.Estimate < 0 ||
				truth.Upper > 2*math.Log(n)+eps {
				t.Errorf("%s, %v: %+v", named.Name, p, truth)
			}
			if p == Hull2D {
				continue
			}
			Ranges(&f, c, out, p)
			fractional, greedy := fractionalBound(&f, 30), g.Greedy(&f)
			if fractional.Lower > greedy.Upper+eps || greedy.Lower > truth.Upper+eps ||
				pointwiseBound(&f).Lower > truth.Upper+eps {
				t.Errorf("%s, %v: %+v, %+v, truth %+v", named.Name, p, fractional, greedy, truth)
			}
			if p == Maxima2D {
				s := Surrogate[float64]{Problem: p, Steps: 300}
				if v := s.Value(c, out); v > truth.Upper+0.02 || v < fractional.Lower-math.Ln2-eps {
					t.Errorf("%s: F of all maximal points %v, H %v, fractional %v", named.Name, v,
						truth.Upper, fractional.Lower)
				}
			}
		}
	}
}

// The paper's bound on how many masses are needed for all but a share delta,
// ceil(exp(H)/delta), is false, from 77 masses on; exp(H/delta) is true.
func TestEntropyTailOfThePaperIsFalse(t *testing.T) {
	for _, row := range []struct {
		others             int // number of masses that share the rest of the first mass
		share, delta       float64
		needed, paperBound int
	}{
		{76, .154, .079, 39, 38},
		{1000, .2, .1, 501, 66},
		{1000000, .2, .1, 500001, 262},
	} {
		masses := []float64{1 - row.share}
		for range row.others {
			masses = append(masses, row.share/float64(row.others))
		}
		h, left, needed := OfSizes(masses), 1.0, 0
		for ; left > row.delta+1e-9; needed++ {
			left -= masses[needed]
		}
		if paper := int(math.Ceil(math.Exp(h) / row.delta)); needed != row.needed || paper != row.paperBound {
			t.Errorf("%+v: needed %d, the paper's bound %d", row, needed, paper)
		}
		if float64(needed) > math.Exp(h/row.delta) {
			t.Errorf("%+v: needed %d, more than exp(H/delta) = %v", row, needed, math.Exp(h/row.delta))
		}
	}
}
