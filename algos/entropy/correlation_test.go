package entropy

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/optimal"
)

var campaign = flag.Int("campaign", 24, "random sets a problem to compare surrogates and measured work with the "+
	"entropy; 240 for published figures")

// measured is what is known of one set.
type measured struct {
	truth float64
	guess map[string]float64
}

// measure computes the truth and everything that is compared with it.
func measure(c geom.Cloud[float64], p Problem, seed uint64) measured {
	out := outputs(c, p)
	h, touched := len(out), 0.0
	m := measured{truth: GroundTruth(c, out, p).Estimate, guess: map[string]float64{}}
	if p == UpperHull {
		chain, _ := chainOf(c, out, p)
		h = len(chain)
		var o optimal.Hull2D[float64]
		o.AppendUpper(nil, c)
		touched = float64(o.Upper.Touched)
	} else {
		var o optimal.Maxima[float64]
		o.Append(nil, c)
		touched = float64(o.Trace.Touched)
	}
	s := Surrogate[float64]{Problem: p, Tau: 2e-4}
	w := s.Witnesses(nil, c, 64)
	m.guess["F, 64 witnesses"] = s.Value(c, w)
	m.guess["G, 64 witnesses"] = s.Hard(c, w).Upper
	m.guess["F, 512 points"] = s.EstimateGiven(c, out, 512, 64).F
	m.guess["F, 32 witnesses"] = s.Value(c, s.Witnesses(nil, c, 32))
	m.guess["log h"] = math.Log(float64(h))
	m.guess["work"] = touched / float64(c.Len())
	r := rand.New(rand.NewPCG(seed, 5))
	ball := BallEntropy[float64]{Alpha: 10}
	m.guess["H_diff"] = ball.Value(c, means(c, 16, r))
	cells := CellEntropy[float64]{Tau: .05}
	var halves []HalfSpace
	for range 8 {
		sin, cos := math.Sincos(2 * math.Pi * r.Float64())
		w, i := [3]float64{cos, sin}, r.IntN(c.Len())
		halves = append(halves, HalfSpace{w, dot(w, at(c, i))})
	}
	m.guess["H_soft"] = cells.Value(c, halves, cells.Cells(nil, c, halves))
	return m
}

// means finds anchors: some points far from each other, as k-means++ draws them,
// and eight rounds of Lloyd's algorithm.
func means(c geom.Cloud[float64], k int, r *rand.Rand) [][3]float64 {
	n := c.Len()
	anchors := [][3]float64{at(c, r.IntN(n))}
	far := make([]float64, n)
	for i := range far {
		far[i] = math.Inf(1)
	}
	nearest := make([]int, n)
	update := func(j int) (sum float64) {
		for i := range far {
			d := minus(at(c, i), anchors[j])
			if v := dot(d, d); v < far[i] {
				far[i], nearest[i] = v, j
			}
			sum += far[i]
		}
		return sum
	}
	for j := 0; j < k-1; j++ {
		u := update(j) * r.Float64()
		i := 0
		for ; i < n-1 && u > far[i]; i++ {
			u -= far[i]
		}
		anchors = append(anchors, at(c, i))
	}
	for range 8 {
		for i := range far {
			far[i] = math.Inf(1)
		}
		for j := range anchors {
			update(j)
		}
		sums, counts := make([][3]float64, k), make([]float64, k)
		for i, j := range nearest {
			for d, v := range at(c, i) {
				sums[j][d] += v
			}
			counts[j]++
		}
		for j := range anchors {
			for d := range anchors[j] {
				anchors[j][d] = sums[j][d] / max(counts[j], 1)
			}
		}
	}
	return anchors
}

// fit is the square of the correlation of two columns, with its sign.
func fit(x, y []float64) (r2, slope float64) {
	n := float64(len(x))
	var sx, sy, sxx, sxy, syy float64
	for i := range x {
		sx, sy, sxx, sxy, syy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i], syy+y[i]*y[i]
	}
	cov, vx, vy := sxy-sx*sy/n, sxx-sx*sx/n, syy-sy*sy/n
	if vx <= 0 || vy <= 0 {
		return 0, 0
	}
	return cov * cov / (vx * vy), cov / vx
}

// interval is the middle 95 of a hundred parts of R² over bootstrap samples.
func interval(x, y []float64, r *rand.Rand) (lo, hi float64) {
	const rounds = 1000
	all := make([]float64, rounds)
	a, b := make([]float64, len(x)), make([]float64, len(x))
	for k := range all {
		for i := range a {
			j := r.IntN(len(x))
			a[i], b[i] = x[j], y[j]
		}
		all[k], _ = fit(a, b)
	}
	slices.Sort(all)
	return all[rounds/40], all[rounds-rounds/40-1]
}

// Over families of sets, F follows the entropy, the paper's losses do not, and the work
// of an instance-optimal algorithm does.
func TestCorrelationOverFamilies(t *testing.T) {
	sets, most := *campaign, 4000
	if sets < 240 {
		most = 1000
	}
	if testing.Short() {
		sets = 12 // the same on every processor, and an emulated one is slow
	}
	for _, problem := range []struct {
		p        Problem
		families []geomtest.Family
		least    map[string]float64
	}{
		{Maxima2D, geomtest.MaximaFamilies(), map[string]float64{"F, 64 witnesses": .97, "G, 64 witnesses": .97,
			"F, 512 points": .93, "work": .9}},
		{UpperHull, geomtest.HullFamilies(), map[string]float64{"F, 64 witnesses": .97, "G, 64 witnesses": .97,
			"F, 512 points": .93, "work": .9}},
	} {
		t.Run(problem.p.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			var truth []float64
			guess := map[string][]float64{}
			for k := range sets {
				n := 500 + r.IntN(most-499)
				m := measure(problem.families[k%len(problem.families)].Make(n, uint64(k)), problem.p, uint64(k))
				truth = append(truth, m.truth)
				for name, v := range m.guess {
					guess[name] = append(guess[name], v)
				}
			}
			t.Logf("%d sets of 500 to %d points, H from %.2f to %.2f", sets, most, slices.Min(truth), slices.Max(truth))
			for _, name := range slices.Sorted(keys(guess)) {
				v := guess[name]
				r2, slope := fit(truth, v)
				lo, hi := interval(truth, v, r)
				square := 0.0
				for i := range v {
					square += (v[i] - truth[i]) * (v[i] - truth[i]) / float64(sets)
				}
				t.Logf("%-16s R² %.3f [%.3f, %.3f], slope %+.2f, root mean square error %.2f", name, r2, lo, hi,
					slope, math.Sqrt(square))
				if least := problem.least[name]; r2 < least && sets >= 24 || least > 0 && slope <= 0 {
					t.Errorf("seed %d, %s: R² %.3f, at least %.2f wanted", seed, name, r2, least)
				}
				if (name == "H_diff" || name == "H_soft") && r2 > .6 {
					t.Errorf("seed %d, %s: R² %.3f: is this the paper's?", seed, name, r2)
				}
			}
		})
	}
}

// keys yields the keys of m.
func keys(m map[string][]float64) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
