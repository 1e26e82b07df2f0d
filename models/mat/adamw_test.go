package mat

import (
	"fmt"
	"math"
	"testing"
)

// Against the definition in float64, step by step from the same state, for
// every length.
func TestAdamW(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(41)
		o := AdamW{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.01}
		for n := range 70 {
			p, g, m, v := random(r, 1, n), random(r, 1, n), Of(1, n, make([]float32, n)), Of(1, n, make([]float32, n))
			for step := 1; step < 20; step++ {
				what := fmt.Sprintf("%d weights, step %d", n, step)
				want, size := make([][]float64, 3), make([][]float64, 3)
				for i := range n {
					d := 0.5 * float64(g.Data[i])
					m1 := o.Beta1*float64(m.Data[i]) + (1-o.Beta1)*d
					v1 := o.Beta2*float64(v.Data[i]) + (1-o.Beta2)*d*d
					change := o.Rate * m1 / (1 - math.Pow(o.Beta1,
						float64(step))) / (math.Sqrt(v1/(1-math.Pow(o.Beta2, float64(step)))) + o.Eps)
					p1 := float64(p.Data[i])*(1-o.Rate*o.Decay) - change
					want[0], size[0] = append(want[0], p1), append(size[0], math.Abs(p1)+8*math.Abs(change))
					want[1], size[1] = append(want[1], m1), append(size[1],
						math.Abs(o.Beta1*float64(m.Data[i]))+math.Abs(d))
					want[2], size[2] = append(want[2], v1), append(size[2], math.Abs(v1))
				}
				o.Update(p.Row(0), g.Row(0), m.Data, v.Data, step, 0.5)
				near(t, p, want[:1], size[:1], 0x1p-22, what+" weights")
				near(t, m, want[1:2], size[1:2], 0x1p-22, what+" first moments")
				near(t, v, want[2:], size[2:], 0x1p-22, what+" second moments")
				intact(t, p, what)
				for i := range n {
					g.Data[i] = float32(r.NormFloat64())
				}
			}
		}
	})
}

func BenchmarkAdamW(b *testing.B) {
	const n = 76_000
	v := func() []float32 { return make([]float32, n) }
	p, g, m, s := v(), v(), v(), v()
	for b.Loop() {
		AdamW{1e-3, 0.9, 0.999, 1e-8, 0.01}.Update(p, g, m, s, 3, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/number")
}
