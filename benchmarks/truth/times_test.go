package main

import (
	"strings"
	"testing"
)

// networkInside fails when a time of an experiment leaves the network out: every
// line whose method names it has the network's time, and a total that holds it.
func networkInside(t *testing.T, records []record) {
	t.Helper()
	for _, r := range records {
		total, ok := r.Values["total_ms"]
		if !ok || !strings.Contains(r.Text["method"], netMethod) {
			continue
		}
		if own := r.Values["network_ms"]; !(own > 0) || total < own {
			t.Errorf("%s, %s: total of %v ms, network %v ms", r.Cell, r.Text["method"], total, own)
		}
	}
}

// The experiments that compare times have such lines.
func TestTimesIncludeTheNetwork(t *testing.T) {
	for _, e := range []*experiment{perturb, baselines} {
		for _, c := range e.cells(quick) {
			records, err := c.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			networkInside(t, records)
			lines := 0
			for _, r := range records {
				if strings.Contains(r.Text["method"], netMethod) {
					lines++
				}
			}
			if lines == 0 {
				t.Errorf("%s: no line with the network", e.name)
			}
		}
	}
}

// Of the polygon's error brute force finds the same as the judge, and a strip
// for every point gives the exact hull.
func TestStripsComeNearTheHull(t *testing.T) {
	for _, f := range planarFamilies {
		c := f.make(500, 7)
		last := 1.0
		for _, strips := range []int{4, 32, 256} {
			var s stripKernel
			answer := s.hull(nil, c, strips)
			e := hullError(c, answer)
			if brute := farthestPoint(c, answer) / diagonalOf(c); brute-e > 1e-12 || e-brute > 1e-12 {
				t.Errorf("%s, %d strips: error %v, brute force %v", f.name, strips, e, brute)
			}
			if bound := 1.0 / float64(strips); e > bound || e > last {
				t.Errorf("%s, %d strips: error %v, want at most %v and no more than with fewer strips, %v", f.name,
					strips, e, bound, last)
			}
			last = e
		}
	}
}

// NeuralSort without temperature sorts, and its rows stand for what they hold.
func TestNeuralSortSorts(t *testing.T) {
	c := planarFamilies[0].make(100, 3)
	sorted, stands := neuralSort(c, 0)
	for k, i := range stands {
		if sorted.X[k] != c.X[i] || sorted.Y[k] != c.Y[i] || k > 0 && sorted.X[k] > sorted.X[k-1] {
			t.Fatalf("row %d holds %v, point %d is at %v, the row before at %v", k, sorted.X[k], i, c.X[i],
				sorted.X[max(k-1, 0)])
		}
	}
	soft, _ := neuralSort(c, 1e-6)
	for k := range soft.X {
		if d := soft.X[k] - sorted.X[k]; d > 1e-3 || d < -1e-3 {
			t.Fatalf("row %d of a cold relaxation holds %v, want about %v", k, soft.X[k], sorted.X[k])
		}
	}
}

// DBSCAN's noise, from lists of neighbours, is what its definition says.
func TestClusteredByDefinition(t *testing.T) {
	c := planarFamilies[2].make(300, 5)
	nb := nearest(c, mostNeighbours)
	for _, radius := range []float64{0.05, 0.2, 0.6} {
		kept := clustered(nb, 4, radius)
		within := func(i, j int) bool {
			dx, dy := float64(c.X[i]-c.X[j]), float64(c.Y[i]-c.Y[j])
			return dx*dx+dy*dy <= radius*radius
		}
		core := make([]bool, c.Len())
		for i := range core {
			others := -1
			for j := range core {
				if within(i, j) {
					others++
				}
			}
			core[i] = others >= 4
		}
		for i := range core {
			want := false
			for j := range core {
				want = want || core[j] && within(i, j)
			}
			got := len(kept) > 0 && kept[0] == int32(i)
			if got {
				kept = kept[1:]
			}
			if got != want {
				t.Fatalf("radius %v: point %d kept: %v, want %v", radius, i, got, want)
			}
		}
	}
}

func TestInterval(t *testing.T) {
	mean, half := interval([]float64{1, 2, 3, 4, 5})
	if mean != 3 || half < 1.9632 || half > 1.9633 { // 2.7764 · √(2.5/5)
		t.Errorf("mean %v ± %v, want 3 ± 1.963", mean, half)
	}
	if r := rankCorrelation([]float64{1, 5, 2}, []float64{10, 30, 20}); r != 1 {
		t.Errorf("Spearman of equal orders is %v", r)
	}
	if r := squaredCorrelation([]float64{1, 2, 3}, []float64{-2, -4, -6}); r < 1-1e-12 || r > 1+1e-12 {
		t.Errorf("R² of a line is %v", r)
	}
}
