package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"entropipe/benchmarks/truth/plot"
)

// drawing is a figure of the front page. It has no SVG where its records are missing.
type drawing struct {
	name, title, caption string
	experiments          []string
	svg                  string
}

// file is the name of a picture's file beside the pages.
func (p *drawing) file() string { return "figure-" + p.name + ".svg" }

// picturesOf draws the figures that there are records for.
func picturesOf(s sheet) []drawing {
	all := []drawing{
		{name: "scatter", title: "Entropy against F and H_diff", experiments: []string{"correlation"},
			caption: "One point a set of points, 240 a problem. A measure that follows the entropy lies along a line.",
			svg:     scatterPicture(s["correlation"])},
		{name: "touched", title: "Points touched against the entropy", experiments: []string{"touched"},
			caption: "How often an instance-optimal algorithm looks at a point, against the entropy a point.",
			svg:     touchedPicture(s["touched"])},
		{name: "margin", title: "Margin and error of soft cells", experiments: []string{"margin"},
			caption: "Mean error over cells of equal size and temperature, against the margin in temperatures: " +
				"towards " +
				"the entropy of the same cells made hard, and towards the true entropy.",
			svg: marginPicture(s["margin"])},
		{name: "error", title: "Error of the hull against fall of the entropy", experiments: []string{"tradeoff"},
			caption: "Trained networks: one point a bound σ of displacements, 0.01 to 0.1, mean over seeds with 95 % " +
				"intervals. Controls without a network: random jitter, and the ε-kernel of K extreme points, with " +
				"all " +
				"other points pulled inwards. The dashed line is the printed bound of 0.2 %; errors below 0.001 % " +
				"stand at 0.001, larger ones and rises of more than 100 % are left out.",
			svg: errorPicture(tradeoff.overSeeds(s["tradeoff"]))},
		{name: "loss", title: "Held-out loss over a training", experiments: []string{"tradeoff"},
			caption: "σ = 0.1, mean over the seeds: the held-out loss, with full weight and the last temperatures " +
				"throughout, in parts of its first value, and the entropy G of held-out frames once moved.",
			svg: lossPicture(s["tradeoff"])},
		{name: "heat", title: "Anchors and alpha", experiments: []string{"netsweeps"},
			caption: "Networks of the square, H_diff, σ = 0.1: fall of the entropy and error of the hull.",
			svg:     heatPicture(s["netsweeps"])},
		{name: "lambda", title: "Weight of the loss", experiments: []string{"netsweeps"},
			caption: "Networks of the square, H_diff, σ = 0.1, K = 16, α from 10 to 5.",
			svg:     lambdaPicture(s["netsweeps"])},
		{name: "breakeven", title: "When training has paid for itself", experiments: []string{"breakeven"},
			caption: "Seconds spent after so many frames, training included, with and without the model.",
			svg:     breakEvenPicture(s["breakeven"])},
		{name: "amdahl", title: "Printed speed-ups and Amdahl's bound",
			caption: "Attention's share of a block's multiplications bounds what masks at 75 % sparsity can save.",
			svg:     amdahlPicture()},
		{name: "before-after", title: "Before and after the network", experiments: []string{"picture"},
			caption: "A frame, the frame behind the network, and the largest displacement, enlarged.",
			svg:     beforePicture(s["picture"])},
	}
	return all
}

func scatterPicture(records []record) string {
	if len(records) == 0 {
		return ""
	}
	var panels []plot.Panel
	problems, of := grouped(records, "problem")
	for _, m := range []struct{ name, label string }{{"f64", "F, 64 witnesses"}, {"hdiff10", "H_diff, α = 10"}} {
		for _, p := range problems {
			panels = append(panels, plot.Panel{Title: m.label + ": " + p,
				X:      plot.Axis{Label: "entropy, nats a point"},
				Y:      plot.Axis{Label: "measure, nats a point"},
				Series: []plot.Series{{X: valuesOf(of[p], "truth"), Y: valuesOf(of[p], m.name)}}})
		}
	}
	return plot.Panels("Entropy against F and H_diff", panels)
}

