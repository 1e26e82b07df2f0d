package entropy

import (
	"fmt"
	"math"
	"testing"

	"entropipe/algos/geom"
	"pgregory.net/rapid"
)

// Law: with the squared Euclidean distance the value is BallEntropy's.
func TestMetricEntropyIsBallEntropy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		point := rapid.Custom(func(t *rapid.T) [3]float64 {
			c := rapid.Float64Range(-2, 2)
			return [3]float64{c.Draw(t, "x"), c.Draw(t, "y"), c.Draw(t, "z")}
		})
		points := rapid.SliceOfN(point, 0, 40).Draw(t, "points")
		anchors := rapid.SliceOfN(point, 0, 6).Draw(t, "anchors")
		alpha := rapid.Float64Range(.1, 20).Draw(t, "alpha")
		c := geom.Cloud[float64]{Z: []float64{}}
		for _, p := range points {
			c.X, c.Y, c.Z = append(c.X, p[0]), append(c.Y, p[1]), append(c.Z, p[2])
		}
		m := MetricEntropy[[3]float64]{Alpha: alpha, Distance: func(x, a [3]float64) (sum float64) {
			for d := range x {
				sum += (x[d] - a[d]) * (x[d] - a[d])
			}
			return sum
		}}
		got, want := m.Value(points, anchors), (&BallEntropy[float64]{Alpha: alpha}).Value(c, anchors)
		if math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v, BallEntropy %v", got, want)
		}
	})
}

// Law: without Alpha the unit of the distance does not matter.
func TestMetricEntropyHasNoUnit(t *testing.T) {
	points, anchors := []float64{0, .1, .3, .5, .9, 1.3, 2}, []float64{0, 1, 2}
	of := func(unit float64) float64 {
		m := MetricEntropy[float64]{Distance: func(x, a float64) float64 { return unit * math.Abs(x-a) }}
		return m.Value(points, anchors)
	}
	if a, b := of(1), of(1e6); math.Abs(a-b) > 1e-12 || a <= 0 || a > math.Log(3) {
		t.Errorf("%v and, in another unit, %v", a, b)
	}
}

// What is out of reach has no part of a point; a point that reaches nothing belongs to
// all; a distance that is none panics.
func TestMetricEntropyOutOfReach(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		table [][]float64
		want  float64
	}{
		{"two islands", [][]float64{{0, inf}, {1, inf}, {inf, 0}, {inf, 3}}, math.Log(2)},
		{"nothing is reached", [][]float64{{inf, inf}, {inf, inf}}, math.Log(2)},
		{"one anchor", [][]float64{{4}, {0}}, 0},
		{"no point", nil, 0},
	} {
		var nodes, anchors []int
		for i := range c.table {
			nodes = append(nodes, i)
		}
		if len(c.table) > 0 {
			for j := range c.table[0] {
				anchors = append(anchors, j)
			}
		}
		m := MetricEntropy[int]{Distance: func(node, anchor int) float64 { return c.table[node][anchor] }}
		if got := m.Value(nodes, anchors); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, wrong := range []float64{math.NaN(), -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a distance of %v does not panic", wrong)
				}
			}()
			m := MetricEntropy[int]{Distance: func(int, int) float64 { return wrong }}
			m.Value([]int{1}, []int{2})
		}()
	}
}

// Words under the number of letters that differ: a metric of strings.
func ExampleMetricEntropy() {
	m := MetricEntropy[string]{Distance: func(x, anchor string) (differ float64) {
		for i := range min(len(x), len(anchor)) {
			if x[i] != anchor[i] {
				differ++
			}
		}
		return differ + math.Abs(float64(len(x)-len(anchor)))
	}}
	words := []string{"cat", "bat", "hat", "hull", "pull"}
	fmt.Printf("%.2f nats of at most %.2f\n", m.Value(words, []string{"rat", "full"}), math.Log(2))
	// Output: 0.68 nats of at most 0.69
}
