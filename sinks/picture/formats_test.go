package picture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type geoJSON struct {
	Type   string
	System string `json:"coordinate_system"`
	CRS    any    `json:"crs"`
	Frame  map[string]any
	Feats  []struct {
		Type     string
		Geometry struct {
			Type        string
			Coordinates json.RawMessage
		}
		Properties map[string]any
	} `json:"features"`
}

// The coordinates are the tables' own, to the last digit, and the polygon is
// closed and counter-clockwise.
func TestExportGeoJSON(t *testing.T) {
	e := hostile(t)
	for i := range e.results {
		s := e.shown(i)
		var got geoJSON
		if err := json.Unmarshal(e.export(t, i, "geojson", LayerPoints, LayerHull, LayerMaxima, LayerTriangles),
			&got); err != nil {
			t.Fatalf("%s: %v", e.names[i], err)
		}
		if got.Type != "FeatureCollection" || !strings.Contains(got.System, "not longitude and latitude") ||
			got.CRS != nil || got.Frame["offset"] != float64(i) {
			t.Errorf("%s: %+v", e.names[i], got)
		}
		for _, f := range got.Feats {
			var err error
			switch layer := f.Properties["layer"]; layer {
			case LayerPoints:
				err = compareJSON(f.Geometry.Coordinates, positions(s, s.Points.Idx))
			case LayerMaxima:
				err = compareJSON(f.Geometry.Coordinates, positions(s, s.Maxima[0].Idx))
			case LayerTriangles:
				var want [][][][]float64
				for k := 0; k < len(s.Triangles); k += 3 {
					v := s.Triangles[k : k+3]
					want = append(want, [][][]float64{positions(s, []int32{v[0], v[1], v[2], v[0]})})
				}
				err = compareJSON(f.Geometry.Coordinates, want)
			case LayerHull:
				want := make([][]float64, 0)
				for k := range s.Hull.X {
					want = append(want, []float64{s.Hull.X[k], s.Hull.Y[k]})
				}
				types := map[int]string{0: "MultiPoint", 1: "Point", 2: "LineString"}
				switch len(want) {
				case 0, 2:
					err = compareJSON(f.Geometry.Coordinates, want)
				case 1:
					err = compareJSON(f.Geometry.Coordinates, want[0])
				default:
					types[len(want)] = "Polygon"
					err = compareJSON(f.Geometry.Coordinates, [][][]float64{append(want, want[0])})
				}
				if n := len(s.Hull.X); f.Geometry.Type != types[n] {
					t.Errorf("%s: a %s of %d vertices", e.names[i], f.Geometry.Type, n)
				}
			default:
				err = fmt.Errorf("layer %v", layer)
			}
			if err != nil {
				t.Errorf("%s: %v: %v", e.names[i], f.Properties["layer"], err)
			}
		}
	}
}

func positions(s *Frame, idx []int32) [][]float64 {
	out := make([][]float64, 0)
	for _, i := range idx {
		x, y, z := s.at(s.place(i))
		if p := []float64{x, y, z}; s.hasZ() {
			out = append(out, p)
		} else {
			out = append(out, p[:2])
		}
	}
	return out
}

func compareJSON[T any](got json.RawMessage, want T) error {
	var v T
	if err := json.Unmarshal(got, &v); err != nil {
		return err
	}
	if diff := cmp.Diff(want, v); diff != "" {
		return fmt.Errorf("(-want +got): %.1000s", diff)
	}
	return nil
}

// plyFile is what a reader of PLY finds: numbers by element and property.
type plyFile struct {
	vertices []map[string]float64
	faces    [][]int
}

// plyElement is what the header says of one kind of thing.
type plyElement struct {
	name       string
	n          int
	properties []plyProperty
}

type plyProperty struct{ name, kind, count string } // count: the type of a list's length

// plyHeader reads the lines before end_header.
func plyHeader(head string) (elements []plyElement, ascii bool, err error) {
	for line := range strings.Lines(head) {
		w := strings.Fields(line)
		switch w[0] {
		case "format":
			ascii = w[1] == "ascii"
		case "element":
			n, err := strconv.Atoi(w[2])
			if err != nil {
				return nil, false, err
			}
			elements = append(elements, plyElement{name: w[1], n: n})
		case "property":
			p := plyProperty{name: w[len(w)-1], kind: w[len(w)-2]}
			if w[1] == "list" {
				p.count = w[2]
			}
			last := &elements[len(elements)-1]
			last.properties = append(last.properties, p)
		}
	}
	return elements, ascii, nil
}

// plyBody reads one number after the other, as text or little-endian.
type plyBody struct {
	binary *bytes.Reader
	words  *bufio.Scanner
	ascii  bool
	err    error // the first one
}

