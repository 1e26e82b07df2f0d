// Package picture draws one frame of an output: as svg or png from above, as geojson in
// the plane, as ply in space. It reads no tables: package sinks/read does, and hands over
// the rows of the frame.
//
// A Frame is what is asked for of those rows, in the frame's own coordinates. A Picture is
// a list of paths and marks on a canvas, in pixels, y downward; both svg and png write it.
// A layer is one kind of thing that is drawn: points, hull, maxima, triangles, hull3d.
package picture

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"entropipe/schemas"
)

// picture is what is seen, before it has a format: layers of lines and marks,
// and texts, in pixels from the upper left corner. svg and png show the same.
type picture struct {
	width, height float64
	title         string
	layers        []pictureLayer
	texts         []pictureText
}

// spot is a place in the picture.
type spot struct{ x, y float64 }

// mark is the form of a point in the picture: distinct without colours too.
type mark uint8

const (
	markDot mark = iota
	markCircle
	markDiamond
)

// pictureLayer is what has one look. A path of one spot is nothing.
type pictureLayer struct {
	name   string
	stroke color.NRGBA
	fill   color.NRGBA // colour of closed paths; zero: none
	width  float64     // width of strokes
	paths  [][]spot
	closed bool
	marks  []spot // in the stroke's colour, filled
	form   mark
	size   float64 // diameter of a mark
}

type pictureText struct {
	at    spot // start of the base line, or its end
	size  float64
	atEnd bool
	text  string
	color color.NRGBA
}

// Colours that stay apart for colour-blind eyes, after Okabe and Ito.
var (
	inkText      = color.NRGBA{0x22, 0x22, 0x22, 0xff}
	inkPoints    = color.NRGBA{0x66, 0x66, 0x66, 0xff}
	inkTriangles = color.NRGBA{0xc4, 0xc4, 0xc4, 0xff}
	inkHull      = color.NRGBA{0x00, 0x72, 0xb2, 0xff}
	inkHullFill  = color.NRGBA{0x00, 0x72, 0xb2, 0x14}
	inkMaxima    = color.NRGBA{0xd5, 0x5e, 0x00, 0xff}
	inkHull3D    = color.NRGBA{0x00, 0x9e, 0x73, 0xff}
)

// Bounds of what a picture holds, beyond which eyes see nothing more and
// programs grow slow.
const (
	mostDots  = 50_000
	mostEdges = 100_000
)

const (
	pictureMargin = 24.0
	pictureTop    = 64.0
	pictureLine   = 20.0 // height of a line of the legend
	textSize      = 13.0
	titleSize     = 18.0
)

// view maps coordinates to the picture: both axes alike. It works on halves,
// so that no difference of finite coordinates overflows.
type view struct {
	left, bottom float64 // halves of the coordinates
	unit         float64 // half a coordinate's length of one pixel; 0: everything is at one place
	at           spot    // position of (left, bottom) in the picture
	down         bool    // y runs down, as drawings are drawn
}

func (v *view) spot(x, y float64) spot {
	if v.unit == 0 {
		return v.at
	}
	dx, dy := (x/2-v.left)/v.unit, (y/2-v.bottom)/v.unit
	if v.down {
		return spot{v.at.x + dx, v.at.y + dy}
	}
	return spot{v.at.x + dx, v.at.y - dy}
}

// New draws a frame into a picture so wide.
func New(s *Frame, width float64) *picture {
	b := pictureBuilder{Frame: s, picture: &picture{width: width, title: s.name()}}
	b.fit()
	if s.layers[LayerTriangles] && len(s.Triangles) > 0 {
		b.triangles()
	}
	if s.layers[LayerPoints] && len(s.Points.Idx) > 0 {
		b.points()
	}
	if s.layers[LayerHull3D] && s.Hull3 != nil {
		b.hull3D()
	}
	if s.layers[LayerHull] && s.Hull != nil {
		b.hull()
	}
	if s.layers[LayerMaxima] {
		b.maxima()
	}
	b.frame()
	return b.picture
}

// pictureBuilder makes a picture of a frame.
type pictureBuilder struct {
	*Frame
	*picture
	view   view
	legend []legendLine
	plot   float64 // height of the part with the coordinates
}

type legendLine struct {
	layer *pictureLayer // nil: text alone
	text  string
}

