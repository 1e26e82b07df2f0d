package main

import "math/rand/v2"

// corruption changes an image of side pixels into another one.
type corruption struct {
	name   string
	change func(pixels []uint8, side int, r *rand.Rand) []uint8
}

var corruptions = []corruption{
	{"noise of deviation 40", func(p []uint8, _ int, r *rand.Rand) []uint8 {
		return each(p, func(_ int, v float64) float64 { return v + 40*r.NormFloat64() })
	}},
	{"a tenth of the pixels black or white", func(p []uint8, _ int, r *rand.Rand) []uint8 {
		return each(p, func(_ int, v float64) float64 {
			if r.IntN(10) == 0 {
				return 255 * float64(r.IntN(2))
			}
			return v
		})
	}},
	{"means of 3 × 3 pixels", func(p []uint8, side int, _ *rand.Rand) []uint8 {
		return each(p, func(i int, _ float64) float64 { return around(p, side, i, 1) })
	}},
	{"contrast 0.4", func(p []uint8, _ int, _ *rand.Rand) []uint8 {
		return each(p, func(_ int, v float64) float64 { return 128 + .4*(v-128) })
	}},
	{"brighter by 60", func(p []uint8, _ int, _ *rand.Rand) []uint8 {
		return each(p, func(_ int, v float64) float64 { return v + 60 })
	}},
	{"half the resolution", func(p []uint8, side int, _ *rand.Rand) []uint8 {
		return each(p, func(i int, _ float64) float64 { return float64(p[i/side/2*2*side+i%side/2*2]) })
	}},
	{"a grey square on a sixteenth", func(p []uint8, side int, r *rand.Rand) []uint8 {
		x, y := r.IntN(side-side/4), r.IntN(side-side/4)
		return each(p, func(i int, v float64) float64 {
			if i%side >= x && i%side < x+side/4 && i/side >= y && i/side < y+side/4 {
				return 128
			}
			return v
		})
	}},
	{"fog from above, 60 % of 220 at the top", func(p []uint8, side int, _ *rand.Rand) []uint8 {
		return each(p, func(i int, v float64) float64 {
			f := .6 * (1 - float64(i/side)/float64(side))
			return (1-f)*v + f*220
		})
	}},
}

// each is a new image, clipped.
func each(p []uint8, f func(i int, v float64) float64) []uint8 {
	out := make([]uint8, len(p))
	for i, v := range p {
		out[i] = uint8(min(max(f(i, float64(v)), 0), 255))
	}
	return out
}

// around is the mean of the pixels within reach of i.
func around(p []uint8, side, i, reach int) float64 {
	sum, n := 0.0, 0.0
	for y := max(i/side-reach, 0); y <= min(i/side+reach, side-1); y++ {
		for x := max(i%side-reach, 0); x <= min(i%side+reach, side-1); x++ {
			sum, n = sum+float64(p[y*side+x]), n+1
		}
	}
	return sum / n
}
