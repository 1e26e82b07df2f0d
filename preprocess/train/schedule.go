package train

import "math"

// plan holds the scheduled values of one step. They are functions of the step alone,
// so a resumed training continues with the same values.
type plan struct {
	rate   float64
	lambda float64
	tau    float64 // temperature of F and of HSoft
	alpha  float64 // sharpness of HDiff
}

// planOf returns the plan of a step, counted from 0. The regulariser's weight is 0
// for a tenth of the steps (the paper: 20 of 200 epochs) and grows to its full value
// over another tenth. After the first tenth tau falls geometrically, so ranges become
// sharper; HDiff's alpha falls from 10 to 5 by a cosine over half of that time, as in
// the paper, although a smaller alpha makes assignments softer. The learning rate
// falls by a cosine to a hundredth of its first value. Config.Alpha replaces the fall of
// alpha.
func planOf(c *Config, step int) plan {
	t := float64(step) / float64(max(c.Steps, 2)-1)
	begun := clamp((t - 0.1) / 0.9)
	p := plan{
		rate:   learningRate * (0.01 + 0.99*(1+math.Cos(math.Pi*t))/2),
		lambda: c.Lambda * clamp((t-0.1)/0.1),
		tau:    tauFirst * math.Pow(c.Tau/tauFirst, begun),
		alpha:  alphaLast + (alphaFirst-alphaLast)*(1+math.Cos(math.Pi*clamp(2*begun)))/2,
	}
	if c.Alpha > 0 {
		p.alpha = c.Alpha
	}
	return p
}

func clamp(v float64) float64 { return max(0, min(1, v)) }
