package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

var square = geomtest.Points([2]float64{0, 0}, [2]float64{1, 0}, [2]float64{1, 1}, [2]float64{0, 1},
	[2]float64{math.Copysign(0, -1), 0})

func mustResult(t *testing.T, f found, c geom.Cloud[float64], dims int) result {
	t.Helper()
	r, err := resultOf(f, c, dims)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Indices, coordinates, equal points, signed zeros, order and rotation: what
// libraries are free to choose is no difference.
func TestTheSameResultInEveryForm(t *testing.T) {
	we := mustResult(t, found{form: "vertices", indices: []int32{0, 1, 2, 3}}, square, 2)
	for name, f := range map[string]found{
		"other order":    {form: "vertices", indices: []int32{3, 2, 1, 0}},
		"the other zero": {form: "vertices", indices: []int32{4, 1, 2, 3}},
		"closed":         {form: "vertices", indices: []int32{0, 1, 2, 3, 0}},
		"coordinates":    {form: "points", points: []float64{1, 1, 0, 1, 0, 0, 1, 0}},
	} {
		if got := agreement(we, mustResult(t, f, square, 2), 4, 4, square); got != same {
			t.Errorf("%s: %q", name, got)
		}
	}
	mesh := mustResult(t, found{form: "triangles", indices: []int32{0, 1, 2, 0, 2, 3}}, square, 2)
	turned := mustResult(t, found{form: "triangles", indices: []int32{3, 2, 4, 2, 1, 0}}, square, 2) // clockwise too
	if got := agreement(mesh, turned, 2, 2, square); got != same {
		t.Errorf("triangles turned: %q", got)
	}
	bare := mustResult(t, found{form: "count"}, square, 2)
	if got := agreement(mesh, bare, 2, 2, square); got != same {
		t.Errorf("count: %q", got)
	}
}

func TestEveryKindOfDifferenceIsNamed(t *testing.T) {
	five := geomtest.Points([2]float64{0, 0}, [2]float64{4, 0}, [2]float64{4, 4}, [2]float64{0, 4}, [2]float64{1, 2})
	hull := mustResult(t, found{form: "vertices", indices: []int32{0, 1, 2, 3}}, five, 2)
	var tri delaunay.Triangulator[float64]
	triangles := tri.Triangulate(five).Triangles
	mesh := mustResult(t, found{form: "triangles", indices: triangles}, five, 2)
	tie := mustResult(t, found{form: "triangles", indices: []int32{0, 1, 2, 0, 2, 3}}, square, 2)
	for name, c := range map[string]struct{ got, want string }{
		"a vertex lost": {agreement(hull, mustResult(t, found{form: "vertices", indices: []int32{0, 1, 2}}, five, 2),
			4, 3, five), "1 missing, 0 too many"},
		"an inner point": {agreement(hull, mustResult(t,
			found{form: "points", points: []float64{0, 0, 4, 0, 4, 4, 0, 4, 1, 2}}, five, 2), 4, 5, five),
			"0 missing, 1 too many"},
		"another count": {agreement(hull, mustResult(t, found{form: "count"}, five, 2), 4, 5, five),
			"5 instead of 4"},
		"a triangle lost": {agreement(mesh, mustResult(t, found{form: "triangles", indices: triangles[3:]}, five, 2),
			4, 3, five), "1 missing, 0 too many"},
		"another diagonal": {agreement(tie, mustResult(t, found{form: "triangles", indices: []int32{0, 1, 3, 1, 2, 3}},
			square, 2), 2, 2, square), otherTies},
		"not Delaunay": {agreement(mustResult(t, found{form: "triangles", indices: []int32{0, 1, 2, 0, 2, 3}}, kite, 2),
			mustResult(t, found{form: "triangles", indices: []int32{0, 1, 3, 1, 2, 3}}, kite, 2), 2, 2, kite),
			"1 edges not Delaunay"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}

// kite is flat: the short diagonal, 0 to 2, is the Delaunay one.
var kite = geomtest.Points([2]float64{5, -1}, [2]float64{10, 0}, [2]float64{5, 1}, [2]float64{0, 0})

func TestIndicesBeyondTheCloudAreAnError(t *testing.T) {
	for _, i := range []int32{-1, 5} {
		if _, err := resultOf(found{form: "vertices", indices: []int32{0, i}}, square, 2); err == nil ||
			!strings.Contains(err.Error(), "of 5 points") {
			t.Errorf("index %d: %v", i, err)
		}
	}
}

func TestFoundIsReadInEveryForm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "found")
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	if f, err := readFound("triangles", path); err != nil || !cmp.Equal(f.indices, []int32{1, -1}) {
		t.Errorf("triangles: %v, %v", f, err)
	}
	write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2.5)))
	if f, err := readFound("points", path); err != nil || !cmp.Equal(f.points, []float64{-2.5}) {
		t.Errorf("points: %v, %v", f, err)
	}
	if _, err := readFound("polygons", path); err == nil {
		t.Error("an unknown form is read")
	}
	if _, err := readFound("vertices", path+"-"); err == nil {
		t.Error("a file that is not there is read")
	}
	if f, err := readFound("count", path+"-"); err != nil || f.form != "count" {
		t.Errorf("count: %v, %v", f, err)
	}
}

func TestCloudsAreWrittenPointByPoint(t *testing.T) {
	c := geomtest.Points3([3]float64{1, 2, 3}, [3]float64{4, 5, 6})
	for dims, want := range map[int][]float64{2: {1, 2, 4, 5}, 3: {1, 2, 3, 4, 5, 6}} {
		var b, w bytes.Buffer
		if err := writePoints(&b, c, dims); err != nil {
			t.Fatal(err)
		}
		if err := binary.Write(&w, binary.LittleEndian, want); err != nil || !bytes.Equal(b.Bytes(), w.Bytes()) {
			t.Errorf("%d dimensions: %x, want %x (%v)", dims, b.Bytes(), w.Bytes(), err)
		}
	}
}
