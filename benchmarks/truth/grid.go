package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
	"entropipe/benchmarks/truth/plot"
)

// line is a row with its figures: a line of the grid.
type line struct {
	*row
	printedHere estimate.Estimate
	better      estimate.Estimate
	beside      estimate.Estimate
	judged      estimate.Estimate
	word        estimate.Word
	p           float64 // of the verdict, after Holm's correction
	tested      int     // rows that the correction is for
}

// linesOf judges all rows by the records.
func linesOf(s sheet) []line {
	lines := make([]line, len(rows))
	estimates, claims := make([]estimate.Estimate, len(rows)), make([]estimate.Claim, len(rows))
	for k := range rows {
		r := &rows[k]
		lines[k] = line{row: r, printedHere: estimated(r.asPrinted, s), better: estimated(r.corrected, s),
			beside: estimated(r.peer, s), judged: r.judged(s)}
		estimates[k], claims[k] = lines[k].judged, r.limit
	}
	words, p, tested := estimate.Verdicts(estimates, claims)
	for k := range lines {
		lines[k].word, lines[k].p, lines[k].tested = words[k], p[k], tested
	}
	return lines
}

// command repeats a row with the seeds of its figures.
func (r *row) command() string {
	command := fmt.Sprintf("go run ./benchmarks/truth --row %d", r.number)
	if !ofPaper() {
		command += " --seeds " + listed(seeds, ",")
	}
	return command
}

// page is the name of a row's page.
func (r *row) page() string { return fmt.Sprintf("row-%02d.md", r.number) }

// spanOf is the interval of an estimate, empty without one.
func spanOf(e estimate.Estimate, format string) string {
	if e.Kind < estimate.Recorded {
		return ""
	}
	return fmt.Sprintf(format+" to "+format, e.Low, e.High)
}

// pointOf is an estimate's figure, empty without one.
func pointOf(e estimate.Estimate, format string) string {
	if e.Kind == estimate.None {
		return ""
	}
	return fmt.Sprintf(format, e.Mid)
}

// gridColumns are the columns of the grid.
var gridColumns = rig.Table[*line]{
	{Head: "row", Align: rig.Right, Text: func(l *line) string { return fmt.Sprint(l.number) }},
	{Head: "claim, figure", Text: func(l *line) string {
		return fmt.Sprintf("[%s](%s): %s", l.title, l.page(), l.figure)
	}},
	{Head: "printed", Text: func(l *line) string { return l.printed }},
	{Head: "as printed, here", Align: rig.Right, Text: func(l *line) string {
		return pointOf(l.printedHere,
			l.format)
	}},
	{Head: "corrected", Align: rig.Right, Text: func(l *line) string { return pointOf(l.better, l.format) }},
	{Head: "95 % interval", Text: func(l *line) string { return spanOf(l.judged, l.format) }},
	{Head: "strongest peer", Text: func(l *line) string {
		if l.beside.Kind == estimate.None {
			return ""
		}
		return pointOf(l.beside, l.format) + ", " + l.peerName
	}},
	{Head: "verdict", Text: func(l *line) string { return string(l.word) }},
	{Head: "command", Text: func(l *line) string { return fmt.Sprintf("`--row %d`", l.number) }},
}