func touchedPicture(records []record) string {
	if len(records) == 0 {
		return ""
	}
	var panels []plot.Panel
	problems, of := grouped(records, "problem")
	for _, p := range problems {
		x, y := valuesOf(of[p], "truth"), valuesOf(of[p], "touched")
		_, slope, offset := fitLine(x, y)
		far := slices.Max(x)
		panels = append(panels, plot.Panel{Title: p, X: plot.Axis{Label: "entropy, nats a point"},
			Y: plot.Axis{Label: "looks at a point"}, Series: []plot.Series{{Name: "a set", X: x, Y: y},
				{Name: fmt.Sprintf("%.2f H + %.2f", slope, offset), X: []float64{0, far}, Y: []float64{offset,
					offset + slope*far},
					Line: true}}})
	}
	return plot.Panels("Points touched against the entropy", panels)
}

func marginPicture(records []record) string {
	if len(records) == 0 {
		return ""
	}
	error := func(title, from string) plot.Panel {
		p := plot.Panel{Title: title, X: plot.Axis{Label: "margin / temperature, 5 % quantile", Scale: plot.Log},
			Y: plot.Axis{Label: "error, nats"}}
		halves, of := grouped(records, "halves")
		for _, h := range halves {
			x, y := meanCurve(of[h], func(r *record) (float64, float64) {
				return r.Values["gamma5"] / r.Values["tau"], math.Abs(r.Values[from] - r.Values["soft"])
			})
			p.Series = append(p.Series, plot.Series{Name: "lines: " + h, X: x, Y: y, Line: true})
		}
		return p
	}
	return plot.Panels("Margin and error of soft cells", []plot.Panel{error("against the cells made hard", "hard"),
		error("against the true entropy", "truth")})
}

