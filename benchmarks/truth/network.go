package main

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/benchmarks/rig"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

// What the experiments with a network share. Each trains its own, on frames of
// one family, and looks at frames that neither training nor the choice of the
// best model has seen.

// tolerated is the mean error of hulls, in diagonals, at which networks of F are kept: the
// paper's bound for its own results is 0.2 %.
const tolerated = 0.0025

// planar is a family of frames in the plane, in single precision as on the wire.
type planar struct {
	name string
	make func(n int, seed uint64) geom.Cloud[float32]
}

var planarFamilies = []planar{
	{"square", geomtest.Square[float32]},
	{"parabola", geomtest.Parabola[float32]},
	{"Gauss", geomtest.Gauss[float32]},
	{"ring", ring},
	{"circle", geomtest.Circle[float32]},
}

// ring is uniform in direction, and up to one hundredth inside the unit circle.
func ring(n int, seed uint64) geom.Cloud[float32] {
	c, d := geomtest.Circle[float32](n, seed), geomtest.Square[float32](n, seed+1<<32)
	for i := range c.X {
		r := 1 - d.X[i]/100
		c.X[i], c.Y[i] = c.X[i]*r, c.Y[i]*r
	}
	return c
}

// frames makes count frames whose seeds begin at first.
func (p planar) frames(count, n int, first uint64) []geom.Cloud[float32] {
	out := make([]geom.Cloud[float32], count)
	for k := range out {
		out[k] = p.make(n, first+uint64(k))
	}
	return out
}

// learnSeeds and testSeeds are the first seeds of the frames that networks learn from, and
// of those that they are judged by.
func learnSeeds() uint64 { return firstDraw() + 1000 }
func testSeeds() uint64  { return firstDraw() + 9000 }

// learnSeedsOf is the first seed of the frames that the network of one seed learns from.
func learnSeedsOf(seed uint64) uint64 { return firstDrawOf([]uint64{seed}) + 1000 }

// trainOn trains a network on frames; the collector holds every fifth back to
// choose the best model by.
func trainOn(ctx context.Context, cfg train.Config, dims int, frames []geom.Cloud[float32]) (*net.Net,
	*train.Trainer, error) {
	c := train.Collector{Dims: dims}
	for _, f := range frames {
		if err := c.Add(f); err != nil {
			return nil, nil, err
		}
	}
	data, err := c.Data()
	if err != nil {
		return nil, nil, err
	}
	t, err := train.New(cfg, data)
	if err != nil {
		return nil, nil, err
	}
	for !t.Done() {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err := t.Step(); err != nil {
			return nil, nil, err
		}
	}
	n, err := net.New(t.Model())
	return n, t, err
}

// outputOf is the operator's answer: hull vertices or maximal points.
func outputOf(c geom.Cloud[float32], p entropy.Problem) []int32 {
	switch p {
	case entropy.Hull2D:
		return (&hull.Hull2D[float32]{}).Append(nil, c)
	case entropy.Hull3D:
		v, _, _ := (&hull.Hull3D[float32]{}).Append(nil, nil, c)
		return v
	case entropy.Maxima3D:
		return (&maxima.Maxima[float32]{}).Append3D(nil, c)
	}
	return (&maxima.Maxima[float32]{}).Append2D(nil, c)
}

// truthOf is the cloud's entropy by the ground-truth protocol.
func truthOf(c geom.Cloud[float32], p entropy.Problem) float64 {
	return entropy.GroundTruth(c, outputOf(c, p), p).Estimate
}

// hullError is the Hausdorff distance between the hull of c and that of its
// predicted points, in diagonals of the frame.
func hullError(c geom.Cloud[float32], predicted []int32) float64 {
	_, e := (&net.Judge[float32]{}).Hull2D(nil, c, predicted)
	return e / diagonalOf(c)
}

// diagonalOf is the length of the diagonal of the cloud's box.
func diagonalOf(c geom.Cloud[float32]) float64 {
	d := 0.0
	for _, axis := range [...][]float32{c.X, c.Y, c.Z} {
		if len(axis) > 0 {
			lo, hi := net.Extent(axis)
			d = math.Hypot(d, hi-lo)
		}
	}
	return d
}

// kittiFrames reads the scans of the real drive, so many points of each, spread over it;
// none where the data are not there.
func kittiFrames(points int) ([]geom.Cloud[float32], error) {
	dir, err := rig.TestData("kitti", "raw_2011_09_26_drive_0005")
	if err != nil {
		return nil, nil // not there: the cell says so
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var frames []geom.Cloud[float32]
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var c geom.Cloud[float32]
		n := len(b) / 16
		m := min(points, n)
		for k := range m {
			p := b[k*n/m*16:]
			at := func(d int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(p[4*d:])) }
			c.X, c.Y, c.Z = append(c.X, at(0)), append(c.Y, at(1)), append(c.Z, at(2))
		}
		frames = append(frames, c)
	}
	return frames, nil
}
