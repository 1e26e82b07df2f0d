package exact_test

import (
	"math"
	"math/rand/v2"
	"testing"
)

func BenchmarkPredicates(b *testing.B) {
	const cases = 1024
	rng := rand.New(rand.NewPCG(1, 2))
	for _, cloud := range []struct {
		name string
		draw func() float64
	}{
		{"random", rng.Float64},
		{"pixels", func() float64 { return float64(rng.IntN(3)) }},
		{"float32", func() float64 { return float64(float32(rng.IntN(3)) + 40.123) }},
		{"tenth", func() float64 { return float64(rng.IntN(3)) / 10 }}, // rounded differences
		{"utm", func() float64 { return 1e7 + float64(rng.IntN(3))*0.1 }},
		{"tails", func() float64 { return 0.1 + 1e7*float64(rng.IntN(3)) }}, // two limbs
		{"spread", func() float64 { return math.Ldexp(float64(rng.IntN(3)), 500*rng.IntN(3)-500) }},
	} {
		p := make([]float64, 15*cases)
		for i := range p {
			p[i] = cloud.draw()
		}
		for _, q := range predicates {
			b.Run(q.name+"/"+cloud.name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					q.sign(p[i%cases*15:])
				}
			})
		}
	}
}
