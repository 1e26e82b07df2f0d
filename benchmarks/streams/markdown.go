package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"entropipe/benchmarks/rig"
)

// Goals of entropipe beside each peer.
const (
	goalRate   = 3.0  // frames a second, of messages and records that pass through
	goalCPU    = 10.0 // processor time of points
	goalMemory = 0.25 // share of a peer's memory
)

// engineNames are those of the page.
var engineNames = map[string]string{engineOurs: "entropipe", engineFlink: "Flink", engineSpark: "Spark",
	engineIceberg: "Iceberg Connect"}

// works are the sections of the page, in order.
var works = []struct{ name, title, what string }{
	{workMessages, "Frames that pass through", "All write partition, offset, key and the whole value of each " +
		"frame, a row each. The peers read\nnothing in it. entropipe (table `messages`) also writes timestamp and " +
		"headers, checks each frame, and has a row\nof it in table `frames`. Rows of the starts must be equal, " +
		"byte for byte."},
	{workRecords, "Small messages that pass through", "Messages of 60 KB that no engine can read, passed through " +
		"in the same way. entropipe also has a\nrow of each in table `rejects`, with the reason, the SHA-256 " +
		"and the first 64 KiB of the value."},
	{workPoints, "Every point a row", "Partition, offset, number of the point, x, y, z and intensity. Flink decodes " +
		"with arrow-vector in a table function\nin Java, Spark with pyarrow in mapInArrow. entropipe writes the " +
		"columns `frame_id` and `index` as well."},
	{workShapes, "Hulls and maxima", "Number of points, area, hull as WKB and indices of the maxima in x, y, z: a " +
		"row a frame. The UDFs of both\npeers are in Python: pyarrow, shapely, moocore. Vertices and maxima must " +
		"be equal."},
}

// intro says what all sections have in common.
const intro = `Flink 2.3.0 (SQL, file sink, mini cluster), Spark 4.2.0 (Structured Streaming, local mode), Kafka
Connect 4.3.1 (one worker) with Iceberg's sink 1.12.0, and entropipe read the same topics of one Kafka
4.3.1, in turns of random order, and write Parquet with zstd at its fastest level. All commit exactly
once: the interval of Flink's checkpoints and of Iceberg's commits is entropipe's roll age; Spark takes
a topic in two micro-batches. Row groups have at most 64 MB, virtual machines 1.5 GB of heap, and 3 GB
with frames as messages, since Flink and Spark end with OutOfMemoryError in 2 GB. Processor time is user
and system time of an engine's whole tree of processes, memory the largest sum of their proportional set
sizes; the broker's time is apart. *Further* figures leave out a start: a turn over a few frames in the
first round. Iceberg's sink has no end: its time is that until a snapshot has all rows, which come at its
interval, so that its further time is not told; its sink leaves keys out. Ratios are taken round by round.
Brackets have the ends of 95 % intervals of medians: of fewer than six rounds the least and the largest.
`

// write writes the page, and prints it.
func (r *report) write() error {
	page := r.markdown()
	fmt.Print(page)
	if r.folder == "" || len(r.journal.Records) == 0 {
		return nil
	}
	return rig.WritePage(filepath.Join(r.folder, "streams.md"), page)
}

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("# Kafka to Parquet beside Flink and Spark\n\n`go run ./benchmarks/streams render` writes this " +
		"page from the newest records of each command.\n\n")
	b.WriteString(intro)
	for _, w := range works {
		r.section(&b, w.name, w.title, w.what)
	}
	r.kills(&b)
	return b.String()
}

// killsText says what is killed and counted.
const killsText = "`go run ./benchmarks/streams kills`: frames that come at a steady rate, a topic for each engine. " +
	"The engines make hulls\nand maxima of them; Iceberg's sink keeps them whole. All processes of an engine are " +
	"killed (kill -9) and started\nagain, at the same moments after they have begun to write. Rows are counted as " +
	"the engine's readers read them; *all\nfiles* is a reader that knows neither `_spark_metadata` nor Iceberg's " +
	"snapshots. *Missing* are those that\nthe readers do not see when nothing new has been committed for three " +
	"minutes. Kafka Connect has one worker alone\n(standalone). *Behind* is the time from the last record to the " +
	"last commit."

// pair is the figures of a round: the start of the run and a whole turn.
type pair struct{ start, whole *figures }