// fit chooses the view so that everything is in it.
func (b *pictureBuilder) fit() {
	inf := math.Inf(1)
	low, high := [2]float64{inf, inf}, [2]float64{-inf, -inf}
	cover := func(x, y float64) {
		low[0], high[0] = min(low[0], x/2), max(high[0], x/2)
		low[1], high[1] = min(low[1], y/2), max(high[1], y/2)
	}
	for k := range b.Points.Idx {
		x, y, _ := b.at(k)
		cover(x, y)
	}
	if b.Hull != nil {
		for i := range b.Hull.X {
			cover(b.Hull.X[i], b.Hull.Y[i])
		}
	}
	if low[0] > high[0] {
		low, high = [2]float64{}, [2]float64{}
	}
	inner := b.picture.width - 2*pictureMargin
	dx, dy := high[0]-low[0], high[1]-low[1]
	ratio := 1.0
	if dx > 0 || dy > 0 {
		ratio = min(max(dy/dx, 0.35), 1)
	}
	b.plot = math.Round(inner * ratio)
	b.view = view{left: low[0], bottom: low[1], down: b.Drawing != nil}
	b.view.unit = max(dx/inner, dy/b.plot)
	wide, high0 := 0.0, 0.0
	if b.view.unit > 0 {
		wide, high0 = dx/b.view.unit, dy/b.view.unit
	}
	b.view.at = spot{pictureMargin + (inner-wide)/2, pictureTop + (b.plot+high0)/2}
	if b.view.down {
		b.view.at.y -= high0
	}
}

func (b *pictureBuilder) spotOf(i int32) spot {
	x, y, _ := b.at(b.place(i))
	return b.view.spot(x, y)
}

func (b *pictureBuilder) add(l pictureLayer, legend string, args ...any) {
	b.picture.layers = append(b.picture.layers, l)
	b.legend = append(b.legend, legendLine{&l, fmt.Sprintf(legend, args...)})
}

// edge is a line between two points of the frame, the smaller first.
type edge [2]int32

