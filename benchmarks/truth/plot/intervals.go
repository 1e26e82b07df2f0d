package plot

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Interval is a line of a picture of intervals: its name, what it is of or nothing, a figure, the
// ends of its interval, which are the figure itself where there is none, and the values that
// they come from, if any.
type Interval struct {
	Name, Of       string
	Mid, Low, High float64
	Values         []float64
}

// Limit is what a claim asks of a figure: a value at or above At, or at or below it.
type Limit struct {
	At    float64
	Above bool
}

// Sizes of a picture of intervals in pixels.
const (
	wide      = 840.0
	names     = 330.0 // left of the axis
	lineOf    = 40.0
	headOf    = 26.0
	footOf    = 44.0
	roomRight = 16.0
)

// wideRange is the quotient of the largest and the least value from which on an axis may be
// logarithmic.
const wideRange = 20

// Intervals returns a picture of figures below each other along one axis, with the side of a
// limit on which a claim holds shaded. An axis of scale Log is logarithmic only if its values
// are positive and far apart. title is the picture's text for readers who do not see it.
func Intervals(title, label string, scale Scale, all []Interval, limit Limit) string {
	values := []float64{limit.At}
	for _, i := range all {
		values = append(append(values, i.Low, i.Mid, i.High), i.Values...)
	}
	x := Axis{Scale: scale}
	if least := slices.Min(values); !(least > 0 && slices.Max(values)/least > wideRange) {
		x.Scale = Linear
	}
	x = x.fit([]Series{{X: values}}, func(s Series) []float64 { return s.X })
	px := func(v float64) float64 { return names + (wide-names-roomRight)*x.at(v) }
	end := headOf + lineOf*float64(len(all))
	var b strings.Builder
	open(&b, title, wide, end+footOf)
	from, to := names, px(limit.At)
	where, anchor := "at most", "end"
	if limit.Above {
		from, to, where, anchor = px(limit.At), wide-roomRight, "at least", "start"
	}
	fmt.Fprintf(&b, `<rect class="z" x="%.1f" y="%g" width="%.1f" height="%g"/>`+"\n", from, headOf, to-from,
		end-headOf)
	for _, v := range x.ticks() {
		fmt.Fprintf(&b, `<path class="g" d="M%.1f %gV%g"/><text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n",
			px(v), headOf, end, px(v), end+16, number(v))
	}
	if anchor == "start" && px(limit.At) > wide-160 {
		anchor = "end"
	} else if anchor == "end" && px(limit.At) < names+160 {
		anchor = "start"
	}
	fmt.Fprintf(&b, `<path class="l d s2" d="M%.1f %gV%g"/><text x="%.1f" y="18" text-anchor="%s">claim: %s %s</text>`+
		"\n", px(limit.At), headOf-4, end, px(limit.At), anchor, where, number(roundTo4(limit.At)))
	fmt.Fprintf(&b, `<path class="a" d="M%g %gH%g"/>`+"\n", names, end, wide-roomRight)
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", (names+wide-roomRight)/2, end+36,
		html.EscapeString(label))
	for k, i := range all {
		y, colour := headOf+lineOf*(float64(k)+.5), k%5
		lines := []string{i.Name, i.Of}
		if i.Of == "" {
			lines = lines[:1]
		}
		for n, line := range lines {
			fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end"%s>%s</text>`+"\n", names-10,
				y+11-7.5*float64(len(lines))+15*float64(n), []string{` class="t"`, ""}[n], html.EscapeString(line))
		}
		if i.Low < i.High {
			fmt.Fprintf(&b, `<path class="l s%d" d="M%.1f %.1fH%.1fM%.1f %.1fv10M%.1f %.1fv10"/>`+"\n", colour, px(i.Low),
				y, px(i.High), px(i.Low), y-5, px(i.High), y-5)
		}
		var path strings.Builder
		for _, v := range i.Values {
			fmt.Fprintf(&path, "M%.1f %.1fh0", px(v), y+10)
		}
		if path.Len() > 0 {
			fmt.Fprintf(&b, `<path class="p s%d" d="%s"/>`+"\n", colour, path.String())
		}
		fmt.Fprintf(&b, `<circle class="f%d" cx="%.1f" cy="%.1f" r="4.5"/>`+"\n", colour, px(i.Mid), y)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// roundTo4 rounds to four digits.
func roundTo4(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	return math.Round(v/unit) * unit
}
