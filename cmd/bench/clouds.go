package bench

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"entropipe/algos/geom"
	"entropipe/cmd/config"
	"entropipe/ingest/replay"
)

// A distribution is where the points of a benchmark's clouds lie. Street and
// drawings are those that produce sends; the formulas of the others are
// written here again, since package geomtest, which has them too, belongs to
// tests and would bring their libraries into the program.
type distribution struct {
	name string
	dims int
	make func(n int, r *rand.Rand) (geom.Cloud[float64], error)
}

// distributions are all that --dist knows.
var distributions = []distribution{
	plane("square", func(r *rand.Rand, _, _ int) (x, y float64) { return r.Float64(), r.Float64() }),
	plane("disk", func(r *rand.Rand, _, _ int) (x, y float64) {
		s, c := math.Sincos(2 * math.Pi * r.Float64())
		d := math.Sqrt(r.Float64())
		return d * c, d * s
	}),
	plane("gauss", func(r *rand.Rand, _, _ int) (x, y float64) { return r.NormFloat64(), r.NormFloat64() }),
	plane("parabola", func(r *rand.Rand, _, _ int) (x, y float64) {
		x = 2*r.Float64() - 1
		return x, x*x + 0.01*r.NormFloat64()
	}),
	plane("circle", func(r *rand.Rand, _, _ int) (x, y float64) {
		y, x = math.Sincos(2 * math.Pi * r.Float64())
		return x, y
	}),
	plane("front", func(r *rand.Rand, _, _ int) (x, y float64) { // no point dominates another
		x = r.Float64()
		return x, 1 - x
	}),
	plane("grid", func(_ *rand.Rand, i, n int) (x, y float64) {
		side := int(math.Ceil(math.Sqrt(float64(n))))
		return float64(i % side), float64(i / side)
	}),
	{"cluster", 2, clusters},
	{"strokes", 2, strokes},
	{"rings", 2, lidar},
	{"lidar", 3, lidar},
	space("cube", func(r *rand.Rand) (x, y, z float64) { return r.Float64(), r.Float64(), r.Float64() }),
	space("ball", func(r *rand.Rand) (x, y, z float64) {
		x, y, z = direction(r)
		d := math.Cbrt(r.Float64())
		return d * x, d * y, d * z
	}),
	space("sphere", direction),
	space("anti", func(r *rand.Rand) (x, y, z float64) { // near a plane that falls along every axis
		x, y, z = r.Float64(), r.Float64(), r.Float64()
		s := (1.5 + 0.12*r.NormFloat64()) / (x + y + z)
		return s * x, s * y, s * z
	}),
	space("octant", func(r *rand.Rand) (x, y, z float64) { // almost all points are maximal
		x, y, z = direction(r)
		return math.Abs(x), math.Abs(y), math.Abs(z)
	}),
}

// plane is a distribution of independent points (x, y).
func plane(name string, f func(r *rand.Rand, i, n int) (x, y float64)) distribution {
	return distribution{name, 2, func(n int, r *rand.Rand) (geom.Cloud[float64], error) {
		c := geom.Cloud[float64]{X: make([]float64, n), Y: make([]float64, n)}
		for i := range n {
			c.X[i], c.Y[i] = f(r, i, n)
		}
		return c, nil
	}}
}

// space is a distribution of independent points (x, y, z).
func space(name string, f func(r *rand.Rand) (x, y, z float64)) distribution {
	return distribution{name, 3, func(n int, r *rand.Rand) (geom.Cloud[float64], error) {
		c := geom.Cloud[float64]{X: make([]float64, n), Y: make([]float64, n), Z: make([]float64, n)}
		for i := range n {
			c.X[i], c.Y[i], c.Z[i] = f(r)
		}
		return c, nil
	}}
}

// direction is uniform on the unit sphere.
func direction(r *rand.Rand) (x, y, z float64) {
	x, y, z = r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
	d := math.Sqrt(x*x + y*y + z*z)
	return x / d, y / d, z / d
}