func (p pair) rate() float64        { return float64(p.whole.Frames) / p.whole.WallS }
func (p pair) cpu() float64         { return 1e3 * p.whole.CPUS / float64(p.whole.Frames) }
func (p pair) memory() float64      { return float64(p.whole.PSS) / 1e6 }
func (p pair) brokerCPU() float64   { return 1e3 * p.whole.BrokerCPUS / float64(p.whole.Frames) }
func (p pair) frames() float64      { return float64(p.whole.Frames - p.start.Frames) }
func (p pair) furtherRate() float64 { return p.frames() / (p.whole.WallS - p.start.WallS) }
func (p pair) furtherCPU() float64  { return 1e3 * (p.whole.CPUS - p.start.CPUS) / p.frames() }

// pairs returns the pairs of an engine by round. All rounds have the first one's start.
func pairs(run []measurement, engine string) map[int]pair {
	var start *figures
	found := map[int]pair{}
	for i := range run {
		f := &run[i].Figures
		switch {
		case f.Engine != engine:
		case f.Case == startOnly:
			start = f
		case start != nil:
			found[f.Round] = pair{start, f}
		}
	}
	return found
}

// line is an engine of a section.
type line struct {
	engine       string
	mine, theirs map[int]pair // of this engine, and of ours
}

// median returns the median over rounds.
func (l line) median(of func(pair) float64) rig.Interval {
	var values []float64
	for _, p := range l.mine {
		values = append(values, of(p))
	}
	return rig.MedianOf(values)
}

// ratio returns the median of a quotient over rounds: this engine's figure over ours.
func (l line) ratio(of func(pair) float64) rig.Interval {
	var values []float64
	for round, p := range l.mine {
		if q, ok := l.theirs[round]; ok {
			values = append(values, of(p)/of(q))
		}
	}
	return rig.MedianOf(values)
}

func column(head, format string, of func(pair) float64) rig.Column[line] {
	return rig.Column[line]{Head: head, Align: rig.Right, Text: func(l line) string {
		return l.median(of).Text(format)
	}}
}

// untold stands for further times of Iceberg's sink, which has no end: its rows come at the interval
// of its commits, so that a short turn and a long one may take the same time.
const untold = "-"

// furtherColumn is the rate of what comes behind a start.
func furtherColumn(head string) rig.Column[line] {
	return rig.Column[line]{Head: head, Align: rig.Right, Text: func(l line) string {
		if l.engine == engineIceberg {
			return untold
		}
		return l.median(pair.furtherRate).Text("%.1f")
	}}
}

// seconds turns a rate around: larger is worse, as of the other figures.
func seconds(of func(pair) float64) func(pair) float64 {
	return func(p pair) float64 { return 1 / of(p) }
}

// versus are the ratios of a peer's figures to ours, with a verdict where there is a goal. Goals are
// of further frames: how much a start weighs depends on the length of a turn alone.
func (l line) versus(work string) []string {
	goal := func(i rig.Interval, format string, least float64, applies bool) string {
		if !applies {
			return i.Text(format)
		}
		return fmt.Sprintf("%s; at least %g: %s", i.Text(format), least, i.Verdict(least))
	}
	further := untold
	if l.engine != engineIceberg {
		further = goal(l.ratio(seconds(pair.furtherRate)), "%.1f", goalRate, passes(work))
	}
	return []string{
		l.ratio(seconds(pair.rate)).Text("%.1f"),
		further,
		l.ratio(pair.cpu).Text("%.1f"),
		goal(l.ratio(pair.furtherCPU), "%.1f", goalCPU, work == workPoints),
		goal(l.ratio(pair.memory), "%.1f", 1/goalMemory, true),
	}
}

