package plot

import (
	"fmt"
	"html"
	"strings"
)

// Bar is a line of a chart of bars: one bar a series. A value of 0 leaves the bar out.
type Bar struct {
	Name   string
	Values []float64
}

// Sizes of a chart of bars in pixels.
const (
	barName, barHeight, barSpace = 210.0, 13.0, 12.0
	barWidth                     = 840.0
)

// Bars returns a chart of horizontal bars from 0, with the value at the end of each in
// the format.
func Bars(title string, series []string, bars []Bar, format string) string {
	most := 0.0
	for _, bar := range bars {
		for _, v := range bar.Values {
			most = max(most, v)
		}
	}
	group := barHeight*float64(len(series)) + barSpace
	var b strings.Builder
	open(&b, title, barWidth, top+group*float64(len(bars))+legendLine)
	for k, name := range series {
		at := barName + 300*float64(k)
		fmt.Fprintf(&b, `<rect class="f%d" x="%g" y="6" width="12" height="12"/><text x="%g" y="16">%s</text>`+"\n",
			k, at,
			at+18, html.EscapeString(name))
	}
	for k, bar := range bars {
		y := top + group*float64(k)
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="end">%s</text>`+"\n", barName-8,
			y+barHeight*float64(len(series))/2+4, html.EscapeString(bar.Name))
		for j, v := range bar.Values {
			if v == 0 {
				continue
			}
			long := (barWidth - barName - 60) * v / most
			fmt.Fprintf(&b, `<rect class="f%d" x="%g" y="%g" width="%.1f" height="%g"/><text x="%.1f" y="%g">%s</text>`+"\n", j,
				barName, y+barHeight*float64(j), long, barHeight-2, barName+long+5, y+barHeight*float64(j)+10,
				fmt.Sprintf(format, v))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
