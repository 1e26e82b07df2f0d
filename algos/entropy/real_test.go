package entropy

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
)

// ranks returns the place of every value in sorted order, ties shared.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(v[i], v[j]) })
	r := make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			r[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return r
}

// On real data, where H is small and varies little, F stays within a tenth of a
// nat for LiDAR, and orders drawings.
func TestRealData(t *testing.T) {
	t.Run("lidar", func(t *testing.T) {
		frames := geomtest.RealFrames(t)
		if testing.Short() || *campaign < 240 {
			frames = frames[:min(3, len(frames))]
		}
		compareReal(t, frames, .1, 0)
	})
	t.Run("drawings", func(t *testing.T) {
		drawings := geomtest.Drawings[float32](t)
		every := 10
		if *campaign >= 240 {
			every = 1
		}
		var some []geomtest.Named[float32]
		for i := 0; i < len(drawings); i += every {
			some = append(some, drawings[i])
		}
		compareReal(t, some, .6, .9)
	})
}

func compareReal(t *testing.T, clouds []geomtest.Named[float32], most, least float64) {
	var m maxima.Maxima[float32]
	var h hull.Hull2D[float32]
	for _, p := range []Problem{Maxima2D, UpperHull} {
		var truth []float64
		guess := map[string][]float64{}
		for _, named := range clouds {
			c := geom.Cloud[float32]{X: named.Cloud.X, Y: named.Cloud.Y}
			if c.Len() == 0 {
				continue
			}
			out := m.Append2D(nil, c)
			if p == UpperHull {
				out = h.Append(nil, c)
			}
			b := GroundTruth(c, out, p)
			if b.Lower > b.Upper || b.Lower > b.Estimate+1e-9 {
				t.Errorf("%s, %v: %+v", named.Name, p, b)
			}
			truth = append(truth, b.Estimate)
			s := Surrogate[float32]{Problem: p, Tau: 2e-4}
			guess["F"] = append(guess["F"], s.EstimateGiven(c, out, c.Len(), 64).F)
			guess["F, 2048 points"] = append(guess["F, 2048 points"], s.EstimateGiven(c, out, 2048, 64).F)
		}
		for _, name := range slices.Sorted(keys(guess)) {
			v := guess[name]
			square := 0.0
			for i := range v {
				square += (v[i] - truth[i]) * (v[i] - truth[i]) / float64(len(v))
			}
			r2, _ := fit(truth, v)
			rank, _ := fit(ranks(truth), ranks(v))
			rmse := math.Sqrt(square)
			t.Logf("%v, %d clouds, H %.3f to %.3f, %-15s root mean square error %.3f, R² %.3f, Spearman %.3f",
				p, len(v), slices.Min(truth), slices.Max(truth), name+":", rmse, r2, math.Sqrt(rank))
			if rmse > most || math.Sqrt(rank) < least {
				t.Errorf("%v, %s: error %.3f, at most %.2f wanted; Spearman %.3f, at least %.2f", p, name, rmse, most,
					math.Sqrt(rank), least)
			}
		}
	}
}