// clusters are some hundred bells of widths that differ by twenty times.
func clusters(n int, r *rand.Rand) (geom.Cloud[float64], error) {
	centres := make([][3]float64, max(16, int(math.Sqrt(float64(n)))/4))
	for i := range centres {
		centres[i] = [3]float64{r.Float64(), r.Float64(), 0.0005 * math.Pow(20, r.Float64())}
	}
	return plane("", func(r *rand.Rand, _, _ int) (x, y float64) {
		c := centres[r.IntN(len(centres))]
		return c[0] + c[2]*r.NormFloat64(), c[1] + c[2]*r.NormFloat64()
	}).make(n, r)
}

// strokes are whole pixels: drawings of the synthetic crowd, one over the
// other until there are n points.
func strokes(n int, r *rand.Rand) (geom.Cloud[float64], error) {
	src, err := replay.Sketches{Seed: r.Uint64()}.Open()
	if err != nil {
		return geom.Cloud[float64]{}, err
	}
	defer src.Close()
	var it replay.Item
	c := geom.Cloud[float64]{X: make([]float64, 0, n), Y: make([]float64, 0, n)}
	for c.Len() < n {
		if err := src.Next(&it); err != nil {
			return c, err
		}
		for _, d := range it.Drawings {
			most := min(len(d.X), n-c.Len())
			c.X, c.Y = appendAs(c.X, d.X[:most]), appendAs(c.Y, d.Y[:most])
		}
	}
	return c, nil
}

// lidar is a sweep of the synthetic sensor, about n points; more than a
// sweep can have are several.
func lidar(n int, r *rand.Rand) (geom.Cloud[float64], error) {
	src, err := replay.LiDAR{Points: min(max(n, 1), replay.MaxSyntheticPoints), Seed: r.Uint64()}.Open()
	if err != nil {
		return geom.Cloud[float64]{}, err
	}
	defer src.Close()
	var it replay.Item
	c := geom.Cloud[float64]{Z: []float64{}}
	for range (n + replay.MaxSyntheticPoints - 1) / replay.MaxSyntheticPoints {
		if err := src.Next(&it); err != nil {
			return c, err
		}
		c.X, c.Y, c.Z = appendAs(c.X, it.Cloud.X), appendAs(c.Y, it.Cloud.Y), appendAs(c.Z, it.Cloud.Z)
	}
	return c, nil
}

// scans reads the scans of a KITTI folder, at most most of them; points with a
// coordinate that is not finite are left out.
func scans(dir string, most int) (clouds []geom.Cloud[float64], err error) {
	src, err := replay.KITTI{Dir: dir}.Open()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var it replay.Item
	for len(clouds) < most {
		if err := src.Next(&it); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		in, c := it.Cloud, geom.Cloud[float64]{Z: []float64{}}
		for i := range in.X {
			if x, y, z := float64(in.X[i]), float64(in.Y[i]), float64(in.Z[i]); x-x == 0 && y-y == 0 && z-z == 0 {
				c.X, c.Y, c.Z = append(c.X, x), append(c.Y, y), append(c.Z, z)
			}
		}
		clouds = append(clouds, c)
	}
	if len(clouds) == 0 {
		return nil, fmt.Errorf("%s: no scan", config.ShownPath(dir))
	}
	return clouds, nil
}

// appendAs appends src to dst in dst's type.
func appendAs[D, S geom.Float](dst []D, src []S) []D {
	for _, v := range src {
		dst = append(dst, D(v))
	}
	return dst
}

// cloudAs copies c in another type, without z for a flat operator: what that
// does not look at should not be counted as read.
func cloudAs[T geom.Float](c geom.Cloud[float64], dims int) geom.Cloud[T] {
	out := geom.Cloud[T]{X: appendAs(make([]T, 0, c.Len()), c.X), Y: appendAs(make([]T, 0, c.Len()), c.Y)}
	if dims == 3 {
		out.Z = appendAs(make([]T, 0, c.Len()), c.Z)
	}
	return out
}