func (b *plyBody) number(kind string) float64 {
	switch {
	case b.err != nil:
		return 0
	case b.ascii && !b.words.Scan():
		b.err = io.ErrUnexpectedEOF
		return 0
	case b.ascii:
		v, err := strconv.ParseFloat(b.words.Text(), 64)
		b.err = err
		return v
	}
	var f32 float32
	var f64 float64
	var i32 int32
	var u8 uint8
	b.err = binary.Read(b.binary, binary.LittleEndian,
		map[string]any{"float": &f32, "double": &f64, "int": &i32, "uchar": &u8}[kind])
	return float64(f32) + f64 + float64(i32) + float64(u8)
}

// readPLY follows the header alone.
func readPLY(data []byte) (*plyFile, error) {
	head, rest, ok := bytes.Cut(data, []byte("end_header\n"))
	if !ok || !bytes.HasPrefix(head, []byte("ply\n")) {
		return nil, fmt.Errorf("no header: %.40q", data)
	}
	elements, ascii, err := plyHeader(string(head))
	if err != nil {
		return nil, err
	}
	body := plyBody{binary: bytes.NewReader(rest), words: bufio.NewScanner(bytes.NewReader(rest)), ascii: ascii}
	body.words.Split(bufio.ScanWords)
	f := &plyFile{}
	for _, e := range elements {
		for range e.n {
			row := map[string]float64{}
			for _, p := range e.properties {
				if p.count == "" {
					row[p.name] = body.number(p.kind)
					continue
				}
				face := make([]int, int(body.number(p.count)))
				for i := range face {
					face[i] = int(body.number(p.kind))
				}
				f.faces = append(f.faces, face)
			}
			if e.name == "vertex" {
				f.vertices = append(f.vertices, row)
			}
		}
	}
	if body.err == nil && (ascii && body.words.Scan() || !ascii && body.binary.Len() > 0) {
		body.err = errors.New("bytes after the last element")
	}
	return f, body.err
}

// Points, flags and faces are those of the tables, as text and binary alike.
func TestExportPLY(t *testing.T) {
	e := hostile(t)
	for i := range e.results {
		s := e.shown(i)
		binary, err := readPLY(e.export(t, i, "ply"))
		if err != nil {
			t.Fatalf("%s: %v", e.names[i], err)
		}
		text, err := readPLY(e.export(t, i, "text"))
		if err != nil {
			t.Fatalf("%s: %v", e.names[i], err)
		}
		if s.Points.X32 != nil { // the shortest text of a float32
			for k, v := range text.vertices {
				for _, axis := range []string{"x", "y", "z", "intensity"} {
					if value, ok := v[axis]; ok {
						text.vertices[k][axis] = float64(float32(value))
					}
				}
			}
		}
		if diff := cmp.Diff(binary, text, cmp.AllowUnexported(plyFile{})); diff != "" {
			t.Errorf("%s: text differs (-binary +text): %.1000s", e.names[i], diff)
		}
		checkPLY(t, e.names[i], s, binary)
		both, err := readPLY(e.export(t, i, "ply", LayerPoints, LayerHull3D, LayerTriangles))
		faces := len(s.Triangles) / 3
		if s.Hull3 != nil {
			faces += len(s.Hull3.Faces) / 3
		}
		if err != nil || len(both.faces) != faces {
			t.Errorf("%s: %v; both meshes have not %d faces", e.names[i], err, faces)
		}
	}
}

func checkPLY(t *testing.T, name string, s *Frame, f *plyFile) {
	t.Helper()
	if len(f.vertices) != len(s.Points.Idx) {
		t.Fatalf("%s: %d vertices of %d points", name, len(f.vertices), len(s.Points.Idx))
	}
	flags := map[string][]int32{}
	for k, v := range f.vertices {
		x, y, z := s.at(k)
		if v["x"] != x || v["y"] != y || v["z"] != z || int32(v["index"]) != s.Points.Idx[k] {
			t.Fatalf("%s: vertex %d is %v, want %v %v %v, point %d", name, k, v, x, y, z, s.Points.Idx[k])
		}
		for _, flag := range []string{"hull", "hull3d", "maxima"} {
			if v[flag] == 1 {
				flags[flag] = append(flags[flag], s.Points.Idx[k])
			}
		}
	}
	sorted := func(idx []int32) []int32 { return slices.Sorted(slices.Values(idx)) }
	wantFaces := s.Triangles
	if s.Hull3 != nil {
		if len(s.Hull3.Faces) > 0 {
			wantFaces = s.Hull3.Faces
		}
		if !slices.Equal(flags["hull3d"], s.Hull3.Idx) {
			t.Errorf("%s: corners in space %v, want %v", name, flags["hull3d"], s.Hull3.Idx)
		}
	}
	if !slices.Equal(flags["hull"], sorted(s.Hull.Idx)) || !slices.Equal(flags["maxima"], s.Maxima[0].Idx) {
		t.Errorf("%s: flags %v, hull %v, maxima %v", name, flags, s.Hull.Idx, s.Maxima[0].Idx)
	}
	var faces []int32
	for _, face := range f.faces {
		for _, v := range face {
			faces = append(faces, s.Points.Idx[v])
		}
	}
	if !slices.Equal(faces, wantFaces) {
		t.Errorf("%s: faces %v, want %v", name, faces, wantFaces)
	}
}
