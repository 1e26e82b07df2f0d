package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"entropipe/benchmarks/rig"
)

// reportCmd writes results/e2e.md: the newest run of every command and broker.
type reportCmd struct{}

// Run is the subcommand.
func (c *reportCmd) Run(e *env) error {
	folder, err := rig.ResultsFolder(e.flags.Results, rig.FullRun)
	if err != nil {
		return err
	}
	page, err := report(folder)
	if err != nil {
		return err
	}
	return rig.WritePage(filepath.Join(folder, "e2e.md"), page)
}

// figures are the fields of a record that the page needs, of any command.
type figures struct {
	What            string  `json:"what"`
	Broker          string  `json:"broker"`
	Ops             string  `json:"ops"`
	Round           int     `json:"round"`
	Frames          float64 `json:"frames"`
	Seconds         float64 `json:"seconds"`
	StartUp         float64 `json:"start_up_seconds"`
	CPUSeconds      float64 `json:"cpu_seconds"`
	FetchSeconds    float64 `json:"fetch_seconds"`
	ValueBytes      float64 `json:"value_bytes"`
	FramesPerSecond float64 `json:"frames_per_second"`
	MaxRSS          float64 `json:"max_rss"`
	Growth          float64 `json:"growth"`
	WholeSeconds    float64 `json:"whole_seconds"`
	WholeCPUSeconds float64 `json:"whole_cpu_seconds"`
	WholeMaxRSS     float64 `json:"whole_max_rss"`
	Sequence        string  `json:"sequence"`

	LM           string  `json:"lm"`
	Task         string  `json:"task"`
	Sequences    float64 `json:"sequences"`
	Tokens       float64 `json:"tokens"`
	Pack         int     `json:"pack"`
	AloneSeconds float64 `json:"alone_seconds"`
	Padding      float64 `json:"padding_share"`
}

type measurement = rig.Record[figures]

// outcome is a line of the page: what one run showed.
type outcome struct {
	measured, broker, result string
	run                      []measurement
}

var outcomes = rig.Table[outcome]{
	{Head: "measured", Text: func(o outcome) string { return o.measured }},
	{Head: "broker", Text: func(o outcome) string { return o.broker }},
	{Head: "result", Text: func(o outcome) string { return o.result }},
	{Head: "rounds", Align: rig.Right, Text: func(o outcome) string { return fmt.Sprint(len(o.run)) }},
	{Head: "commit", Text: func(o outcome) string { return rig.Each(rig.StampsOf(o.run), rig.Stamp.Revision) }},
	{Head: "date", Text: func(o outcome) string { return rig.Each(rig.StampsOf(o.run), rig.Stamp.Date) }},
	{Head: "CPU", Text: func(o outcome) string { return rig.Each(rig.StampsOf(o.run), rig.Stamp.Machine) }},
}

// report returns the page.
func report(folder string) (string, error) {
	var all []outcome
	for _, part := range []struct {
		name  string
		lines func([]measurement) []outcome
	}{
		{"throughput", throughputLines}, {"chunks", chunkLines}, {"drawings", drawingLines},
		{"tokens", tokenLines},
		{"memory", memoryLines}, {"correctness", correctnessLines},
	} {
		j, err := rig.ReadJournal[figures]("e2e "+part.name, filepath.Join(folder, part.name+".jsonl"))
		if err != nil {
			return "", err
		}
		all = append(all, part.lines(j.Records)...)
	}
	return `# Kafka to committed Parquet

` + "`go run ./benchmarks/e2e report`" + ` writes this page from the newest run of each command
(` + "`throughput`, `chunks`, `drawings`, `tokens`, " +
		"`memory`, `correctness`" + `) and broker. Figures are medians of rounds.

A share is our rate over that of the raw fetch loop, or of the model alone, which takes turns with ours in the same run;
a net share leaves out the time of starting and ending. The Python pipeline is confluent-kafka, pyarrow, SciPy and
moocore on the same topic; its rate counts from its first message, or, in records without that rate, from its start. The
embedded broker shares the cores and reads its log more slowly than the pipeline computes, so its raw loop waits for the
broker: a real Kafka is the harder measure.

` + outcomes.Markdown(all), nil
}

// newest returns the newest run of records that is accepts.
func newest(records []measurement, is func(figures) bool) []measurement {
	return rig.LastRun(records, func(f figures) (int, bool) { return f.Round, is(f) })
}

// medianOf returns the median of a figure over the rounds of a run.
func medianOf(run []measurement, get func(figures) float64) float64 {
	values := make([]float64, len(run))
	for i := range run {
		values[i] = get(run[i].Figures)
	}
	return rig.Median(values)
}

func framesPerSecond(f figures) float64 { return f.Frames / f.Seconds }

var brokers = []string{rig.Kafka, rig.Embedded}

