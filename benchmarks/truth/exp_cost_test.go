package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Law: times that are exactly of a model's form are predicted exactly, whatever the features.
func TestAModelPredictsTimesOfItsForm(t *testing.T) {
	for _, model := range costModels {
		r := rand.New(rand.NewPCG(7, 1))
		frame := func() measured {
			return measured{n: math.Floor(500 * math.Exp(5*r.Float64())), f: 4 * r.Float64(),
				h: math.Floor(300 * r.Float64())}
		}
		truth := make([]float64, len(model.terms(2, 0, 1)))
		for k := range truth {
			truth[k] = (r.Float64() - .5) / 10
		}
		frames := make([]measured, 60)
		for k := range frames {
			frames[k] = frame()
			frames[k].first = predict(truth, model, frames[k])
		}
		weights := fit(frames, model)
		for range 20 {
			m := frame()
			if got, want := predict(weights, model, m), predict(truth, model, m); math.Abs(got/want-1) > 1e-3 {
				t.Errorf("from %s: %+v is predicted as %v ms, want %v", model.name, m, got, want)
			}
		}
	}
}
