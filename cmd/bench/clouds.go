package bench

import (
	"fmt"
	"io"
	"math/rand/v2"

	"entropipe/algos/geom"
	"entropipe/algos/shapes"
	"entropipe/cmd/config"
	"entropipe/ingest/replay"
)

// A distribution is where the points of a benchmark's clouds lie. Clouds of
// street scenes and drawings are those that produce sends; package shapes has the
// other distributions.
type distribution struct {
	name string
	dims int
	make func(n int, r *rand.Rand) (geom.Cloud[float64], error)
}

// distributions are all distributions that --dist knows.
var distributions = []distribution{
	plane("square", shapes.Square),
	plane("disk", shapes.Disk),
	plane("gauss", shapes.Gauss),
	plane("parabola", shapes.Parabola),
	plane("circle", shapes.Circle),
	plane("front", shapes.Front),
	plane("grid", shapes.Grid),
	{"cluster", 2, func(n int, r *rand.Rand) (geom.Cloud[float64], error) {
		return shapes.Plane[float64](n, r, shapes.Clusters(n, r)), nil
	}},
	{"strokes", 2, strokes},
	{"rings", 2, lidar},
	{"lidar", 3, lidar},
	space("cube", shapes.Cube),
	space("ball", shapes.Ball),
	space("sphere", shapes.Sphere),
	space("anti", shapes.Anti),
	space("octant", shapes.Octant),
}

// plane is a distribution of points in the plane.
func plane(name string, draw shapes.Point2) distribution {
	return distribution{name, 2, func(n int, r *rand.Rand) (geom.Cloud[float64], error) {
		return shapes.Plane[float64](n, r, draw), nil
	}}
}

// space is a distribution of points in space.
func space(name string, draw shapes.Point3) distribution {
	return distribution{name, 3, func(n int, r *rand.Rand) (geom.Cloud[float64], error) {
		return shapes.Space[float64](n, r, draw), nil
	}}
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
		c.X, c.Y, c.Z = appendAs(c.X, it.Cloud.Cloud32.X), appendAs(c.Y, it.Cloud.Cloud32.Y),
			appendAs(c.Z, it.Cloud.Cloud32.Z)
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
		in, c := it.Cloud.Cloud32, geom.Cloud[float64]{Z: []float64{}}
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
