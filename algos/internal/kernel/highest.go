package kernel

import "math"

//go:generate go run -C gen ./highest -out ../highest_amd64.s -stubs ../highest_amd64.go -pkg kernel

// HighTile is the number of points that Highest examines at a time.
const HighTile = 64

// Highest finds for each of len(at) directions u the first point with the largest u·p,
// computed with rounded products. It writes the position of the point to at, and the
// product to best, which has the same length. directions holds three coordinates each.
// x, y and z have equal lengths, a positive multiple of HighTile; no product or sum may
// overflow. Cost: some 0.06 ns a point and direction with AVX-512, 0.1 ns with AVX2, 1 ns
// without.
func Highest(directions, x, y, z, best []float32, at []int32) {
	if len(at) == 0 {
		return
	}
	n := len(at)
	_, _, _, _ = directions[3*n-1], best[n-1], y[len(x)-1], z[len(x)-1]
	for k := range at {
		best[k], at[k] = float32(math.Inf(-1)), 0
	}
	tiles := len(x) / HighTile
	switch level {
	case AVX512:
		highestAVX512(&directions[0], n, &x[0], &y[0], &z[0], tiles, &best[0], &at[0])
	case AVX2:
		highestAVX2(&directions[0], n, &x[0], &y[0], &z[0], tiles, &best[0], &at[0])
	default:
		highest(directions, x, y, z, best, at)
	}
	for k := range at {
		from := int(at[k]) * HighTile
		for i := from; i < from+HighTile; i++ {
			if height(directions[3*k:], x[i], y[i], z[i]) == best[k] {
				at[k] = int32(i)
				break
			}
		}
	}
}

// highest raises best[k] to the largest product of direction k, and sets at[k] to the
// first tile with that product.
func highest(directions, x, y, z, best []float32, at []int32) {
	for t := 0; t < len(x); t += HighTile {
		x, y, z := x[t:t+HighTile], y[t:t+HighTile], z[t:t+HighTile]
		for k := range at {
			u, m := directions[3*k:3*k+3], best[k]
			for i := range x {
				if h := height(u, x[i], y[i], z[i]); h > m {
					m = h
				}
			}
			if m > best[k] {
				best[k], at[k] = m, int32(t/HighTile)
			}
		}
	}
}

func height(u []float32, x, y, z float32) float32 {
	return float32(float32(u[0]*x)+float32(u[1]*y)) + float32(u[2]*z)
}
