package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// WriteRecords writes the history, one JSON object a line. Records hold no times, so
// equal trainings write equal bytes.
func (t *Trainer) WriteRecords(w io.Writer) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, r := range t.records {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// series is one curve of a panel.
type series struct {
	name, colour string
	x, y         []float64
}

// panel is one diagram: curves with axes.
type panel struct {
	title string
	lines []series
}

// WriteCurves writes the history as an SVG picture with four panels: loss and task
// loss, regulariser, entropy of the held-out frames, and error (mode denoise: F1) of
// the answers, each over the steps.
func (t *Trainer) WriteCurves(w io.Writer) error {
	loss, task, reg := series{name: "loss", colour: "#1f4e79"}, series{name: "task", colour: "#c55a11"},
		series{name: string(t.cfg.Regulariser), colour: "#548235"}
	before, after := series{name: "G as it is", colour: "#7f7f7f"}, series{name: "G moved", colour: "#1f4e79"}
	bad, worst := series{name: "mean", colour: "#1f4e79"}, series{name: "worst", colour: "#c55a11"}
	raw, f1 := series{name: "as it is", colour: "#7f7f7f"}, series{name: "moved", colour: "#1f4e79"}
	for _, r := range t.records {
		x := float64(r.Step)
		loss.add(x, r.Loss)
		task.add(x, r.Task)
		if r.Lambda > 0 {
			reg.add(x, r.Regulariser)
		}
		if j := r.Judged; j != nil {
			before.add(x, j.Before)
			after.add(x, j.After)
			bad.add(x, j.Error)
			worst.add(x, j.Worst)
			raw.add(x, j.Raw)
			f1.add(x, j.F1)
		}
	}
	panels := []panel{{"loss", []series{loss, task}}, {"regulariser, nats a point", []series{reg}},
		{"entropy of held-out frames, nats a point", []series{before, after}}}
	if t.cfg.Mode == "denoise" {
		panels = append(panels, panel{"F1 of maxima", []series{raw, f1}})
	} else {
		panels = append(panels, panel{"error of answers, diagonals of the frame", []series{bad, worst}})
	}
	_, err := io.WriteString(w, drawPanels(panels, t.cfg.Steps))
	return err
}

func (s *series) add(x, y float64) { s.x, s.y = append(s.x, x), append(s.y, y) }

// Sizes of a panel, in pixels.
const (
	panelWidth, panelHeight = 420.0, 240.0
	marginLeft, marginTop   = 64.0, 32.0
	marginRight, marginLow  = 16.0, 36.0
)

// drawPanels returns the picture of the panels, two in a row, over steps 0 to last.
func drawPanels(panels []panel, last int) string {
	var b strings.Builder
	rows := float64((len(panels) + 1) / 2)
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="11">`+"\n",
		2*panelWidth, rows*panelHeight)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="white"/>`+"\n", 2*panelWidth, rows*panelHeight)
	for k, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%g %g)">`+"\n", float64(k%2)*panelWidth, float64(k/2)*panelHeight)
		p.draw(&b, float64(last))
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p *panel) draw(b *strings.Builder, last float64) {
	lo, hi := p.extent()
	wide, high := panelWidth-marginLeft-marginRight, panelHeight-marginTop-marginLow
	px := func(x float64) float64 { return marginLeft + wide*x/max(last, 1) }
	py := func(y float64) float64 { return marginTop + high*(hi-y)/(hi-lo) }
	fmt.Fprintf(b, `<text x="%g" y="16" font-weight="bold">%s</text>`+"\n", marginLeft, p.title)
	for k := range 5 {
		y := lo + (hi-lo)*float64(k)/4
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%g" y="%.1f" text-anchor="end">%.3g</text>`+
			"\n", marginLeft, py(y), marginLeft+wide, marginLeft-6, py(y)+4, y)
	}
	for k := range 3 {
		x := last * float64(k) / 2
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%.0f</text>`+"\n", px(x), marginTop+high+16, x)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">steps</text>`+"\n",
		marginLeft+wide/2, marginTop+high+30)
	for k, s := range p.lines {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s" text-anchor="end">%s</text>`+"\n", marginLeft+wide,
			marginTop+12+14*float64(k), s.colour, s.name)
		if len(s.x) == 0 {
			continue
		}
		b.WriteString(`<path fill="none" stroke-width="1.5" stroke="` + s.colour + `" d="`)
		for i := range s.x {
			fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(i, 1)], px(s.x[i]), py(s.y[i]))
		}
		b.WriteString("\"/>\n")
	}
}

// extent returns the range of the values, never empty. The range begins at 0 if all
// values are positive and the least is below half the largest.
func (p *panel) extent() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, s := range p.lines {
		for _, v := range s.y {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	switch {
	case lo > hi:
		return 0, 1
	case lo > 0 && lo < hi/2:
		lo = 0
	}
	if lo == hi {
		return lo - 0.5, hi + 0.5
	}
	return lo, hi
}