func (r *report) section(b *strings.Builder, work, title, what string) {
	run := r.newest("time", work)
	ours := pairs(run, engineOurs)
	var lines []line
	for _, engine := range []string{engineOurs, engineFlink, engineSpark, engineIceberg} {
		if mine := pairs(run, engine); len(mine) > 0 {
			lines = append(lines, line{engine, mine, ours})
		}
	}
	if len(lines) == 0 {
		return
	}
	noun := "frame"
	if work == workRecords {
		noun = "record"
	}
	whole := lines[0].any().whole
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n%s. %d %ss of %.2f MB, a start %d; %d processors for an engine; an interval "+
		"of %g "+
		"s; %s.\n\n", title, what, rig.Origin(rig.StampsOf(run)), whole.Frames, noun,
		float64(whole.Bytes)/float64(whole.Frames)/1e6, lines[0].any().start.Frames, whole.Cores, whole.EveryS,
		others(run))
	b.WriteString(rig.Table[line]{
		{Head: "engine", Text: func(l line) string { return engineNames[l.engine] }},
		column(noun+"s/s", "%.1f", pair.rate), furtherColumn("further " + noun + "s/s"),
		column("processor ms a "+noun, "%.2f", pair.cpu), column("further", "%.2f", pair.furtherCPU),
		column("broker's ms", "%.2f", pair.brokerCPU), column("memory, MB", "%.0f", pair.memory),
		{Head: "rows", Align: rig.Right, Text: func(l line) string { return fmt.Sprint(l.any().whole.Rows) }},
		{Head: "MB of files", Align: rig.Right, Text: func(l line) string {
			return fmt.Sprintf("%.0f", float64(l.any().whole.FileBytes)/1e6)
		}},
	}.Markdown(lines))
	head, table := "", [][]string{}
	for _, l := range lines {
		if l.engine != engineOurs && len(ours) > 0 {
			head += " " + engineNames[l.engine] + " |"
			table = append(table, l.versus(work))
		}
	}
	if len(table) == 0 {
		b.WriteString("\nNo peer has a turn in this run.\n")
		return
	}
	b.WriteString("\n| ratio to entropipe |" + head + "\n|---|" + strings.Repeat("---|", len(table)) + "\n")
	for i, name := range []string{"time a " + noun, "time a further " + noun, "processor time", "processor time, " +
		"further",
		"memory"} {
		fmt.Fprintf(b, "| %s |", name)
		for _, ratios := range table {
			fmt.Fprintf(b, " %s |", ratios[i])
		}
		b.WriteString("\n")
	}
}

// any returns the pair of the first round that there is.
func (l line) any() pair {
	for round := 0; ; round++ {
		if p, ok := l.mine[round]; ok {
			return p
		}
	}
}

// others says what else the machine did meanwhile.
func others(run []measurement) string {
	used, time := 0.0, 0.0
	for i := range run {
		used += run[i].Figures.OthersCPUS
		time += run[i].Figures.WallS * float64(max(run[i].Cores, 1))
	}
	share := 100 * used / max(time, 1e-9)
	if share < 10 {
		return fmt.Sprintf("other programs took %.0f %% of the processors", share)
	}
	return fmt.Sprintf("**the machine was busy: other programs took %.0f %% of the processors**", share)
}

// kills writes the section of kills.
func (r *report) kills(b *strings.Builder) {
	run := r.newest("kills", "")
	if len(run) == 0 {
		return
	}
	f := run[0].Figures
	fmt.Fprintf(b, "\n## Kills\n\n%s\n\n%s. Seed %d; frames of %.2f MB; an interval of %g s; %s.\n\n", killsText,
		rig.Origin(rig.StampsOf(run)), f.Seed, float64(f.Bytes)/float64(f.Frames)/1e6, f.EveryS, others(run))
	number := func(head, format string, of func(*figures) any) rig.Column[measurement] {
		return rig.Column[measurement]{Head: head, Align: rig.Right, Text: func(m measurement) string {
			return fmt.Sprintf(format, of(&m.Figures))
		}}
	}
	b.WriteString(rig.Table[measurement]{
		{Head: "engine", Text: func(m measurement) string { return engineNames[m.Figures.Engine] }},
		number("kills", "%d", func(f *figures) any { return f.Kills }),
		number("frames", "%d", func(f *figures) any { return f.Frames }),
		number("rows", "%d", func(f *figures) any { return f.Rows }),
		number("missing", "%d", func(f *figures) any { return f.Missing }),
		number("doubled", "%d", func(f *figures) any { return f.Doubled }),
		number("doubled in all files", "%d", func(f *figures) any { return f.Unguarded }),
		number("torn files", "%d", func(f *figures) any { return f.Torn }),
		number("files", "%d", func(f *figures) any { return f.Files }),
		number("behind, s", "%.1f", func(f *figures) any { return f.BehindS }),
		number("processor s", "%.1f", func(f *figures) any { return f.CPUS }),
		number("memory, MB", "%.0f", func(f *figures) any { return float64(f.PSS) / 1e6 }),
	}.Markdown(run))
}
