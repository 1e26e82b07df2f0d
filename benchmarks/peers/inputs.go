package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/benchmarks/rig"
)

// An input is a cloud to be made, and the operations that it is for.
type input struct {
	dist string
	size int // 0: as it is
	ops  []string
	dims int
	make func() (geom.Cloud[float64], error)
}

func (in input) String() string {
	if in.size == 0 {
		return in.dist
	}
	return fmt.Sprintf("%s %s", in.dist, short(in.size))
}

// short writes 1e6 for a million.
func short(n int) string {
	if e := int(math.Log10(float64(n)) + 0.5); e >= 3 && n == int(math.Pow10(e)) {
		return fmt.Sprintf("1e%d", e)
	}
	return strconv.Itoa(n)
}

// A distribution belongs to operations; ten million points are for huge ones.
type distribution struct {
	name string
	dims int
	huge bool
	ops  []string
	make func(n int, seed uint64) geom.Cloud[float64]
}

var distributions = []distribution{
	{"square", 2, true, []string{"hull2d", "maxima2d", "delaunay2d"}, geomtest.Square[float64]},
	{"disk", 2, false, []string{"hull2d"}, geomtest.Disk[float64]},
	{"gauss", 2, true, []string{"hull2d", "maxima2d", "delaunay2d"}, geomtest.Gauss[float64]},
	{"parabola", 2, false, []string{"hull2d"}, geomtest.Parabola[float64]},
	{"circle", 2, false, []string{"hull2d"}, geomtest.Circle[float64]},
	{"strokes", 2, false, []string{"hull2d"}, geomtest.Strokes[float64]},
	{"front", 2, false, []string{"maxima2d"}, geomtest.Antichain[float64]},
	{"cluster", 2, false, []string{"delaunay2d"}, cluster},
	{"grid", 2, false, []string{"delaunay2d"}, shuffledGrid},
	{"rings", 2, false, []string{"hull2d", "delaunay2d"}, geomtest.Rings[float64]},
	{"lidar", 3, false, []string{"hull3d", "maxima3d"}, geomtest.Lidar[float64]},
	{"cube", 3, true, []string{"hull3d", "maxima3d"}, geomtest.Cube[float64]},
	{"ball", 3, false, []string{"hull3d"}, geomtest.Ball[float64]},
	{"sphere", 3, false, []string{"hull3d"}, geomtest.Sphere[float64]},
	{"anti", 3, false, []string{"maxima3d"}, anticorrelated},
	{"octant", 3, false, []string{"maxima3d"}, geomtest.Octant[float64]},
}

// cluster is bells around a quarter of √n centres, of widths that differ by
// twenty times.
func cluster(n int, seed uint64) geom.Cloud[float64] {
	r := rand.New(rand.NewPCG(seed, 0xc1))
	centres := make([][3]float64, max(16, int(math.Sqrt(float64(n)))/4))
	for i := range centres {
		centres[i] = [3]float64{r.Float64(), r.Float64(), 0.0005 * math.Pow(20, r.Float64())}
	}
	c := geom.Cloud[float64]{X: make([]float64, n), Y: make([]float64, n)}
	for i := range n {
		k := centres[r.IntN(len(centres))]
		c.X[i], c.Y[i] = k[0]+k[2]*r.NormFloat64(), k[1]+k[2]*r.NormFloat64()
	}
	return c
}

// shuffledGrid is a lattice in random order: row by row would be an order that
// some libraries like and others do not.
func shuffledGrid(n int, seed uint64) geom.Cloud[float64] {
	c, _ := geomtest.Permuted(geomtest.Grid[float64](n, seed), seed)
	return c
}

// anticorrelated lies near a plane that falls along every axis, as in the
// papers on skylines.
func anticorrelated(n int, seed uint64) geom.Cloud[float64] {
	r := rand.New(rand.NewPCG(seed, 0xa3))
	c := geom.Cloud[float64]{X: make([]float64, n), Y: make([]float64, n), Z: make([]float64, n)}
	for i := range n {
		x, y, z := r.Float64(), r.Float64(), r.Float64()
		s := (1.5 + 0.12*r.NormFloat64()) / (x + y + z)
		c.X[i], c.Y[i], c.Z[i] = s*x, s*y, s*z
	}
	return c
}

