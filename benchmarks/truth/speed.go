package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/benchmarks/rig"
)

// What the experiments about time share: frames as streams, real ones among
// them.

// absent is the record of a cell whose real data are not there.
func absent(family string, err error) []record {
	return []record{{Text: map[string]string{"family": family,
		"method": "not there: " + strings.ReplaceAll(err.Error(), "|", "/")}, Values: map[string]float64{"absent": 1}}}
}

// isAbsent reports whether a record says that the data of its cell are not there.
func isAbsent(r *record) bool { return r.Values["absent"] == 1 }

// here leaves out the records of absent data.
func here(records []record) []record {
	return slices.DeleteFunc(slices.Clone(records), func(r record) bool { return isAbsent(&r) })
}

// samePolygon tells whether two lists name the same corners in the same order;
// which of equal points stands does not matter.
func samePolygon(c geom.Cloud[float32], a, b []int32) bool {
	return slices.EqualFunc(a, b, func(i, j int32) bool { return c.X[i] == c.X[j] && c.Y[i] == c.Y[j] })
}

// wideParabola is the other reading of the paper's N(0, 0.01): a variance.
func wideParabola(n int, seed uint64) geom.Cloud[float32] {
	c, e := geomtest.Square[float32](n, seed), geomtest.Gauss[float32](n, seed+1<<32)
	for i, v := range c.X {
		c.X[i] = 2*v - 1
		c.Y[i] = c.X[i]*c.X[i] + 0.1*e.X[i]
	}
	return c
}

// drift makes a stream of the frame c: from each to the next, every point moves
// by a thousandth, normally distributed, of the unit that generators have.
func drift(c geom.Cloud[float32], count int, seed uint64) []geom.Cloud[float32] {
	r := rand.New(rand.NewPCG(seed, 7))
	out := []geom.Cloud[float32]{c}
	for len(out) < count {
		last := out[len(out)-1]
		next := geom.Cloud[float32]{X: slices.Clone(last.X), Y: slices.Clone(last.Y)}
		for i := range next.X {
			next.X[i] += float32(1e-3 * r.NormFloat64())
			next.Y[i] += float32(1e-3 * r.NormFloat64())
		}
		out = append(out, next)
	}
	return out
}

// scanFrames reads binary scans of so many float32 values a point, x, y and z
// first; points that are not finite are left out.
func scanFrames(width int, parts ...string) ([]geom.Cloud[float32], error) {
	pattern := parts[len(parts)-1]
	dir, err := rig.TestData(parts[:len(parts)-1]...)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
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
		c := geom.Cloud[float32]{Z: []float32{}}
		for ; len(b) >= 4*width; b = b[4*width:] {
			at := func(k int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:])) }
			if x, y, z := at(0), at(1), at(2); x-x == 0 && y-y == 0 && z-z == 0 {
				c.X, c.Y, c.Z = append(c.X, x), append(c.Y, y), append(c.Z, z)
			}
		}
		frames = append(frames, c)
	}
	if len(frames) == 0 {
		return nil, os.ErrNotExist
	}
	return frames, nil
}

// kittiDrive reads the real drive, whole scans.
func kittiDrive() ([]geom.Cloud[float32], error) {
	return scanFrames(4, "kitti", "raw_2011_09_26_drive_0005", "*.bin")
}

// nuscenesSweeps reads what there is of the other scanner.
func nuscenesSweeps() ([]geom.Cloud[float32], error) { return scanFrames(5, "nuscenes", "*.bin") }

// drawings reads the first drawings with pen positions, one cloud each, of as
// many kinds as it takes.
func drawings(count int) ([]geom.Cloud[float32], error) {
	dir, err := rig.TestData("sketch", "quickdraw_raw")
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var out []geom.Cloud[float32]
	for _, path := range paths {
		if out, err = appendDrawings(out, path, count); err != nil || len(out) >= count {
			return out, err
		}
	}
	return out, nil
}

func appendDrawings(out []geom.Cloud[float32], path string, count int) ([]geom.Cloud[float32], error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() && len(out) < count {
		var d struct{ Drawing [][][]float64 }
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return nil, err
		}
		var c geom.Cloud[float32]
		for _, stroke := range d.Drawing {
			for i := range min(len(stroke[0]), len(stroke[1])) {
				c.X, c.Y = append(c.X, float32(stroke[0][i])), append(c.Y, float32(stroke[1][i]))
			}
		}
		if c.Len() > 3 {
			out = append(out, c)
		}
	}
	return out, lines.Err()
}

// put sets a value.
func (r *record) put(name string, v float64) {
	if r.Values == nil {
		r.Values = map[string]float64{}
	}
	r.Values[name] = v
}
