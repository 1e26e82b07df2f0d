package picture

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"image/color"
	"strconv"
	"strings"
)

// WriteSVG writes a picture as a self-contained SVG document: no script, style
// sheet, font or picture from elsewhere.
func WriteSVG(w *bufio.Writer, s *picture) error {
	p := svgWriter{Writer: w}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" font-family="sans-serif" stroke-linejoin="round">`+"\n", decimal(s.width), decimal(s.height))
	p.printf("<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", escaped(s.title))
	for i := range s.layers {
		p.layer(&s.layers[i])
	}
	for _, t := range s.texts {
		anchor := ""
		if t.atEnd {
			anchor = ` text-anchor="end"`
		}
		p.printf("<text x=\"%s\" y=\"%s\" font-size=\"%s\" fill=\"%s\"%s>%s</text>\n", decimal(t.at.x), decimal(t.at.y),
			decimal(t.size), colorName(t.color), anchor, escaped(t.text))
	}
	p.printf("</svg>\n")
	return w.Flush()
}

// svgWriter writes to a buffer that remembers its first error.
type svgWriter struct {
	*bufio.Writer
	number []byte
}

func (p *svgWriter) printf(format string, args ...any) { fmt.Fprintf(p.Writer, format, args...) }

// layer writes a group of at most two paths: many small elements would make
// viewers slow.
func (p *svgWriter) layer(l *pictureLayer) {
	p.printf("<g class=\"%s\">", l.name)
	if len(l.paths) > 0 {
		fill := `none`
		if l.closed && l.fill.A > 0 {
			fill = colorName(l.fill) + `" fill-opacity="` + decimal(float64(l.fill.A)/255)
		}
		p.printf(`<path fill="%s" stroke="%s" stroke-width="%s" d="`, fill, colorName(l.stroke), decimal(l.width))
		for _, path := range l.paths {
			for i, s := range path {
				p.spot("ML"[min(i, 1)], s)
			}
			if l.closed && len(path) > 2 {
				p.WriteByte('Z')
			}
		}
		p.WriteString(`"/>`)
	}
	if len(l.marks) > 0 {
		p.marks(l)
	}
	p.WriteString("</g>\n")
}

// marks writes dots and circles as lines of no length with round ends.
func (p *svgWriter) marks(l *pictureLayer) {
	if l.form != markDiamond {
		p.printf(`<path fill="none" stroke="%s" stroke-width="%s" stroke-linecap="round" d="`,
			colorName(l.stroke), decimal(l.size))
		for _, s := range l.marks {
			p.spot('M', s)
			p.WriteString("h0")
		}
		p.WriteString(`"/>`)
		return
	}
	p.printf(`<path fill="%s" stroke="#ffffff" stroke-width="0.5" d="`, colorName(l.stroke))
	half := decimal(l.size / 2)
	for _, s := range l.marks {
		p.spot('M', spot{s.x - l.size/2, s.y})
		p.printf("l%[1]s-%[1]s %[1]s %[1]s-%[1]s %[1]sz", half)
	}
	p.WriteString(`"/>`)
}

func (p *svgWriter) spot(command byte, s spot) {
	p.number = append(p.number[:0], command)
	p.number = strconv.AppendFloat(p.number, s.x, 'f', 2, 64)
	p.number = append(p.number, ' ')
	p.number = strconv.AppendFloat(p.number, s.y, 'f', 2, 64)
	p.Write(p.number)
}

// decimal writes a number with at most two decimals.
func decimal(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0"), ".")
}

func colorName(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// escaped returns text as XML has it; what XML cannot hold becomes U+FFFD.
func escaped(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic("export: a builder fails")
	}
	return b.String()
}