// verdictCounts says how many rows have each verdict.
func verdictCounts(lines []line) string {
	var parts []string
	for _, w := range estimate.Words {
		n := 0
		for k := range lines {
			if lines[k].word == w {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("%s: %d", w, n))
	}
	return strings.Join(parts, ", ")
}

// frontPage is the page that a reader opens first. records is the way from the page to the
// records' folder, again says where a run with other seeds disagrees.
func frontPage(s sheet, lines []line, pictures []drawing, records, again string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The truth page\n\n\"Differentiable Entropy Regularization\" prints %d tables, figures and "+
		"algorithms. This page sets each beside what was measured here: as printed, corrected, and the strongest "+
		"peer. Every figure comes from [records](%s/README.md), every verdict from an interval.\n\n", len(lines),
		records)
	b.WriteString("A doubt is settled by a command: `go run ./benchmarks/truth --row 12 --seeds 7,77,777` measures a " +
		"row with your seeds into a folder of its own, and `--against` lists what disagrees with these records.\n\n")
	if !ofPaper() {
		fmt.Fprintf(&b, "These are the seeds %s. [Another page](%s/against.md) lists every figure that disagrees with "+
			"those of the paper's seeds.\n\n", listed(seeds, ", "), records)
	}
	fmt.Fprintf(&b, "## The %d rows\n\nVerdicts about the claims: %s. ", len(lines), verdictCounts(lines))
	fmt.Fprintf(&b, "A claim is decided where p is at most %g after Holm's correction for all rows with an "+
		"interval (%d).\n\n", estimate.Level, lines[0].tested)
	p := make([]*line, len(lines))
	for k := range lines {
		p[k] = &lines[k]
	}
	b.WriteString(gridColumns.Markdown(p))
	b.WriteString("\n\"As printed, here\" follows the paper's definition; \"corrected\" is the form that " +
		"[the errata](errata.md) justify. The interval belongs to the figure that the verdict judges.\n")
	if again != "" {
		fmt.Fprintf(&b, "\n## The same with other seeds\n\nWith the seeds %s in place of the paper's, %s\nA figure "+
			"disagrees where its difference is outside its own 95 %% interval after Holm's correction over all of "+
			"them. [Another page](%s-%s/against.md) lists what ran, where and how long.\n", listed(freshSeeds, ", "),
			again, records, listed(freshSeeds, "-"))
	}
	b.WriteString(agreement(s) + "\n## Figures\n")
	for _, f := range pictures {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", f.title, f.caption)
		if f.svg == "" {
			fmt.Fprintf(&b, "\nThis figure is absent: there are no records of %s.\n", strings.Join(f.experiments, ", "))
			continue
		}
		fmt.Fprintf(&b, "\n![%s](%s)\n", f.title, f.file())
	}
	return b.String()
}

// rowPage is the page of a row. records is the way from the page to the records' folder.
func rowPage(l *line, r run, records string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Row %d: %s\n\n**Claim** (the paper's source, lines %s): %s\n\n", l.number, l.title, l.lines,
		l.claim)
	fmt.Fprintf(&b, "Figure: %s. Printed: %s. The claim needs a figure %s "+l.format+".\n\n", l.figure, l.printed,
		l.limit.Sense, l.limit.Limit)
	fmt.Fprintf(&b, "Command: `%s`. Verdict: **%s**%s.\n\n", l.command(), l.word, l.reason())
	if l.here != "" {
		fmt.Fprintf(&b, "%s\n\n", l.here)
	}
	b.WriteString(figureTable(l))
	if l.svg() != "" {
		fmt.Fprintf(&b, "\n![Row %d: %s](%s)\n", l.number, l.figure, l.picture())
	}
	if l.missing != "" {
		fmt.Fprintf(&b, "\nStill missing: %s.\n", l.missing)
	}
	fmt.Fprintf(&b, "\n## What would change our mind\n\n%s\n\n## Raw data\n\n", l.change)
	for _, name := range l.experiments {
		fmt.Fprintf(&b, "* [%s](%s/%s.md), records in [%s.jsonl](%s/%s.jsonl): %s\n", experimentOf(name).title, records,
			name, name, records, name, r.origin(name))
	}
	if len(l.experiments) == 0 {
		b.WriteString("No experiment of this harness has records of the row.\n")
	}
	b.WriteString(valueTable(l))
	return b.String()
}

// reason says what a verdict rests on.
func (l *line) reason() string {
	switch l.judged.Kind {
	case estimate.None:
		if len(l.experiments) == 0 {
			return ": no experiment measures the row"
		}
		return ": there are no records, or not enough, of " + strings.Join(l.experiments, ", ")
	case estimate.Exact:
		return ", by arithmetic"
	case estimate.Single:
		return ": one unit has no interval"
	}
	return fmt.Sprintf(", p = %.2g after Holm's correction (%s, %d units; rows tested: %d)", l.p, l.judged.Kind,
		l.judged.Units, l.tested)
}