// edges returns each edge of triangles once.
func edges(triangles []int32) []edge {
	all := make([]edge, 0, len(triangles))
	for t := 0; t < len(triangles); t += 3 {
		for k := range 3 {
			a, b := triangles[t+k], triangles[t+(k+1)%3]
			all = append(all, edge{min(a, b), max(a, b)})
		}
	}
	slices.SortFunc(all, func(a, b edge) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(all)
}

// lines are edges as seen: without those shorter than a pixel, and at most
// mostEdges, the longest ones. left is how many are not there.
func (b *pictureBuilder) lines(triangles []int32) (paths [][]spot, left int) {
	all := edges(triangles)
	var lengths []float64
	spots := make([]spot, 0, 2*len(all))
	for _, e := range all {
		p, q := b.spotOf(e[0]), b.spotOf(e[1])
		if length := math.Hypot(q.x-p.x, q.y-p.y); length >= 1 {
			spots, lengths = append(spots, p, q), append(lengths, length)
		}
	}
	least := 0.0 // length of the shortest that is drawn
	if n := len(lengths); n > mostEdges {
		least = slices.Sorted(slices.Values(lengths))[n-mostEdges]
	}
	for i, length := range lengths {
		if length >= least && len(paths) < mostEdges {
			paths = append(paths, spots[2*i:2*i+2])
		}
	}
	return paths, len(all) - len(paths)
}

func (b *pictureBuilder) triangles() {
	paths, left := b.lines(b.Triangles)
	note := ""
	if left > 0 {
		note = fmt.Sprintf(" (%s of their edges are too short to see)", grouped(int64(left)))
	}
	b.add(pictureLayer{name: LayerTriangles, stroke: inkTriangles, width: 0.7, paths: paths},
		"Delaunay: %s triangles%s", grouped(int64(len(b.Triangles)/3)), note)
}

// points draws a dot a point, or where there are too many, one a pixel.
func (b *pictureBuilder) points() {
	n := len(b.Points.Idx)
	spots := make([]spot, n)
	for k := range spots {
		x, y, _ := b.at(k)
		spots[k] = b.view.spot(x, y)
	}
	size, note := 1.6, ""
	if n < 5000 {
		size = 2.6
	}
	if n > mostDots {
		spots = thinned(spots)
		note = fmt.Sprintf(", %s of them drawn", grouped(int64(len(spots))))
	}
	b.add(pictureLayer{name: LayerPoints, stroke: inkPoints, marks: spots, form: markDot, size: size}, "%s points%s",
		grouped(int64(n)), note)
}

// thinned keeps the first spot of every pixel, and of these, if there are
// still too many, some at equal steps.
func thinned(spots []spot) []spot {
	type pixel struct{ x, y int32 }
	seen := map[pixel]bool{}
	kept := spots[:0]
	for _, s := range spots {
		if at := (pixel{int32(s.x), int32(s.y)}); !seen[at] {
			seen[at] = true
			kept = append(kept, s)
		}
	}
	step := (len(kept) + mostDots - 1) / mostDots
	for i := 0; i*step < len(kept); i++ {
		kept[i] = kept[i*step]
	}
	return kept[:(len(kept)+step-1)/step]
}

func (b *pictureBuilder) hull3D() {
	h := b.Hull3
	paths, _ := b.lines(h.Faces)
	l := pictureLayer{name: LayerHull3D, stroke: inkHull3D, width: 0.9, paths: paths, form: markCircle, size: 3}
	for _, i := range h.Idx {
		l.marks = append(l.marks, b.spotOf(i))
	}
	b.add(l, "hull in space, from above: %s",
		measured(h.Status, fmt.Sprintf("%s corners, %s faces, area %s %s², volume %s %s³",
			grouped(int64(len(h.Idx))), grouped(int64(len(h.Faces)/3)), short(h.Area), b.Unit(),
			short(h.Volume), b.Unit())))
}

func (b *pictureBuilder) hull() {
	h := b.Hull
	ring := make([]spot, len(h.X))
	for i := range ring {
		ring[i] = b.view.spot(h.X[i], h.Y[i])
	}
	b.add(pictureLayer{name: LayerHull, stroke: inkHull, fill: inkHullFill, width: 1.8, paths: [][]spot{ring},
		closed: true, marks: ring, form: markCircle, size: 6},
		"hull: %s", measured(h.Status, fmt.Sprintf("%s vertices, area %s %s², perimeter %s %s",
			grouped(int64(len(h.Idx))), short(h.Area), b.Unit(), short(h.Perimeter), b.Unit())))
}

// measured is a legend's text of a hull, or what became of it.
func measured(status schemas.Status, text string) string {
	if status == schemas.StatusOK {
		return text
	}
	return strings.ReplaceAll(string(status), "_", " ")
}

func (b *pictureBuilder) maxima() {
	for _, m := range b.Maxima {
		l := pictureLayer{name: LayerMaxima, stroke: inkMaxima, form: markDiamond, size: 7}
		for _, i := range m.Idx {
			l.marks = append(l.marks, b.spotOf(i))
		}
		b.add(l, "%s maxima (%s)", grouped(int64(len(m.Idx))), m.Directions)
	}
}

// frame adds title, legend and scale, and the height that they take.
func (b *pictureBuilder) frame() {
	say := func(x, y, size float64, text string) {
		b.texts = append(b.texts, pictureText{at: spot{x, y}, size: size, text: text, color: inkText})
	}
	say(pictureMargin, 30, titleSize, b.title)
	dropped := ""
	if b.NDropped > 0 {
		dropped = fmt.Sprintf(", %s of them not finite", grouped(int64(b.NDropped)))
	}
	say(pictureMargin, 50, textSize, fmt.Sprintf("%s/%d, offset %d, index %d; %s; %s points received%s", b.Topic,
		b.Partition, b.Offset, b.Index,
		time.Unix(0, b.TimeNs).UTC().Format(time.RFC3339Nano), grouped(int64(b.NPoints)), dropped))
	y := pictureTop + b.plot + 36
	b.scale(y)
	for _, line := range b.legend {
		swatch := *line.layer
		swatch.name = "key"
		middle := y - textSize/3
		if len(swatch.paths) > 0 || swatch.closed {
			swatch.paths = [][]spot{{{pictureMargin, middle}, {pictureMargin + 22, middle}}}
		}
		if swatch.fill, swatch.closed = (color.NRGBA{}), false; len(swatch.marks) > 0 {
			swatch.marks, swatch.size = []spot{{pictureMargin + 11, middle}}, max(swatch.size, 3)
		}
		b.picture.layers = append(b.picture.layers, swatch)
		say(pictureMargin+32, y, textSize, line.text)
		y += pictureLine
	}
	b.height = y + 4
}

// scale draws a bar of a round length at the right end of the line y, and says
// which way y runs.
func (b *pictureBuilder) scale(y float64) {
	right := b.picture.width - pictureMargin
	way := "y up"
	if b.view.down {
		way = "y down"
	}
	if b.view.unit > 0 {
		const most = 160 // pixels
		length := roundBelow(2 * most * b.view.unit)
		pixels := length / 2 / b.view.unit
		b.picture.layers = append(b.picture.layers,
			pictureLayer{name: "scale", stroke: inkText, width: 2, paths: [][]spot{
				{{right - pixels, y}, {right, y}}, {{right - pixels, y - 5}, {right - pixels, y + 1}},
				{{right, y - 5}, {right, y + 1}}}})
		way = fmt.Sprintf("%s %s, %s", short(length), b.Unit(), way)
	}
	b.texts = append(b.texts, pictureText{at: spot{right, y + 16}, size: textSize, atEnd: true,
		text: way, color: inkText})
}

// roundBelow returns the largest of 1, 2, 5 times a power of ten that is not
// above x.
func roundBelow(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{10, 5, 2, 1} {
		if f*power <= x {
			return f * power
		}
	}
	return x // among the denormal numbers powers of ten are rough
}

// short is a number with four digits, for people.
func short(x float64) string {
	if 1000 <= x && x < 1e9 {
		return grouped(int64(math.Round(x)))
	}
	return fmt.Sprintf("%.4g", x)
}

// grouped writes n with blanks between thousands: 12 345 678.
func grouped(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}
