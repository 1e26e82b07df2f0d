package geomtest

import (
	"cmp"
	"slices"

	"entropipe/algos/geom"
)

// Hull2D is the oracle of package hull. It returns the strict vertices of the convex hull,
// counter-clockwise from the lexicographic minimum, representatives only: no index for no
// point, one index for equal points, two for collinear points. It is a monotone chain in
// exact arithmetic. Cost: O(n log n).
func Hull2D[T geom.Float](c geom.Cloud[T]) []int32 {
	p := distinctSorted(c)
	if len(p) < 3 {
		return p
	}
	turn := func(a, b, i int32) int {
		return OrientExact(float64(c.X[a]), float64(c.Y[a]), float64(c.X[b]), float64(c.Y[b]),
			float64(c.X[i]), float64(c.Y[i]))
	}
	half := func() []int32 {
		var h []int32
		for _, i := range p {
			for len(h) >= 2 && turn(h[len(h)-2], h[len(h)-1], i) <= 0 {
				h = h[:len(h)-1]
			}
			h = append(h, i)
		}
		return h[:len(h)-1]
	}
	lower := half()
	slices.Reverse(p)
	return append(lower, half()...)
}

// distinctSorted returns the representatives of c, sorted by x, then y.
func distinctSorted[T geom.Float](c geom.Cloud[T]) []int32 {
	p := indices(c.Len())
	slices.SortFunc(p, func(a, b int32) int {
		return cmp.Or(lexicographic(a, b, c.X, c.Y), cmp.Compare(a, b))
	})
	return slices.CompactFunc(p, func(a, b int32) bool { return c.X[a] == c.X[b] && c.Y[a] == c.Y[b] })
}

// lexicographic compares points a and b axis by axis. Coordinates must not be NaN.
func lexicographic[T geom.Float](a, b int32, axes ...[]T) int {
	for _, v := range axes {
		if v[a] < v[b] {
			return -1
		}
		if v[a] > v[b] {
			return 1
		}
	}
	return 0
}

func indices(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i)
	}
	return p
}

// MaximaBrute is the oracle of package maxima, by definition: point p stays unless another
// point is at least as good on each of the first dims axes (2 or 3) and differs from p, or
// equals p and has a lower index. low[k] says that axis k is minimised. Cost: O(n²), for
// up to some thousand points.
func MaximaBrute[T geom.Float](c geom.Cloud[T], dims int, low [3]bool) []int32 {
	axes := signed(c, dims, low)
	var out []int32
	for i := range c.X {
		if !slices.ContainsFunc(indices(c.Len()), func(j int32) bool { return beats(axes, int(j), i) }) {
			out = append(out, int32(i))
		}
	}
	return out
}

// signed returns dims axes, the minimised ones negated.
func signed[T geom.Float](c geom.Cloud[T], dims int, low [3]bool) [][]T {
	axes := [][]T{c.X, c.Y, c.Z}[:dims]
	for k, v := range axes {
		if low[k] {
			axes[k] = make([]T, len(v))
			for i := range v {
				axes[k][i] = -v[i]
			}
		}
	}
	return axes
}

func beats[T geom.Float](axes [][]T, j, i int) bool {
	equal := true
	for _, v := range axes {
		if v[j] < v[i] {
			return false
		}
		equal = equal && v[j] == v[i]
	}
	return !equal || j < i
}

// Maxima returns the result of MaximaBrute. It takes points by descending x (then y, z,
// ascending index), with a Fenwick tree over the ranks of y that holds the largest z so
// far. Cost: O(n log n).
func Maxima[T geom.Float](c geom.Cloud[T], dims int, low [3]bool) []int32 {
	axes := signed(c, dims, low)
	n := c.Len()
	if dims == 2 {
		axes = append(axes, make([]T, n))
	}
	x, y, z := axes[0], axes[1], axes[2]
	order := indices(n)
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(lexicographic(b, a, x, y, z), cmp.Compare(a, b))
	})
	ys := slices.Clone(y)
	slices.Sort(ys)
	best := make([]int32, n+1) // best[k]: 1 + index of a point with the largest z, or 0
	var out []int32
	for _, i := range order {
		first, _ := slices.BinarySearch(ys, y[i])
		rank := n - first // points with a larger or equal y have ranks of at most rank
		beaten := false
		for k := rank; k > 0; k -= k & -k {
			beaten = beaten || best[k] > 0 && z[best[k]-1] >= z[i]
		}
		if beaten {
			continue
		}
		out = append(out, i)
		for k := rank; k <= n; k += k & -k {
			if best[k] == 0 || z[best[k]-1] < z[i] {
				best[k] = i + 1
			}
		}
	}
	slices.Sort(out)
	return out
}
