// Package plot draws scatters, curves and bars as SVG. Colours and lines are classes of a
// style sheet inside the picture, which follows the reader's light or dark theme.
//
// The text of a picture is written by code alone: equal data give equal bytes.
package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Scale maps values to an axis.
type Scale int

// The scales. Values that are not positive are left out of a Log axis.
const (
	Linear Scale = iota
	Log
)

// Axis is one side of a panel.
type Axis struct {
	Label     string
	Scale     Scale
	Low, High float64 // ends; equal ends are those of the data
}

// Series is what one colour shows.
type Series struct {
	Name   string
	X, Y   []float64
	Line   bool // join the points in their order
	Dashed bool
	Labels []string // text beside each point, or none

	// Ends of the points' intervals along each axis, or none.
	XSpans, YSpans [][2]float64
}

// Panel is a pair of axes with series.
type Panel struct {
	Title  string
	X, Y   Axis
	Series []Series
}

// Sizes of a panel in pixels.
const (
	width, height            = 420.0, 300.0
	left, right, top, bottom = 56.0, 12.0, 30.0, 44.0
	legendLine               = 17.0
)

const style = `<style>
svg{--ink:#222;--faint:#9a9a9a;--rule:#e4e4e4;--c0:#1f5fa8;--c1:#c2571a;--c2:#3b7d3b;--c3:#7a4ea3;--c4:#8a6d1d}
@media (prefers-color-scheme:dark){svg{--ink:#ddd;--faint:#888;--rule:#383838;--c0:#7fb2ee;--c1:#f0a06a;--c2:#86c986;--c3:#c3a1e8;--c4:#d9bd6a}}
text{fill:var(--ink);font:12px sans-serif}.t{font-weight:bold}.a{stroke:var(--faint);fill:none}.g{stroke:var(--rule);fill:none}
.w{fill:none;stroke-width:1;stroke-opacity:.55}.z{fill:var(--c2);fill-opacity:.13}
.p{fill:none;stroke-linecap:round;stroke-width:3.4;stroke-opacity:.6}.l{fill:none;stroke-width:1.6}.d{stroke-dasharray:5 4}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}
</style>
`

// Panels returns a picture of panels side by side, two a line. title is its text for
// readers who do not see it.
func Panels(title string, panels []Panel) string {
	legend := 0.0
	for _, p := range panels {
		legend = max(legend, 6+legendLine*float64((named(p.Series)+1)/2))
	}
	columns := min(len(panels), 2)
	lines := (len(panels) + columns - 1) / columns
	one := height + legend
	var b strings.Builder
	open(&b, title, width*float64(columns), one*float64(lines))
	for k := range panels {
		fmt.Fprintf(&b, "<g transform=\"translate(%g %g)\">\n", width*float64(k%columns), one*float64(k/columns))
		panels[k].draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// open writes the head of a picture.
func open(b *strings.Builder, title string, w, h float64) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="%s">`+"\n",
		w, h, html.EscapeString(title))
	b.WriteString(style)
}

func named(series []Series) (n int) {
	for _, s := range series {
		if s.Name != "" {
			n++
		}
	}
	return n
}

// draw writes one panel.
func (p *Panel) draw(b *strings.Builder) {
	x := p.X.fit(p.Series, func(s Series) []float64 { return s.X })
	y := p.Y.fit(p.Series, func(s Series) []float64 { return s.Y })
	px := func(v float64) float64 { return left + (width-left-right)*x.at(v) }
	py := func(v float64) float64 { return height - bottom - (height-top-bottom)*y.at(v) }
	fmt.Fprintf(b, `<text class="t" x="%g" y="18">%s</text>`+"\n", left, html.EscapeString(p.Title))
	for _, v := range x.ticks() {
		fmt.Fprintf(b, `<path class="g" d="M%.1f %gV%g"/><text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n",
			px(v),
			top, height-bottom, px(v), height-bottom+16, number(v))
	}
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<path class="g" d="M%g %.1fH%g"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, py(v),
			width-right, left-6, py(v)+4, number(v))
	}
	fmt.Fprintf(b, `<path class="a" d="M%g %gV%gH%g"/>`+"\n", left, top, height-bottom, width-right)
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-10,
		html.EscapeString(p.X.Label))
	fmt.Fprintf(b, `<text transform="translate(13 %g) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(top+height-bottom)/2, html.EscapeString(p.Y.Label))
	shown := 0
	for k, s := range p.Series {
		s.draw(b, k%5, x, y, px, py)
		if s.Name != "" {
			at, down := left+(width-left-right)/2*float64(shown%2), height+4+legendLine*float64(shown/2)
			fmt.Fprintf(b, `<path class="p s%d" style="stroke-opacity:1" d="M%.1f %.1fh10"/><text x="%.1f" y="%.1f">%s</text>`+
				"\n", k%5, at, down, at+16, down+4, html.EscapeString(s.Name))
			shown++
		}
	}
}

// draw writes the points of a series, or its line.
func (s *Series) draw(b *strings.Builder, colour int, x, y Axis, px, py func(float64) float64) {
	var path strings.Builder
	for i := range s.X {
		if !x.shows(s.X[i]) || !y.shows(s.Y[i]) {
			continue
		}
		letter := "M"
		if s.Line && path.Len() > 0 {
			letter = "L"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", letter, px(s.X[i]), py(s.Y[i]))
		if !s.Line {
			path.WriteString("h0")
		}
		if i < len(s.Labels) && s.Labels[i] != "" {
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`+"\n", px(s.X[i])+6, py(s.Y[i])-5,
				html.EscapeString(s.Labels[i]))
		}
	}
	s.drawSpans(b, colour, x, y, px, py)
	class := "p"
	if s.Line {
		class = "l"
	}
	if s.Dashed {
		class += " d"
	}
	fmt.Fprintf(b, `<path class="%s s%d" d="%s"/>`+"\n", class, colour, path.String())
}