func throughputLines(records []measurement) (all []outcome) {
	of := func(broker, what string) []measurement {
		return newest(records, func(f figures) bool { return f.Broker == broker && f.What == what })
	}
	for _, broker := range brokers {
		if run := of(broker, "share"); len(run) > 0 {
			ours := medianOf(run, func(f figures) float64 { return f.ValueBytes / f.Seconds })
			net := medianOf(run, func(f figures) float64 { return f.ValueBytes / max(f.Seconds-f.StartUp, 1e-3) })
			raw := medianOf(run, func(f figures) float64 { return f.ValueBytes / f.FetchSeconds })
			result := fmt.Sprintf("%.0f frames/s, %.0f MB/s; raw fetch %.0f MB/s; share %.2f (net %.2f)",
				medianOf(run, framesPerSecond), ours/1e6, raw/1e6, ours/raw, net/raw)
			all = append(all, outcome{"KITTI frames, " + run[0].Figures.Ops, broker, result, run})
		}
	}
	for _, broker := range brokers {
		if run := of(broker, "delaunay"); len(run) > 0 {
			cores := medianOf(run, func(f figures) float64 { return f.CPUSeconds / f.Frames })
			result := fmt.Sprintf("%.1f frames/s, %.3f core-seconds a frame", medianOf(run, framesPerSecond), cores)
			all = append(all, outcome{"KITTI frames, " + run[0].Figures.Ops, broker, result, run})
		}
	}
	for _, broker := range brokers {
		all = append(all, pythonLines(records, broker)...)
	}
	return all
}

// pythonLines compares the newest runs of the Python pipeline with ours of the
// same command, which stands before it in the file.
func pythonLines(records []measurement, broker string) (all []outcome) {
	for _, of := range []struct{ what, ops string }{{"share", "hull,maxima"}, {"delaunay", "hull,maxima,delaunay"}} {
		for i := len(records) - 1; i >= 0; i-- {
			f := records[i].Figures
			if f.What != "python" || f.Broker != broker || f.Ops != of.ops {
				continue
			}
			ours := newest(records[:i], func(f figures) bool { return f.Broker == broker && f.What == of.what })
			theirs := f.FramesPerSecond
			if theirs == 0 {
				theirs = framesPerSecond(f)
			}
			rate := medianOf(ours, framesPerSecond)
			all = append(all, outcome{"against the Python pipeline, " + of.ops, broker,
				fmt.Sprintf("%.1f times: %.1f frames/s beside %.2f", rate/theirs, rate, theirs), ours})
			break
		}
	}
	return all
}

func drawingLines(records []measurement) (all []outcome) {
	for _, broker := range brokers {
		if run := newest(records, func(f figures) bool { return f.Broker == broker }); len(run) > 0 {
			result := fmt.Sprintf("%.0f drawings/s", medianOf(run, framesPerSecond))
			all = append(all, outcome{"QuickDraw drawings, " + run[0].Figures.Ops, broker, result, run})
		}
	}
	return all
}

// tokenLines has a line for every model, task, broker and size of messages.
func tokenLines(records []measurement) (all []outcome) {
	name := func(f figures) string {
		return fmt.Sprintf("%s %s, %.0f sequences of %.0f tokens, %d a message",
			f.LM, f.Task, f.Sequences, f.Tokens/f.Sequences, f.Pack)
	}
	seen := map[string]bool{}
	for _, r := range records {
		measured, broker := name(r.Figures), r.Figures.Broker
		if seen[measured+broker] {
			continue
		}
		seen[measured+broker] = true
		run := newest(records, func(f figures) bool { return f.Broker == broker && name(f) == measured })
		rate := func(seconds func(figures) float64) float64 {
			return medianOf(run, func(f figures) float64 { return f.Tokens / seconds(f) })
		}
		ours := rate(func(f figures) float64 { return f.Seconds })
		alone := rate(func(f figures) float64 { return f.AloneSeconds })
		net := rate(func(f figures) float64 { return f.Seconds - f.StartUp })
		padding, rss := 0.0, 0.0
		for _, m := range run {
			padding, rss = max(padding, m.Figures.Padding), max(rss, m.Figures.MaxRSS)
		}
		sequences := medianOf(run, func(f figures) float64 { return f.Sequences / f.Seconds })
		result := fmt.Sprintf("%.0f sequences/s, %.0f tokens/s; the model alone %.0f tokens/s; share %.2f (net %.2f); ",
			sequences, ours, alone, ours/alone, net/alone)
		result += fmt.Sprintf("padding %.1f %%; peak %.0f MB resident", 100*padding, rss/1e6)
		all = append(all, outcome{measured, broker, result, run})
	}
	return all
}

func memoryLines(records []measurement) (all []outcome) {
	for _, broker := range brokers {
		peak := func(f figures) bool { return f.Broker == broker && f.What == "peak" }
		if run := newest(records, peak); len(run) > 0 {
			f := run[len(run)-1].Figures
			all = append(all, outcome{fmt.Sprintf("memory over %.0f KITTI frames, %s", f.Frames, f.Ops), broker,
				fmt.Sprintf("peak %.0f MB resident, %+.1f MB from frame 1,000 on", f.MaxRSS/1e6, f.Growth/1e6),
				run[len(run)-1:]})
		}
	}
	return all
}

// correctnessLines names the folders that a broker's newest run has processed.
// A command that fails leaves no record of its checks, so the checks are the
// command's status, not a figure.
func correctnessLines(records []measurement) (all []outcome) {
	for _, broker := range brokers {
		latest := map[string]measurement{}
		var names []string
		for _, r := range records {
			if r.Figures.Broker != broker {
				continue
			}
			if _, ok := latest[r.Figures.Sequence]; !ok {
				names = append(names, r.Figures.Sequence)
			}
			latest[r.Figures.Sequence] = r
		}
		if len(names) == 0 {
			continue
		}
		o := outcome{measured: "rows counted and outputs verified, " + opsDelaunay, broker: broker}
		var parts []string
		for _, name := range names {
			o.run = append(o.run, latest[name])
			parts = append(parts, fmt.Sprintf("%.0f frames of %s", latest[name].Figures.Frames, name))
		}
		o.result = strings.Join(parts, ", ")
		all = append(all, o)
	}
	return all
}
