package freeze

import (
	"math"
	"slices"

	"entropipe/models/mat"
)

const (
	sampleKeys = 2048 // keys of a head to which anchors are fitted
	lloyd      = 8    // steps of k-means
	sharpness  = 3    // α times the median gap between the squared distances to nearest and second anchor
	grid       = 4    // grid points of an anchor's coordinates within the power of two below the keys' size
)

// kMeans returns k anchors. It starts with random keys, distant ones first (k-means++,
// Arthur and Vassilvitskii 2007), and takes steps of Lloyd with soft assignments that
// sharpen (deterministic annealing, Rose 1998). An anchor that loses all keys stays
// where it is. If there are fewer different keys than anchors, some anchors are
// equal. alpha is the inverse temperature of assignments to the result.
//
// Distances are float32 products, whose last bits differ between CPU levels and
// programs. Two measures hide the difference: a random choice is a race in which
// every key has its own random time, and the coordinates of the result are multiples
// of a step, an eighth to a quarter of the root mean square of the keys around their
// mean. Another program gets the same anchors unless a number lies within rounding of
// the middle between two grid points.
func kMeans(keys mat.Matrix, k int, lots uint64) (anchors mat.Matrix, alpha float64) {
	x, center := centered(keys)
	f := fitter{keys: x, near: mat.Of(x.Rows, k, make([]float32, x.Rows*k)), gaps: make([]float64, x.Rows)}
	a := f.start(k, lots)
	sums := mat.Of(k, x.Cols, make([]float32, k*x.Cols))
	mass := make([]float64, k)
	for step := range lloyd {
		mat.Softmax(f.near, float32(f.sharp(a)*math.Pow(2, float64(step-lloyd/2))))
		mat.TMul(sums, f.near, x, 1)
		clear(mass)
		for i := range x.Rows {
			for c, p := range f.near.Row(i) {
				mass[c] += float64(p)
			}
		}
		for i, m := range mass {
			for c, s := range sums.Row(i) {
				if m > 1e-9 {
					a.Row(i)[c] = float32(float64(s) / m)
				}
			}
		}
	}
	snap(a, x, center)
	f.keys = keys
	return a, f.sharp(a)
}

// centered returns the keys minus their mean, and the mean. Distances stay the same,
// while products are smaller and lose less in rounding.
func centered(keys mat.Matrix) (x mat.Matrix, center []float64) {
	x, center = mat.Of(keys.Rows, keys.Cols, make([]float32, keys.Rows*keys.Cols)), make([]float64, keys.Cols)
	for i := range keys.Rows {
		for c, v := range keys.Row(i) {
			center[c] += float64(v) / float64(keys.Rows)
		}
	}
	for i := range keys.Rows {
		for c, v := range keys.Row(i) {
			x.Row(i)[c] = float32(float64(v) - center[c])
		}
	}
	return x, center
}

// snap adds the center to the anchors a and rounds them to multiples of a step: a
// power of two that follows from the root mean square of x.
func snap(a, x mat.Matrix, center []float64) {
	square := 0.0
	for _, v := range x.Data {
		square += float64(v) * float64(v)
	}
	_, exponent := math.Frexp(math.Sqrt(square / float64(len(x.Data))))
	step := math.Ldexp(1, exponent-1) / grid
	for i := range a.Rows {
		for c, v := range a.Row(i) {
			v := float64(v) + center[c]
			if square > 0 {
				v = math.RoundToEven(v/step) * step
			}
			a.Row(i)[c] = float32(v)
		}
	}
}

// fitter holds the keys of a fit, and memory for their distances.
type fitter struct {
	keys    mat.Matrix
	near    mat.Matrix // [keys][anchors]
	measure measure
	gaps    []float64 // [keys]
}

// start returns k random keys: each next key with a probability in proportion to its
// squared distance from the nearest key so far. Every key gets a time drawn from the
// exponential distribution, divided by that distance, and the key with the least time
// is chosen (as in the reservoirs of Efraimidis and Spirakis 2006).
func (f *fitter) start(k int, lots uint64) mat.Matrix {
	a := mat.Of(k, f.keys.Cols, make([]float32, k*f.keys.Cols))
	far := slices.Repeat([]float64{1}, f.keys.Rows)
	for i := range k {
		first, least := 0, math.Inf(1)
		round := mix(lots, uint64(i))
		for x, d := range far {
			u := (float64(mix(round, uint64(x))>>11) + 0.5) / (1 << 53)
			if t := -math.Log(u) / d; t < least {
				first, least = x, t
			}
		}
		copy(a.Row(i), f.keys.Row(first))
		for x := range far {
			d := distance(f.keys.Row(x), a.Row(i))
			if i == 0 || d < far[x] {
				far[x] = d
			}
		}
	}
	return a
}

// sharp returns the inverse temperature for anchors, sharpness/median(d₂-d₁), where
// d₁ and d₂ are the squared distances of a key from its nearest and second anchor.
// It sets f.near as measure.near does.
func (f *fitter) sharp(anchors mat.Matrix) float64 {
	f.measure.set(anchors)
	f.measure.near(f.near, f.keys)
	for x := range f.gaps {
		first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
		for _, s := range f.near.Row(x) {
			switch {
			case s > first:
				first, second = s, first
			case s > second:
				second = s
			}
		}
		f.gaps[x] = float64(first - second)
	}
	slices.Sort(f.gaps)
	return sharpness / max(f.gaps[len(f.gaps)/2], 1e-12)
}

// measure holds the anchors of one or several sets in the form in which keys are
// compared with them.
type measure struct {
	w    mat.Weights // 2(a-c) for every anchor a, where c is the mean of the anchors
	bias []float32   // |c|²-|a|²
}

func (m *measure) set(anchors mat.Matrix) {
	center := make([]float64, anchors.Cols)
	for i := range anchors.Rows {
		for c, v := range anchors.Row(i) {
			center[c] += float64(v) / float64(anchors.Rows)
		}
	}
	twice := mat.Of(anchors.Rows, anchors.Cols, make([]float32, anchors.Rows*anchors.Cols))
	m.bias = make([]float32, anchors.Rows)
	for i := range anchors.Rows {
		sum := 0.0
		for c, v := range anchors.Row(i) {
			twice.Row(i)[c] = float32(2 * (float64(v) - center[c]))
			sum -= (float64(v) - center[c]) * (float64(v) + center[c])
		}
		m.bias[i] = float32(sum)
	}
	m.w.PackT(twice)
}

// near sets dst [keys][anchors] to minus the squared distances, plus a number that is
// equal for all anchors of a key.
func (m *measure) near(dst, keys mat.Matrix) {
	m.w.Mul(dst, keys, mat.Epilogue{Bias: m.bias}, 1)
}

func distance(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		e := float64(a[i]) - float64(b[i])
		d += e * e
	}
	return d
}