// drawSpans draws the intervals of the points, cut at the ends of the axes.
func (s *Series) drawSpans(b *strings.Builder, colour int, x, y Axis, px, py func(float64) float64) {
	var path strings.Builder
	for i := range s.X {
		if !x.shows(s.X[i]) || !y.shows(s.Y[i]) {
			continue
		}
		if i < len(s.XSpans) {
			fmt.Fprintf(&path, "M%.1f %.1fH%.1f", px(x.cut(s.XSpans[i][0])), py(s.Y[i]), px(x.cut(s.XSpans[i][1])))
		}
		if i < len(s.YSpans) {
			fmt.Fprintf(&path, "M%.1f %.1fV%.1f", px(s.X[i]), py(y.cut(s.YSpans[i][0])), py(y.cut(s.YSpans[i][1])))
		}
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path class="w s%d" d="%s"/>`+"\n", colour, path.String())
	}
}

// cut returns the value of the axis that is nearest to v.
func (a Axis) cut(v float64) float64 { return max(a.Low, min(v, a.High)) }

// fit returns the axis with ends: its own, or those of the data.
func (a Axis) fit(series []Series, of func(Series) []float64) Axis {
	if a.Low != a.High {
		return a
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, v := range of(s) {
			if a.shows(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	switch {
	case low > high:
		low, high = 1, 2
	case low == high:
		low, high = low-.5, high+.5
	}
	if a.Scale == Log {
		a.Low, a.High = low/1.2, high*1.2
		return a
	}
	room := (high - low) / 25
	a.Low, a.High = low-room, high+room
	if low >= 0 && a.Low < 0 {
		a.Low = 0
	}
	return a
}

// shows reports whether the axis has a place for a value.
func (a Axis) shows(v float64) bool {
	if math.IsNaN(v) || math.IsInf(v, 0) || a.Scale == Log && v <= 0 {
		return false
	}
	return a.Low == a.High || v >= a.Low && v <= a.High
}

// at is the place of a value between the ends, from 0 to 1.
func (a Axis) at(v float64) float64 {
	if a.Scale == Log {
		return math.Log(v/a.Low) / math.Log(a.High/a.Low)
	}
	return (v - a.Low) / (a.High - a.Low)
}

// ticks are round values between the ends.
func (a Axis) ticks() (ticks []float64) {
	if a.Scale == Log {
		first, last := math.Ceil(math.Log10(a.Low)-1e-9), math.Floor(math.Log10(a.High)+1e-9)
		step := math.Ceil((last - first + 1) / 7)
		for e := first; e <= last; e += max(step, 1) {
			ticks = append(ticks, math.Pow(10, e))
		}
		if len(ticks) > 1 {
			return ticks
		}
	}
	step := math.Pow(10, math.Floor(math.Log10((a.High-a.Low)/4)))
	for _, factor := range []float64{5, 2} {
		if (a.High-a.Low)/(factor*step) >= 4 {
			step *= factor
			break
		}
	}
	ticks = nil
	for k := math.Ceil(a.Low/step - 1e-9); k*step <= a.High+1e-9*step; k++ {
		if v := k * step; a.Scale != Log || v > 0 {
			ticks = append(ticks, v)
		}
	}
	return ticks
}

// number writes a tick's value.
func number(v float64) string {
	if v == 0 || math.Abs(v) < 1e-12 {
		return "0"
	}
	if math.Abs(v) >= 1e5 || math.Abs(v) < 1e-3 {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
		power, _ := strconv.Atoi(exponent)
		return mantissa + "e" + strconv.Itoa(power)
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}