// meanCurve averages y over records of like x: ten groups of equal count in ascending x.
func meanCurve(records []record, of func(*record) (x, y float64)) (xs, ys []float64) {
	type pair struct{ x, y float64 }
	var pairs []pair
	for k := range records {
		if x, y := of(&records[k]); x > 0 {
			pairs = append(pairs, pair{x, y})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	const groups = 10
	for g := range groups {
		part := pairs[g*len(pairs)/groups : (g+1)*len(pairs)/groups]
		if len(part) == 0 {
			continue
		}
		var x, y float64
		for _, p := range part {
			x += math.Log(p.x) / float64(len(part))
			y += p.y / float64(len(part))
		}
		xs, ys = append(xs, math.Exp(x)), append(ys, y)
	}
	return xs, ys
}

// errorPicture draws networks and controls of the means over seeds.
func errorPicture(records []record) string {
	if len(records) == 0 {
		return ""
	}
	var panels []plot.Panel
	families, of := grouped(records, "family")
	for _, f := range families {
		p := plot.Panel{Title: f, X: plot.Axis{Label: "fall of the entropy, %", Low: -100, High: 100},
			Y: plot.Axis{Label: "error of the hull, %", Scale: plot.Log, Low: 1e-3, High: 30}}
		for _, m := range []string{"H_diff", "H_soft", "F", shakenMethod, extremeMethod} {
			var some []record
			for _, r := range of[f] {
				if strings.HasPrefix(r.Text["method"], m) {
					some = append(some, r)
				}
			}
			if len(some) > 0 {
				p.Series = append(p.Series, errorSeries(m, sortedBy(some, "error")))
			}
		}
		p.Series = append(p.Series, plot.Series{X: []float64{-100, 100},
			Y: []float64{100 * printedError, 100 * printedError}, Line: true, Dashed: true})
		panels = append(panels, p)
	}
	return plot.Panels("Error of the hull against fall of the entropy", panels)
}

func errorSeries(name string, records []record) plot.Series {
	s := plot.Series{Name: name, Line: true}
	for _, r := range records {
		x, y := 100*r.Values["fall"], max(100*r.Values["error"], 1e-3)
		dx, dy := 100*r.Values["fall_ci"], 100*r.Values["error_ci"]
		s.X, s.Y = append(s.X, x), append(s.Y, y)
		s.XSpans, s.YSpans = append(s.XSpans, [2]float64{x - dx, x + dx}), append(s.YSpans, [2]float64{y - dy, y + dy})
	}
	return s
}

// lossPicture draws the means over seeds of what every evaluation found, at sigma 0.1.
func lossPicture(records []record) string {
	var panels []plot.Panel
	families, of := grouped(records, "family")
	for _, f := range families {
		loss := plot.Panel{Title: f + ": held-out loss", X: plot.Axis{Label: "epoch"},
			Y: plot.Axis{Label: "of its first value"}}
		g := plot.Panel{Title: f + ": entropy of held-out frames", X: plot.Axis{Label: "epoch"},
			Y: plot.Axis{Label: "G, nats a point"}}
		for _, m := range []string{"H_diff", "H_soft", "F"} {
			var curves [][4][]float64
			for _, r := range of[f] {
				if r.Text["method"] == m && r.Values["sigma"] == .1 {
					if c := curveOf(r.Text["curve"]); len(c[0]) > 0 {
						curves = append(curves, c)
					}
				}
			}
			a, b := plot.Series{Name: m, Line: true}, plot.Series{Name: m, Line: true}
			for k := 0; ; k++ {
				x, sum, entropy, count := 0.0, 0.0, 0.0, 0.0
				for _, c := range curves {
					if k < len(c[0]) {
						x, sum, entropy, count = c[0][k], sum+c[1][k]/c[1][0], entropy+c[3][k], count+1
					}
				}
				if count == 0 {
					break
				}
				a.X, a.Y = append(a.X, x), append(a.Y, sum/count)
				b.X, b.Y = append(b.X, x), append(b.Y, entropy/count)
			}
			if len(a.X) > 0 {
				loss.Series, g.Series = append(loss.Series, a), append(g.Series, b)
			}
		}
		if len(loss.Series) > 0 {
			panels = append(panels, loss, g)
		}
	}
	if len(panels) == 0 {
		return ""
	}
	return plot.Panels("Held-out loss and entropy over a training", panels)
}

func breakEvenPicture(records []record) string {
	var panels []plot.Panel
	for _, r := range records {
		v := r.Values
		var frames, with, without []float64
		for e := 0.0; e <= 7; e += .125 {
			n := math.Pow(10, e)
			frames = append(frames, n)
			with = append(with, v["train_s"]+n*v["total_ms"]/1000)
			without = append(without, n*v["plain_ms"]/1000)
		}
		panels = append(panels, plot.Panel{Title: r.Text["family"] + ": " + r.Text["method"],
			X: plot.Axis{Label: "frames or batches", Scale: plot.Log},
			Y: plot.Axis{Label: "seconds", Scale: plot.Log},
			Series: []plot.Series{{Name: "with", X: frames, Y: with, Line: true}, {Name: "without", X: frames,
				Y: without, Line: true}}})
	}
	if len(panels) == 0 {
		return ""
	}
	return plot.Panels("When training has paid for itself", panels)
}

func amdahlPicture() string {
	var bars []plot.Bar
	for _, s := range shapes {
		bars = append(bars, plot.Bar{Name: s.name, Values: []float64{s.most(.75), s.printed}})
	}
	return plot.Bars("Printed speed-ups and Amdahl's bound", []string{"bound at 75 % sparsity", "printed speed-up"},
		bars,
		"%.2f×")
}

// beforePicture puts the pictures that the records hold below one another.
func beforePicture(records []record) string {
	var b strings.Builder
	height, wide := 0.0, 0.0
	for _, r := range records {
		inner, ok := r.Text["svg"]
		if !ok {
			continue
		}
		var w, h float64
		at := strings.Index(inner, `viewBox="0 0 `)
		if _, err := fmt.Sscanf(inner[at+len(`viewBox="0 0 `):], "%g %g", &w, &h); err != nil {
			continue
		}
		fmt.Fprintf(&b, "<g transform=\"translate(0 %g)\">%s</g>\n", height, inner)
		height, wide = height+h, max(wide, w)
	}
	if height == 0 {
		return ""
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-label="%s">`+
		"\n%s</svg>\n",
		wide, height, "Before and after the network", strings.ReplaceAll(b.String(), "<svg ",
			fmt.Sprintf(`<svg width="%g" height="%g" `, wide, height/float64(len(records)))))
}