// inWords is the row for a terminal: a line for the claim and the verdict, a line for every figure.
func (l *line) inWords() string {
	var b strings.Builder
	fmt.Fprintf(&b, "row %d, %s: %s%s\n  %-18s%s\n", l.number, l.title, l.word, l.reason(), "printed", l.printed)
	for _, f := range l.figures() {
		fmt.Fprintf(&b, "  %-18s%s", f.name, pointOf(f.e, l.format))
		if span := spanOf(f.e, l.format); span != "" {
			fmt.Fprintf(&b, " (%s)", span)
		}
		if f.of != "" {
			b.WriteString(", " + f.of)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// namedFigure is a figure of a row, its name, and what it is of.
type namedFigure struct {
	name, of string
	e        estimate.Estimate
}

// figures are the row's figures that were measured.
func (l *line) figures() []namedFigure {
	all := []namedFigure{{"as printed, here", "", l.printedHere}, {"corrected", l.form, l.better},
		{"strongest peer", l.peerName, l.beside}}
	return slices.DeleteFunc(all, func(f namedFigure) bool { return f.e.Kind == estimate.None })
}

// picture is the name of the row's picture.
func (r *row) picture() string { return fmt.Sprintf("row-%02d.svg", r.number) }

// svg is the picture of the row's figures beside what the claim asks, empty if there are none.
func (l *line) svg() string {
	var all []plot.Interval
	for _, f := range l.figures() {
		all = append(all, plot.Interval{Name: f.name, Of: f.of, Mid: f.e.Mid, Low: f.e.Low, High: f.e.High,
			Values: f.e.Values})
	}
	if len(all) == 0 {
		return ""
	}
	scale := plot.Log
	if strings.Contains(l.format, "+") {
		scale = plot.Linear // differences
	}
	return plot.Intervals(fmt.Sprintf("Row %d: %s", l.number, l.figure), l.figure, scale, all,
		plot.Limit{At: l.limit.Limit, Above: l.limit.Sense == estimate.AtLeast})
}

// figureTable is the table of a row's figures.
func figureTable(l *line) string {
	if len(l.figures()) == 0 {
		return ""
	}
	return rig.Table[namedFigure]{
		{Head: "", Text: func(f namedFigure) string {
			if f.of == "" {
				return f.name
			}
			return f.name + ": " + f.of
		}},
		{Head: "figure", Align: rig.Right, Text: func(f namedFigure) string { return pointOf(f.e, l.format) }},
		{Head: "95 % interval", Text: func(f namedFigure) string { return spanOf(f.e, l.format) }},
		{Head: "units", Align: rig.Right, Text: func(f namedFigure) string { return fmt.Sprint(f.e.Units) }},
		{Head: "interval by", Text: func(f namedFigure) string { return f.e.Kind.String() }},
	}.Markdown(l.figures())
}

// valueTable lists the values behind the figures, one a unit.
func valueTable(l *line) string {
	var b strings.Builder
	for _, f := range l.figures() {
		if len(f.e.Values) < 2 {
			continue
		}
		values := make([]string, len(f.e.Values))
		for k, v := range f.e.Values {
			values[k] = fmt.Sprintf("%.4g", v)
		}
		fmt.Fprintf(&b, "\nA value a unit, %s: %s.\n", f.name, strings.Join(values, ", "))
	}
	return b.String()
}

func experimentOf(name string) *experiment {
	for _, e := range experiments {
		if e.name == name {
			return e
		}
	}
	return nil
}

// run is what a folder's records hold of each experiment that has any.
type run map[string]*log

// runOf reads the records of all experiments, of any machine.
func runOf(folder string) (run, error) {
	r := run{}
	for _, e := range experiments {
		l := &log{path: filepath.Join(folder, e.name+".jsonl")}
		if err := l.read(); err != nil {
			return nil, err
		}
		l.whole()
		if len(l.records) > 0 {
			r[e.name] = l
		}
	}
	return r, nil
}

// sheet returns the figures.
func (r run) sheet() sheet {
	s := sheet{}
	for name, l := range r {
		s[name] = l.figures()
	}
	return s
}

// origin says where an experiment's records were measured.
func (r run) origin(experiment string) string {
	if l := r[experiment]; l != nil {
		return l.origin()
	}
	return "no records"
}

// writeTruth writes the front page, the pages of the rows, the figures and the errata.
// records is the way from the folder to that of the records; again has those of a run with other
// seeds, if there is one.
func writeTruth(r, again run, folder, records string) error {
	s := r.sheet()
	lines, pictures := linesOf(s), picturesOf(s)
	disagree := ""
	if len(again) > 0 {
		disagree = disagreements(again, r)
	}
	pages := map[string]string{"README.md": frontPage(s, lines, pictures, records, disagree),
		"errata.md": errataPage()}
	for k := range lines {
		pages[lines[k].page()] = rowPage(&lines[k], r, records)
		if svg := lines[k].svg(); svg != "" {
			pages[lines[k].picture()] = svg
		}
	}
	for _, f := range pictures {
		if f.svg != "" {
			pages[f.file()] = f.svg
		}
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, page := range pages {
		if err := rig.WritePage(filepath.Join(folder, name), page); err != nil {
			return err
		}
	}
	html, err := siteOf(lines, pages)
	if err != nil {
		return err
	}
	return rig.WritePage(filepath.Join(folder, "index.html"), html)
}
