package geomtest

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/algos/geom"
)

// TestData returns the path of a part of the real data, below the folder that
// ENTROPIPE_TESTDATA names; without that variable, below ../shared/data beside the
// repository's root. It skips the test, with the reason, when the path does not exist.
func TestData(t testing.TB, parts ...string) string {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		module, err := moduleRoot()
		if err != nil {
			t.Skipf("real data: ENTROPIPE_TESTDATA is not set, and %v", err)
		}
		root = filepath.Join(module, "..", "shared", "data")
	}
	path := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	return path
}

// moduleRoot returns the folder with go.mod, the working directory or a folder above it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = up
	}
}

// RealFrames reads all KITTI frames of the real data, without points with a coordinate
// that is not finite. It skips the test when there are no frames.
func RealFrames(t testing.TB) []Named[float32] {
	t.Helper()
	root := TestData(t, "kitti")
	files, err := filepath.Glob(filepath.Join(root, "*", "*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob(filepath.Join(root, "*", "*", "*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Named[float32]
	for _, f := range append(files, deeper...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Named[float32]{strings.TrimPrefix(f, root+"/"), kitti(b)})
	}
	if len(out) == 0 {
		t.Skipf("real data: no .bin file below %s", root)
	}
	return out
}

// kitti decodes little-endian float32 x, y, z, reflectance.
func kitti(b []byte) geom.Cloud[float32] {
	c := geom.Cloud[float32]{Z: []float32{}}
	for ; len(b) >= 16; b = b[16:] {
		at := func(k int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:])) }
		if x, y, z := at(0), at(1), at(2); x-x == 0 && y-y == 0 && z-z == 0 {
			c.X, c.Y, c.Z = append(c.X, x), append(c.Y, y), append(c.Z, z)
		}
	}
	return c
}

// Drawings reads all QuickDraw drawings of the real data, simplified (integers 0 to 255)
// and raw (pen positions with fractions). Each drawing is a cloud with its strokes one
// after the other. It skips the test when there are no drawings.
func Drawings[T geom.Float](t testing.TB) []Named[T] {
	t.Helper()
	root := TestData(t, "sketch")
	files, err := filepath.Glob(filepath.Join(root, "quickdraw_*", "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Named[T]
	for _, f := range files {
		if out, err = appendDrawings(out, f, strings.TrimPrefix(f, root+"/")); err != nil {
			t.Fatal(err)
		}
	}
	if len(out) == 0 {
		t.Skipf("real data: no quickdraw_*/*.ndjson below %s", root)
	}
	return out
}

func appendDrawings[T geom.Float](out []Named[T], path, name string) ([]Named[T], error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for k := 1; lines.Scan(); k++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var d struct{ Drawing [][][]float64 }
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, k, err)
		}
		var c geom.Cloud[T]
		for _, stroke := range d.Drawing {
			if len(stroke) < 2 || len(stroke[0]) != len(stroke[1]) {
				return nil, fmt.Errorf("%s:%d: a stroke's x and y differ in length", path, k)
			}
			for i := range stroke[0] {
				c.X, c.Y = append(c.X, T(stroke[0][i])), append(c.Y, T(stroke[1][i]))
			}
		}
		out = append(out, Named[T]{fmt.Sprintf("%s:%d", name, k), c})
	}
	return out, lines.Err()
}
