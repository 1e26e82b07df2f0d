package entropy

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// vectors are numbers of an independent implementation.
type vectors struct {
	Maxima2D []struct {
		Points      [][]float64
		MaximaByX   []int32 `json:"maxima_by_x"`
		H           int
		HExact      float64 `json:"H_exact"`
		Greedy      float64
		GreedySizes []float64 `json:"greedy_sizes_desc"`
		HLower      float64   `json:"H_lower_h"`
		HUpper      float64   `json:"H_upper_logh"`
		HKd         float64   `json:"H_kd"`
	}
	UpperHull2D []struct {
		Points         [][]float64
		HullByX        []int32 `json:"hull_by_x"`
		Greedy         float64 `json:"greedy_all_chords"`
		HVert          float64 `json:"H_vert"`
		HTriangulation float64 `json:"H_triangulation_full"`
	}
	Maxima3D []struct {
		Points [][]float64
		Maxima []int32
		Greedy float64
		HKd    float64 `json:"H_kd"`
	}
	HDiff []struct {
		Points, Anchors [][]float64
		Alpha, H        float64
		GradAnchors     [][]float64 `json:"grad_anchors"`
		GradPoints      [][]float64 `json:"grad_points"`
	}
	HSoft []struct {
		Points, W [][]float64
		B         []float64
		Tau, H    float64
		K         int
	}
	F []struct {
		Points     [][]float64
		Witness    []int32
		Tau        float64
		EMSteps    int `json:"em_steps"`
		F          float64
		Q          []float64
		GreedyHard float64 `json:"greedy_hard"`
	}
}

func readVectors(t *testing.T) (v vectors) {
	b, err := os.ReadFile(geomtest.TestData(t, "..", "specs", "theory-vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// cloudOf turns rows of coordinates into a cloud.
func cloudOf(rows [][]float64) (c geom.Cloud[float64]) {
	for _, r := range rows {
		c.X, c.Y = append(c.X, r[0]), append(c.Y, r[1])
		if len(r) > 2 {
			c.Z = append(c.Z, r[2])
		}
	}
	return c
}

func near(t *testing.T, name string, row int, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9) {
		t.Errorf("%s, row %d: got %.12g, want %.12g", name, row, got, want)
	}
}

func TestSurrogateVectors(t *testing.T) {
	v := readVectors(t)
	for i, row := range v.F {
		s := Surrogate[float64]{Problem: Maxima2D, Tau: row.Tau, Steps: row.EMSteps}
		c := cloudOf(row.Points)
		near(t, "F", i, s.Value(c, row.Witness), row.F)
		for k, w := range row.Witness { // F's ranges are those of the witnesses in order of x
			near(t, "q", i, s.q[slices.Index(s.list, w)], row.Q[k])
		}
		near(t, "G", i, s.Hard(c, row.Witness).Upper, row.GreedyHard)
	}
}

func TestPaperVectors(t *testing.T) {
	v := readVectors(t)
	for i, row := range v.HDiff {
		b := BallEntropy[float64]{Alpha: row.Alpha}
		c, k := cloudOf(row.Points), len(row.Anchors)
		anchors, gradAnchors := make([][3]float64, k), make([][3]float64, k)
		for j, a := range row.Anchors {
			copy(anchors[j][:], a)
		}
		grad := cloudOf(row.Points)
		h, _ := b.Gradient(grad, gradAnchors, c, anchors)
		near(t, "H_diff", i, h, row.H)
		near(t, "H_diff", i, b.Value(c, anchors), row.H)
		for j := range anchors {
			near(t, "anchor x", i, gradAnchors[j][0], row.GradAnchors[j][0])
			near(t, "anchor y", i, gradAnchors[j][1], row.GradAnchors[j][1])
		}
		for j := range c.X {
			near(t, "point x", i, grad.X[j], row.GradPoints[j][0])
			near(t, "point y", i, grad.Y[j], row.GradPoints[j][1])
		}
	}
	for i, row := range v.HSoft {
		s := CellEntropy[float64]{Tau: row.Tau}
		c := cloudOf(row.Points)
		var halves []HalfSpace
		for t, w := range row.W {
			halves = append(halves, HalfSpace{[3]float64{w[0], w[1]}, row.B[t]})
		}
		cells := s.Cells(nil, c, halves)
		if len(cells) != row.K {
			t.Errorf("row %d: %d cells, want %d", i, len(cells), row.K)
		}
		near(t, "H_soft", i, s.Value(c, halves, cells), row.H)
	}
}

// F of hulls, and its slopes, as plain Python has them: testdata/surrogate.py.
func TestSurrogateAgreesWithPython(t *testing.T) {
	b, err := os.ReadFile("testdata/surrogate.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Problem   string
		Tau, F    float64
		Points    [][]float64
		Witnesses []int32
		Slopes    []struct {
			Point, Axis int
			Slope       float64
		}
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		c, grad := cloudOf(row.Points), cloudOf(row.Points)
		for _, p := range problems {
			if p.String() != row.Problem {
				continue
			}
			s := Surrogate[float64]{Problem: p, Tau: row.Tau, Box: UnitBox}
			near(t, "F", i, s.Value(c, row.Witnesses), row.F)
			s.Steps = 5000
			s.Gradient(grad, c, row.Witnesses)
			for _, slope := range row.Slopes {
				if got := *axes(grad, slope.Point)[slope.Axis]; math.Abs(got-slope.Slope) > 1e-6 {
					t.Errorf("row %d, point %d axis %d: gradient %.9f, slope %.9f", i, slope.Point,
						slope.Axis, got, slope.Slope)
				}
			}
		}
	}
}
