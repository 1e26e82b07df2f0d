package geomtest

import (
	"slices"
	"testing"
)

// Families are seeded, fill the unit square and have no ties.
func TestFamilies(t *testing.T) {
	for kind, families := range map[string][]Family{"maxima": MaximaFamilies(), "hull": HullFamilies()} {
		for _, f := range families {
			for seed := range uint64(5) {
				c, again, other := f.Make(500, seed), f.Make(500, seed), f.Make(500, seed+1)
				if !slices.Equal(c.X, again.X) || !slices.Equal(c.Y, again.Y) || slices.Equal(c.X, other.X) {
					t.Errorf("%s, %s, seed %d: not a function of the seed", kind, f.Name, seed)
				}
				for _, v := range [][]float64{c.X, c.Y} {
					sorted := slices.Sorted(slices.Values(v))
					if sorted[0] != 0 || sorted[499] != 1 || len(slices.Compact(sorted)) < 499 {
						t.Errorf("%s, %s, seed %d: from %v to %v, %d distinct", kind, f.Name, seed, sorted[0],
							sorted[499], len(slices.Compact(sorted)))
					}
				}
				if f.Make(0, seed).Len() != 0 || f.Make(1, seed).Len() != 1 {
					t.Errorf("%s, %s: not as many points as asked for", kind, f.Name)
				}
			}
		}
	}
}
