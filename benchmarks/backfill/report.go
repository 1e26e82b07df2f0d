package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"entropipe/benchmarks/rig"
)

// Goals of ratios of times.
const (
	goalBroker = 1.0 // produce and run over backfill
	goalTwo    = 1.8 // one process over two
)

// write prints the page and, where results are kept, writes it and the tables of the page on
// scale.
func (r *report) write(to io.Writer) error {
	page := r.page()
	if _, err := io.WriteString(to, page+"\n## Scale\n\n"+r.scale()); err != nil || r.folder == "" {
		return err
	}
	if err := rig.WritePage(filepath.Join(r.folder, "backfill.md"), page); err != nil {
		return err
	}
	root, err := rig.Root()
	if err != nil || r.folder != filepath.Join(root, "benchmarks", "results") {
		return err
	}
	path := filepath.Join(root, "docs", "scale.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	replaced, ok := replaceBlock(string(text), r.scale())
	if !ok {
		return fmt.Errorf("%s has no lines %s and %s", path, beginMarker, endMarker)
	}
	return rig.WritePage(path, replaced)
}

// page returns the page of results.
func (r *report) page() string {
	var b strings.Builder
	b.WriteString("# Backfill\n\n`go run ./benchmarks/backfill render` writes this page from the newest records of " +
		"each command.\n")
	for _, section := range []func() string{r.speed, r.memory, r.parquet, r.spark, r.model} {
		if text := section(); text != "" {
			b.WriteString("\n" + text)
		}
	}
	return b.String()
}

// ratioLine is a line of the table of ratios.
type ratioLine struct {
	name   string
	ratios []float64
	goal   float64 // 0: none
}

var ratioTable = rig.Table[ratioLine]{
	{Head: "ratio", Text: func(l ratioLine) string { return l.name }},
	{Head: "median (95 % interval)", Text: func(l ratioLine) string { return rig.MedianOf(l.ratios).Text("%.2f") }},
	{Head: "goal", Text: func(l ratioLine) string {
		if l.goal == 0 {
			return ""
		}
		return fmt.Sprintf("at least %.1f: %s", l.goal, rig.MedianOf(l.ratios).Verdict(l.goal))
	}},
}

func wall(f *figures) float64 { return f.WallS }
func cpu(f *figures) float64  { return f.CPUS }

// speed returns the section of the ways of one core.
func (r *report) speed() string {
	run := r.newest("speed")
	if len(run) == 0 {
		return ""
	}
	lines := []ratioLine{
		{"wall time: produce, then run, over backfill", paired(run, wayBroker, wayOne, wall), goalBroker},
		{"processor time: produce and run, without the broker, over backfill",
			paired(run, wayBroker, wayOne, cpu), goalBroker},
		{"processor time: produce, run and broker over backfill", pairedOf(run, func(broker, one *figures) float64 {
			return (broker.CPUS + broker.BrokerCPUS) / one.CPUS
		}), 0},
		{"wall time: run alone, its topic filled before, over backfill",
			pairedOf(run, func(broker, one *figures) float64 {
				return broker.RunWallS / one.WallS
			}), 0},
		{"wall time, of the long archive: one process over two", paired(run, wayLong, wayTwo, wall), goalTwo},
		{"the same, with an output for each of the two: what the machine allows",
			paired(run, wayLong, wayApart, wall), 0},
		{"wall time: two processes with one output over two with two outputs",
			paired(run, wayTwo, wayApart, wall), 0},
	}
	frames := func(way string) int64 {
		return int64(rig.MedianOf(each(run, way, func(f *figures) float64 { return float64(f.Frames) })).Mid)
	}
	size := rig.MedianOf(each(run, wayOne, func(f *figures) float64 {
		return float64(f.Bytes) / float64(f.Frames) / 1e6
	}))
	rate := rig.MedianOf(each(run, wayOne, func(f *figures) float64 { return float64(f.Frames) / f.WallS }))
	return fmt.Sprintf(`## Speed

%s. %d KITTI frames of %.1f MB, hull2d and maxima3d; the long archive has %d. Each process has
GOMAXPROCS=1; the embedded broker is a process beside them and has the other processor. Ratios are taken round by round,
of %d rounds; times include starting and, of a backfill, making the plan. One process takes %s frames/s.

%s`, rig.Origin(rig.StampsOf(run)), frames(wayOne), size.Mid, frames(wayLong), len(lines[0].ratios), rate.Text("%.0f"),
		ratioTable.Markdown(lines))
}

// pairedOf returns a number of the broker's way and one process, round by round.
func pairedOf(run []measurement, of func(broker, one *figures) float64) (all []float64) {
	for i := range run {
		for k := range run {
			broker, one := &run[i].Figures, &run[k].Figures
			if broker.Way == wayBroker && one.Way == wayOne && broker.Round == one.Round {
				all = append(all, of(broker, one))
			}
		}
	}
	return all
}

// each returns a number of a way in each round.
func each(run []measurement, way string, of func(*figures) float64) (all []float64) {
	for i := range run {
		if f := &run[i].Figures; f.Way == way {
			all = append(all, of(f))
		}
	}
	return all
}

var memoryTable = rig.Table[measurement]{
	{Head: "archive", Text: func(m measurement) string { return titleOf(m.Figures.Case) }},
	rig.Number("rows of frames or sequences", "%.0f", rig.Right, func(m measurement) (float64, bool) {
		return float64(m.Figures.Rows), true
	}),
	rig.Number("peak, MB", "%.0f", rig.Right,
		func(m measurement) (float64, bool) { return float64(m.Figures.MaxRSS) / 1e6, true }),
	{Head: "goal", Text: func(m measurement) string {
		return fmt.Sprintf("at most %.0f MB: %s", goalMemory/1e6,
			map[bool]string{true: "met", false: "not met"}[m.Figures.MaxRSS <= goalMemory])
	}},
	{Head: "commit", Text: func(m measurement) string { return m.Revision() }},
}

func titleOf(name string) string {
	for _, of := range memoryCases {
		if of.name == name {
			return of.title
		}
	}
	return name
}

// memory returns the section of peaks.
func (r *report) memory() string {
	all := r.newestCases("memory")
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("## Memory\n\nPeak resident set of a process that makes the plan and does all lanes, %d at a "+
		"time.\n\n%s",
		all[0].Figures.Jobs, memoryTable.Markdown(all))
}

// parquet returns the section of points of old outputs.
func (r *report) parquet() string {
	run := r.newest("parquet")
	if len(run) == 0 {
		return ""
	}
	f := run[0].Figures
	text := fmt.Sprintf("## Points of an old output\n\n%s. %d KITTI frames, %d points, as table points of an old "+
		"output, read\n"+
		"with GOMAXPROCS=1. A decoded point has %d bytes. Before the turns the hulls, maxima and triangles of a "+
		"small archive\n"+
		"are compared with those that are computed from its points: no row differs.\n\n",
		rig.Origin(rig.StampsOf(run)), f.Frames, f.Points, pointBytes)
	text += "| operators | MB/s of decoded points a core | goal |\n|---|---|---|\n"
	for _, way := range parquetWays {
		rates := rig.MedianOf(each(run, way, func(f *figures) float64 { return f.pointRate() / 1e6 }))
		goal := fmt.Sprintf("at least %.0f: %s", goalParquet/1e6, rates.Verdict(goalParquet/1e6))
		text += fmt.Sprintf("| %s | %s | %s |\n", way, rates.Text("%.0f"), goal)
	}
	return text
}

// newestModel returns the last model; nil: there is none.
func (r *report) newestModel() (*model, measurement) {
	run := r.newest("model")
	if len(run) == 0 {
		return nil, measurement{}
	}
	last := run[len(run)-1]
	return last.Figures.Model, last
}

var predictionTable = rig.Table[prediction]{
	{Head: "process", Text: func(p prediction) string { return p.Phase }},
	{Head: "cost", Text: func(p prediction) string { return p.Cost }},
	{Head: "predicted", Align: rig.Right, Text: func(p prediction) string { return number(p.Predicted) }},
	{Head: "measured", Align: rig.Right, Text: func(p prediction) string { return number(p.Measured) }},
	{Head: "ratio", Align: rig.Right, Text: func(p prediction) string { return fmt.Sprintf("%.2f", p.Ratio()) }},
}

// number returns a number with three digits that count.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) && v < 1e5:
		return fmt.Sprintf("%.0f", v)
	case v < 100:
		return fmt.Sprintf("%.3g", v)
	case v < 1e5:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// model returns the section of the model.
func (r *report) model() string {
	m, record := r.newestModel()
	if m == nil {
		return ""
	}
	worst, off := m.worst()
	verdict := map[bool]string{true: "met", false: "not met"}[off <= goalModel]
	return fmt.Sprintf("## Model\n\n%s. Constants are fitted to archives of at most %.0f frames, %.0f lanes and %.0f "+
		"commits,\n"+
		"and predict four times as many. Calls of the system are counted by strace; processor times are medians "+
		"without it.\n"+
		"Costs that are too small to grow are left out. The farthest prediction is %s of process %s: %.0f %% off; "+
		"goal: at most\n"+
		"%.0f %%: %s. Up to 10^9 frames: [scale](../../docs/scale.md).\n\n%s",
		rig.Origin([]rig.Stamp{record.Stamp}), m.One.Frames, m.One.Lanes, m.One.Commits, worst.Cost,
		worst.Phase, 100*off,
		100*goalModel, verdict, predictionTable.Markdown(m.predictions()))
}
