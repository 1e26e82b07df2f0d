package preprocess

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
)

// A cloud without non-finite points comes back as it is, not copied.
func TestApplyReturnsFiniteCloudItself(t *testing.T) {
	c := geom.Cloud[float32]{X: []float32{1, -0}, Y: []float32{2, math.MaxFloat32},
		Z: []float32{3, math.SmallestNonzeroFloat32}}
	var s Stage[float32]
	p, rep := s.Apply(c)
	if &p.Cloud.X[0] != &c.X[0] || &p.Cloud.Z[1] != &c.Z[1] {
		t.Error("a finite cloud was copied")
	}
	if want := (Report{Mode: Off, Received: 2}); rep != want {
		t.Errorf("report %+v, want %+v", rep, want)
	}
	if got := p.Original([]int32{1, 0}); !cmp.Equal(got, []int32{1, 0}) {
		t.Errorf("indices %v were changed", got)
	}
}

// Dropping keeps exactly the finite points, in order, and Original gives back
// their positions as received, for every mixture and with memory used again.
func TestApplyKeepsExactlyTheFinitePoints(t *testing.T) {
	var s64 Stage[float64]
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
	value := rapid.Custom(func(t *rapid.T) float64 {
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			return rapid.SampledFrom(odd).Draw(t, "which")
		}
		return rapid.Float64().Draw(t, "v")
	})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		axis := func(name string) []float64 { return rapid.SliceOfN(value, n, n).Draw(t, name) }
		c := geom.Cloud[float64]{X: axis("x"), Y: axis("y")}
		if rapid.Bool().Draw(t, "3d") {
			c.Z = axis("z")
		}
		var want []int32
		for i := range n {
			sum := c.X[i]*0 + c.Y[i]*0
			if c.Z != nil {
				sum += c.Z[i] * 0
			}
			if sum == 0 {
				want = append(want, int32(i))
			}
		}
		p, rep := s64.Apply(c)
		if p.Cloud.Len() != len(want) || rep.Received != n || rep.Dropped != n-len(want) {
			t.Fatalf("%d points left, report %+v, want %d of %d", p.Cloud.Len(), rep, len(want), n)
		}
		if (p.Cloud.Z != nil) != (c.Z != nil) || (c.Z != nil && len(p.Cloud.Z) != len(want)) {
			t.Fatalf("z: %v from %v", p.Cloud.Z, c.Z)
		}
		all := make([]int32, len(want))
		for i := range all {
			all[i] = int32(i)
		}
		positions := p.Original(slices.Clone(all))
		if back := p.Numbers(nil, positions); !slices.Equal(back, all) {
			t.Fatalf("positions %v are points %v, want %v", positions, back, all)
		}
		for k, i := range p.Original(all) {
			if i != want[k] || p.Cloud.X[k] != c.X[i] || p.Cloud.Y[k] != c.Y[i] {
				t.Fatalf("point %d is number %d, want %d", k, i, want[k])
			}
		}
	})
}

func BenchmarkApply(b *testing.B) {
	const n = 120_000
	c := geom.Cloud[float32]{X: make([]float32, n), Y: make([]float32, n), Z: make([]float32, n)}
	var s Stage[float32]
	for b.Loop() {
		s.Apply(c)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
}

func ExampleStage_Apply() {
	nan := math.NaN()
	var s Stage[float64]
	p, rep := s.Apply(geom.Cloud[float64]{X: []float64{0, nan, 2}, Y: []float64{0, 1, 2}})
	fmt.Println(p.Cloud.X, p.Original([]int32{1}), rep.Dropped)
	// Output: [0 2] [2] 1
}
