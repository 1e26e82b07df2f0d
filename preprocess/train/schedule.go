package train

import "math"

// plan is what a step is taken with: functions of the step alone, so that a
// resumed training goes on where it was.
type plan struct {
	rate   float64
	lambda float64
	tau    float64 // temperature of F and of HSoft
	alpha  float64 // sharpness of HDiff
}

// planOf is the plan of a step, counted from 0. The regulariser begins after a
// tenth of the steps (the paper: epoch 20 of 200) and grows to its full weight
// over another tenth. From then on tau falls geometrically: ranges become
// sharper. HDiff's alpha goes from 10 to 5 by a cosine over half of that time,
// as the paper has it, though that softens. The rate falls by a cosine to a
// hundredth in the end.
func planOf(c *Config, step int) plan {
	t := float64(step) / float64(max(c.Steps, 2)-1)
	begun := clamp((t - 0.1) / 0.9)
	return plan{
		rate:   learningRate * (0.01 + 0.99*(1+math.Cos(math.Pi*t))/2),
		lambda: c.Lambda * clamp((t-0.1)/0.1),
		tau:    tauFirst * math.Pow(tauLast/tauFirst, begun),
		alpha:  alphaLast + (alphaFirst-alphaLast)*(1+math.Cos(math.Pi*clamp(2*begun)))/2,
	}
}

func clamp(v float64) float64 { return max(0, min(1, v)) }
