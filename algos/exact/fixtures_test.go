package exact_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"entropipe/algos/geomtest"
)

// The published fixtures of 1000 hard cases each.
func TestPublishedFixtures(t *testing.T) {
	for file, q := range map[string]predicate{"orient2d": predicates[0], "incircle": predicates[1]} {
		t.Run(file, func(t *testing.T) {
			f, err := os.Open(geomtest.TestData(t, "oracles", "robust_predicates", file+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cases := 0
			for sc := bufio.NewScanner(f); sc.Scan(); cases++ {
				p := make([]float64, q.size())
				var id, want int
				args := []any{&id}
				for i := range p {
					args = append(args, &p[i])
				}
				if _, err := fmt.Sscan(sc.Text(), append(args, &want)...); err != nil {
					t.Fatalf("%q: %v", sc.Text(), err)
				}
				// The fixtures count a point left of the line, and inside the circle,
				// of the opposite sign.
				rational := q.rational(p)
				if got := q.sign(p); got != rational || abs(got) != abs(want) {
					t.Errorf("case %d: %d, fixture %d, rational %d: %v", id, got, want, rational, p)
				}
			}
			if cases != 1000 {
				t.Errorf("%d cases, want 1000", cases)
			}
		})
	}
}

func abs(v int) int { return max(v, -v) }

// The point sets on which other libraries failed, or which they test with:
// points near each other in the file, which are near each other in the plane
// or on one line, and any others.
func TestPointsOfOtherLibraries(t *testing.T) {
	const seed = 21
	files, tuples := 0, 500
	if testing.Short() {
		tuples = 50
	}
	for _, pattern := range []string{"delaunator_js/*.json", "cdt/inputs/*.txt", "pargeo/*.txt", "ann_knn/*.pts"} {
		paths, err := filepath.Glob(filepath.Join(geomtest.TestData(t, "oracles"), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			files++
			r := rand.New(rand.NewPCG(seed, 0))
			points := readPoints(t, path)
			for _, q := range predicates {
				if q.dims != len(points[0]) {
					continue
				}
				for range tuples {
					var p []float64
					start, reach := r.IntN(len(points)), 2+r.IntN(len(points))
					for range q.points {
						p = append(p, points[(start+r.IntN(reach))%len(points)]...)
					}
					if got, want := q.sign(p), q.rational(p); got != want {
						t.Errorf("%s, seed %d: %s(%v) = %d, want %d", path, seed, q.name, p, got, want)
					}
				}
			}
		}
	}
	if files < 14 {
		t.Errorf("%d files, want 14 or more", files)
	}
}

var number = regexp.MustCompile(`[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?`)

// readPoints reads nested lists of JSON, or lines of numbers after an optional
// line with two counts.
func readPoints(t *testing.T, path string) (points [][]float64) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) == ".json" {
		if err := json.Unmarshal(b, &points); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return points
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if filepath.Base(filepath.Dir(path)) == "inputs" { // points, then edges
		var n int
		if _, err := fmt.Sscan(lines[0], &n); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		lines = lines[1 : n+1]
	}
	for _, line := range lines {
		var p []float64
		for _, field := range number.FindAllString(line, -1) {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
			p = append(p, v)
		}
		points = append(points, p)
	}
	return points
}