const hugeSize = 10_000_000

// inputs lists what is measured, small clouds first.
func (c *timeCmd) inputs() ([]input, error) {
	sizes, err := c.sizes()
	if err != nil {
		return nil, err
	}
	for _, name := range c.Dist {
		if name != "kitti" && !slices.ContainsFunc(distributions, func(d distribution) bool { return d.name == name }) {
			return nil, fmt.Errorf("%w: no distribution is called %s", rig.ErrUsage, name)
		}
	}
	var all []input
	for _, size := range sizes {
		for _, d := range distributions {
			ops := both(d.ops, c.Ops)
			if len(ops) == 0 || !c.wants(d.name) || size >= hugeSize && !d.huge && len(c.Sizes) == 0 {
				continue
			}
			all = append(all, input{d.name, size, ops, d.dims, func() (geom.Cloud[float64], error) {
				return d.make(size, c.Seed), nil
			}})
		}
	}
	if c.wants("kitti") {
		frames, err := c.frames()
		if err != nil {
			say("no KITTI frames: %v", err)
		}
		all = append(frames, all...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no distribution of --dist belongs to --ops", rig.ErrUsage)
	}
	return all, nil
}

func (c *timeCmd) wants(dist string) bool { return len(c.Dist) == 0 || slices.Contains(c.Dist, dist) }

func (c *timeCmd) sizes() (sizes []int, err error) {
	texts := c.Sizes
	switch {
	case len(texts) == 0 && c.Quick:
		texts = []string{"1e3", "1e5"}
	case len(texts) == 0:
		texts = []string{"1e3", "1e4", "1e5", "1e6", "1e7"}
	}
	for _, text := range texts {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != math.Trunc(f) || f < 10 || f > 1e8 {
			return nil, fmt.Errorf("%w: --sizes %s: want 10 to 1e8", rig.ErrUsage, text)
		}
		sizes = append(sizes, int(f))
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}

// both returns what is in a and in b.
func both(a, b []string) (out []string) {
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// frames are two frames of every folder of KITTI scans.
func (c *timeCmd) frames() ([]input, error) {
	root, err := rig.TestData("kitti")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, depth := range []string{"*/*.bin", "*/*/*.bin"} {
		more, err := filepath.Glob(filepath.Join(root, depth))
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	var all []input
	taken := map[string]int{}
	for _, file := range files {
		if taken[filepath.Dir(file)]++; taken[filepath.Dir(file)] > 2 {
			continue
		}
		name := "kitti " + filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file)
		all = append(all, input{name, 0, c.Ops, 3, func() (geom.Cloud[float64], error) { return readScan(file) }})
	}
	if len(all) == 0 {
		return nil, errors.New("no .bin file below " + root)
	}
	return all, nil
}

// readScan reads one file of x, y, z, reflectance, and leaves out points that
// are not finite.
func readScan(path string) (geom.Cloud[float64], error) {
	c := geom.Cloud[float64]{Z: []float64{}}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	for ; len(b) >= 16; b = b[16:] {
		at := func(k int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))) }
		if x, y, z := at(0), at(1), at(2); x-x == 0 && y-y == 0 && z-z == 0 {
			c.X, c.Y, c.Z = append(c.X, x), append(c.Y, y), append(c.Z, z)
		}
	}
	return c, nil
}

// cloudFile is an input in memory and on disk.
type cloudFile struct {
	cloud geom.Cloud[float64]
	dims  int
	path  string
}

// writeCloud writes the coordinates, point by point.
func writeCloud(c geom.Cloud[float64], dims int, path string) (*cloudFile, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(writePoints(w, c, dims), w.Flush(), f.Close())
	return &cloudFile{cloud: c, dims: dims, path: path}, err
}

func writePoints(w io.Writer, c geom.Cloud[float64], dims int) error {
	var b []byte
	for i := range c.Len() {
		b = binary.LittleEndian.AppendUint64(b[:0], math.Float64bits(c.X[i]))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Y[i]))
		if dims == 3 {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Z[i]))
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}
