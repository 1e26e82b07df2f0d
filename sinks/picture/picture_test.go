package picture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/sinks"
	"entropipe/sinks/read"
	"entropipe/sinks/tables"
)

// exported is an output with a frame a cloud: what the pipeline writes of them.
type exported struct {
	dir     string
	results []schemas.Result
	names   []string
}

func exportOf(t *testing.T, names []string, clouds []geomtest.Named[float64], narrow []geomtest.Named[float32],
	sketches ...schemas.Sketch) *exported {
	t.Helper()
	ctx, e := context.Background(), &exported{dir: filepath.Join(t.TempDir(), "out")}
	frames := pipeline.NewFrames(pipeline.FrameConfig{Hull3D: true, Points: slices.Contains(names, "points")})
	var enc schemas.Encoder
	process := func(name string, value []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		at := int64(len(e.results))
		results, rejects := frames.Process(schemas.Message{Topic: "points", Offset: at, Time: time.Unix(1, 0),
			Key: []byte("seq " + name), Value: value})
		if len(results) != 1 || len(rejects) > 0 {
			t.Fatalf("%s: %d results, rejects %+v", name, len(results), rejects)
		}
		e.results, e.names = append(e.results, results[0]), append(e.names, name)
	}
	for _, c := range clouds {
		value, err := enc.AppendPoints(nil, schemas.PointCloud{Points: codec.Points{Cloud64: c.Cloud, Double: true}})
		process(c.Name, value, err)
	}
	for _, c := range narrow {
		value, err := enc.AppendPoints(
			nil,
			schemas.PointCloud{Points: codec.Points{Cloud32: c.Cloud, Intensity: c.Cloud.X}},
		)
		process(c.Name, value, err)
	}
	for _, s := range sketches {
		value, err := enc.AppendSketches(nil, []schemas.Sketch{s})
		process("sketch", value, err)
	}
	store, err := sinks.OpenLocal(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	encoder, err := tables.New(tables.Config{Tables: names})
	if err != nil {
		t.Fatal(err)
	}
	out, err := sinks.Open(ctx, store, encoder, sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(e.results))
	if err := out.Base(ctx, "points", schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Resume(ctx, "points", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Commit(ctx, &schemas.Batch{Topic: "points", End: n, Results: e.results, Messages: n,
		Last: &schemas.RecordID{Offset: n - 1}}); err != nil {
		t.Fatal(err)
	}
	return e
}

var allTables = []string{"hulls", "hulls3d", "maxima", "triangles", "points"}

// export reads a frame back from the tables and writes it in a format.
func (e *exported) export(t *testing.T, frame int, as string, layers ...string) []byte {
	t.Helper()
	store, err := sinks.OpenExisting(e.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	offset := int64(frame)
	r, _, err := read.ReadFrame(t.Context(), store, read.FrameQuery{Offset: &offset}, allTables...)
	if err != nil {
		t.Fatalf("frame %d (%s): %v", frame, e.names[frame], err)
	}
	asked := layers
	if len(layers) == 0 {
		asked = allLayers
	}
	shown := NewFrame(r, asked)
	if err := shown.Check(); err != nil {
		t.Fatalf("frame %d (%s): %v", frame, e.names[frame], err)
	}
	var buffer bytes.Buffer
	w := bufio.NewWriter(&buffer)
	switch as {
	case "svg":
		err = WriteSVG(w, New(shown, 1200))
	case "png":
		err = WritePNG(w, New(shown, 600))
	case "geojson":
		err = WriteGeoJSON(w, shown)
	case "ply", "text":
		err = WritePLY(w, shown, len(layers) == 0, as == "text")
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		t.Fatalf("frame %d (%s) as %s: %v", frame, e.names[frame], as, err)
	}
	return buffer.Bytes()
}

var allLayers = []string{LayerTriangles, LayerPoints, LayerHull3D, LayerHull, LayerMaxima}

// shown is the frame as export draws it by default.
func (e *exported) shown(frame int) *Frame {
	r := e.results[frame]
	return NewFrame(&r, allLayers)
}

// hostile are clouds of every kind that a frame can be: friendly, degenerate,
// with points that are dropped, and at the ends of the numbers.
func hostile(t *testing.T) *exported {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	t.Parallel()
	nan := math.NaN()
	holes := geomtest.Lidar[float32](300, 5)
	holes.X[0], holes.Y[7], holes.Z[20] = float32(nan), float32(math.Inf(1)), float32(nan)
	sketch := schemas.Sketch{Drawing: schemas.Drawing{ID: 7, Label: `a <cow> & "co" ` + "\x01"},
		Strokes: []schemas.Stroke{{X: []float64{0, 255, 255, 10}, Y: []float64{0, 10, 255, 200}}}}
	clouds := append(
		geomtest.Clouds2D[float64](60, 1),
		geomtest.Named[float64]{Name: "empty"},
		geomtest.Named[float64]{Name: "empty3", Cloud: geom.Cloud[float64]{Z: []float64{}}},
		geomtest.Named[float64]{Name: "one", Cloud: geom.Cloud[float64]{X: []float64{3}, Y: []float64{-4}}},
		geomtest.Named[float64]{
			Name: "ends",
			Cloud: geom.Cloud[float64]{X: []float64{-math.MaxFloat64, math.MaxFloat64,
				0}, Y: []float64{-math.MaxFloat64, math.MaxFloat64, 1}},
		},
		geomtest.Named[float64]{
			Name:  "nothing finite",
			Cloud: geom.Cloud[float64]{X: []float64{nan}, Y: []float64{1}},
		},
	)
	narrow := append(geomtest.Clouds3D[float32](60, 2), geomtest.Named[float32]{Name: "holes", Cloud: holes})
	return exportOf(t, allTables, clouds, narrow, sketch)
}

// The picture is well-formed, says which frame it is, has every layer with
// every mark, within its bounds, and north is up.
func TestExportSVG(t *testing.T) {
	e := hostile(t)
	for i := range e.results {
		s := e.shown(i)
		svg := readSVG(t, e.names[i], e.export(t, i, "svg"))
		if !strings.Contains(svg.title, fmt.Sprintf("frame %d", i)) {
			t.Errorf("%s: title %q", e.names[i], svg.title)
		}
		want := map[string]int{}
		if n := len(s.Points.Idx); n > 0 {
			want[LayerPoints] = n
		}
		if n := len(s.Hull.Idx); n > 0 {
			want[LayerHull] = n // marks; the ring is another path
		}
		for layer, n := range want {
			if got := svg.marks[layer]; got != n {
				t.Errorf("%s: %d marks of %s, want %d", e.names[i], got, layer, n)
			}
		}
		maxima := 0
		for _, m := range s.Maxima {
			maxima += len(m.Idx)
		}
		if svg.marks[LayerMaxima] != maxima {
			t.Errorf("%s: %d marks of maxima, want %d", e.names[i], svg.marks[LayerMaxima], maxima)
		}
		if s.Hull3 != nil && len(s.Hull3.Idx) != svg.marks[LayerHull3D] {
			t.Errorf("%s: %d corners in space, want %d", e.names[i], svg.marks[LayerHull3D], len(s.Hull3.Idx))
		}
		for _, p := range svg.spots {
			if !(p.x >= 0 && p.x <= svg.width && p.y >= 0 && p.y <= svg.height) {
				t.Fatalf("%s: a spot at %v of a picture of %g x %g", e.names[i], p, svg.width, svg.height)
			}
		}
		checkOrientation(t, e.names[i], s)
	}
}

// checkOrientation compares the hull's picture with its coordinates: the same
// scale on both axes, x to the right, and y up, or down for drawings.
func checkOrientation(t *testing.T, name string, s *Frame) {
	t.Helper()
	p := New(s, 1200)
	for _, l := range p.layers {
		if l.name != LayerHull || len(l.marks) < 3 {
			continue
		}
		sum := func(x, y func(i int) float64) float64 { // twice the area, counter-clockwise positive
			area := 0.0
			for i := range l.marks {
				j := (i + 1) % len(l.marks)
				area += x(i)*y(j) - x(j)*y(i)
			}
			return area / 2
		}
		x0, y0 := s.Hull.X[0], s.Hull.Y[0]
		scale := math.Inf(1) // pixels a half unit, by the largest of the differences
		for i, m := range l.marks {
			dx, dy := s.Hull.X[i]/2-x0/2, s.Hull.Y[i]/2-y0/2
			if s.Drawing == nil {
				dy = -dy
			}
			if math.Abs(dx) > 1e-300 && math.Abs(m.x-l.marks[0].x) > 50 {
				scale = (m.x - l.marks[0].x) / dx
			}
			if !math.IsInf(scale, 1) && math.Abs((m.y-l.marks[0].y)-scale*dy) > 1e-6*p.width {
				t.Errorf("%s: corner %d is at %v, the first at %v, which is not %g pixels a half unit up", name, i,
					m, l.marks[0], scale)
				return
			}
		}
		area := sum(func(i int) float64 { return l.marks[i].x }, func(i int) float64 { return l.marks[i].y })
		if up := area <= 0; up != (s.Drawing == nil) && math.Abs(area) > 1e-3 {
			t.Errorf("%s: the picture's hull has area %g", name, area)
		}
	}
}

// readSVG is a picture as an XML reader has it.
type svgPicture struct {
	title         string
	width, height float64
	marks         map[string]int // by the class of their group: moves of its last path
	spots         []spot
}

func readSVG(t *testing.T, name string, data []byte) *svgPicture {
	t.Helper()
	svg := &svgPicture{marks: map[string]int{}}
	d, class := xml.NewDecoder(bytes.NewReader(data)), ""
	for {
		token, err := d.Token()
		if err == io.EOF {
			return svg
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attr := map[string]string{}
		for _, a := range start.Attr {
			attr[a.Name.Local] = a.Value
		}
		switch start.Name.Local {
		case "svg":
			svg.width, _ = strconv.ParseFloat(attr["width"], 64)
			svg.height, _ = strconv.ParseFloat(attr["height"], 64)
		case "title":
			if err := d.DecodeElement(&svg.title, &start); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		case "g":
			class = attr["class"]
		case "path":
			svg.marks[class] = strings.Count(attr["d"], "M")
			for _, part := range strings.FieldsFunc(attr["d"],
				func(r rune) bool { return r == 'M' || r == 'L' || r == 'Z' }) {
				part, _, _ = strings.Cut(part, "h")
				if x, y, relative := strings.Cut(part, " "); !strings.Contains(part, "l") && relative {
					var s spot
					if _, err := fmt.Sscan(x+" "+y, &s.x, &s.y); err != nil {
						t.Fatalf("%s: path part %q: %v", name, part, err)
					}
					svg.spots = append(svg.spots, s)
				}
			}
		}
	}
}

// png has the same picture: its size, and the colours at the marks.
func TestExportPNG(t *testing.T) {
	e := hostile(t)
	for i := range e.results {
		if i%4 != 0 && e.names[i] != "sketch" && e.names[i] != "empty" {
			continue // as well drawn as their neighbours, and slow
		}
		img, err := png.Decode(bytes.NewReader(e.export(t, i, "png")))
		if err != nil {
			t.Fatalf("%s: %v", e.names[i], err)
		}
		p := New(e.shown(i), 600)
		if b := img.Bounds(); b.Dx() != 600 || b.Dy() != int(math.Ceil(p.height)) {
			t.Errorf("%s: %v, want 600 x %g", e.names[i], b, p.height)
		}
		for k, l := range p.layers {
			if l.name != LayerHull && l.name != LayerMaxima {
				continue
			}
			for _, m := range l.marks {
				if slices.ContainsFunc(p.layers[k+1:], func(o pictureLayer) bool { return paintsOver(o, m) }) {
					continue
				}
				if got := img.At(int(m.x), int(m.y)); !near(got, l.stroke) {
					t.Errorf("%s: at %v of %s is %v, want about %v", e.names[i], m, l.name, got, l.stroke)
					break
				}
			}
		}
	}
}

// paintsOver says whether a layer may have painted over a spot.
func paintsOver(l pictureLayer, s spot) bool {
	return slices.ContainsFunc(l.marks, func(m spot) bool { return math.Hypot(m.x-s.x, m.y-s.y) < l.size+2 })
}

func near(a, b color.Color) bool {
	r, g, bl, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	off := func(x, y uint32) bool { return max(x, y)-min(x, y) > 0x3000 }
	return !off(r, r2) && !off(g, g2) && !off(bl, b2)
}

// Without table points every format has the hull in the plane, whose corners table hulls
// holds.
func TestExportWithoutPoints(t *testing.T) {
	square := []geomtest.Named[float64]{{Name: "square", Cloud: geomtest.Square[float64](400, 1)}}
	e := exportOf(t, []string{"hulls", "maxima", "triangles"}, square, nil)
	h := e.results[0].Hull
	svg := readSVG(t, "svg", e.export(t, 0, "svg"))
	if svg.marks[LayerHull] != len(h.Idx) ||
		svg.marks[LayerMaxima]+svg.marks[LayerPoints]+svg.marks[LayerTriangles] > 0 {
		t.Errorf("marks %v, a hull of %d", svg.marks, len(h.Idx))
	}
	f, err := readPLY(e.export(t, 0, "ply"))
	if err != nil || len(f.vertices) != len(h.Idx) || len(f.faces) != len(h.Idx)-2 || f.vertices[1]["x"] != h.X[1] {
		t.Errorf("%v: %+v, want a fan of %d corners", err, f, len(h.Idx))
	}
	var g geoJSON
	if err := json.Unmarshal(e.export(t, 0, "geojson", LayerPoints, LayerHull, LayerMaxima), &g); err != nil ||
		len(g.Feats) != 1 {
		t.Errorf("%v: %d features, want the hull", err, len(g.Feats))
	}
}

// A picture of many points stays small, and says that it leaves some out.
func TestExportThinsManyPoints(t *testing.T) {
	c := geomtest.Square[float32](60_000, 1)
	e := exportOf(t, allTables, nil, []geomtest.Named[float32]{{Name: "many", Cloud: c}})
	data := e.export(t, 0, "svg")
	svg := readSVG(t, "many", data)
	if n := svg.marks[LayerPoints]; n > mostDots || n < mostDots/3 {
		t.Errorf("%d dots, want at most %d and not many less", n, mostDots)
	}
	if !bytes.Contains(data, []byte("60 000 points, ")) || len(data) > 4<<20 {
		t.Errorf("%d bytes; the legend does not say how many points are drawn", len(data))
	}
	for _, l := range New(e.shown(0), 1200).layers {
		if l.name == LayerTriangles && len(l.paths) > mostEdges {
			t.Errorf("%d edges", len(l.paths))
		}
	}
}

// The bar has a round length of at most so many pixels, at any scale.
func TestRoundBelow(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{{1, 1}, {9.99, 5}, {10, 10}, {0.034, 0.02}, {4.9e21, 2e21},
		{1.9e-300, 1e-300}} {
		if got := roundBelow(c.x); math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("below %g: %g, want %g", c.x, got, c.want)
		}
	}
	if got := roundBelow(5e-324); got != 5e-324 {
		t.Errorf("below the least number: %g", got)
	}
}

// An output that contradicts itself is named, not drawn.
func TestExportOfADamagedOutput(t *testing.T) {
	r := exportOf(t, allTables, []geomtest.Named[float64]{{Name: "square", Cloud: geomtest.Square[float64](40, 1)}},
		nil).results[0]
	r.Triangles[5] = 40
	if err := NewFrame(&r, []string{LayerTriangles}).Check(); err == nil ||
		!strings.Contains(err.Error(), "triangles names point 40") {
		t.Errorf("%v", err)
	}
	if err := NewFrame(&r, []string{LayerHull}).Check(); err != nil {
		t.Errorf("a layer that is not drawn: %v", err)
	}
}
