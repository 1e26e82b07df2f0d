package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Heat is a table of values that are shown as shades: the largest of all tables of a
// picture is darkest. NaN leaves a cell empty.
type Heat struct {
	Title          string
	XLabel, YLabel string
	X, Y           []string    // names of columns and lines
	Values         [][]float64 // a line a name in Y
}

// Sizes of a cell of a table in pixels.
const (
	heatWidth, heatHeight = 78.0, 40.0
	heatLeft, heatTop     = 78.0, 34.0
	heatBottom            = 48.0
)

// Heats returns a picture of tables side by side, each with its own shades, and the values
// in the format. title is its text for readers who do not see it.
func Heats(title string, tables []Heat, format string) string {
	wide, high := 0.0, 0.0
	for _, t := range tables {
		wide = max(wide, heatLeft+heatWidth*float64(len(t.X))+20)
		high = max(high, heatTop+heatHeight*float64(len(t.Y))+heatBottom)
	}
	var b strings.Builder
	open(&b, title, wide*float64(len(tables)), high)
	for k := range tables {
		fmt.Fprintf(&b, "<g transform=\"translate(%g 0)\">\n", wide*float64(k))
		tables[k].draw(&b, format)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (t *Heat) draw(b *strings.Builder, format string) {
	most := 0.0
	for _, line := range t.Values {
		for _, v := range line {
			if !math.IsNaN(v) {
				most = max(most, math.Abs(v))
			}
		}
	}
	fmt.Fprintf(b, `<text class="t" x="%g" y="18">%s</text>`+"\n", heatLeft, html.EscapeString(t.Title))
	right, low := heatLeft+heatWidth*float64(len(t.X)), heatTop+heatHeight*float64(len(t.Y))
	for k, name := range t.X {
		fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", heatLeft+heatWidth*(float64(k)+.5),
			low+16, html.EscapeString(name))
	}
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", (heatLeft+right)/2, low+36,
		html.EscapeString(t.XLabel))
	fmt.Fprintf(b, `<text transform="translate(14 %g) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(heatTop+low)/2, html.EscapeString(t.YLabel))
	for i, name := range t.Y {
		y := heatTop + heatHeight*float64(i)
		fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="end">%s</text>`+"\n", heatLeft-8, y+heatHeight/2+4,
			html.EscapeString(name))
		for k, v := range t.Values[i] {
			if math.IsNaN(v) {
				continue
			}
			x := heatLeft + heatWidth*float64(k)
			fmt.Fprintf(b, `<rect class="f0" fill-opacity="%.2f" x="%g" y="%g" width="%g" height="%g"/>`,
				.08+.5*math.Abs(v)/max(most, 1e-300), x+1, y+1, heatWidth-2, heatHeight-2)
			fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", x+heatWidth/2, y+heatHeight/2+4,
				fmt.Sprintf(format, v))
		}
	}
}
