package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
)

// measurement is one turn of an entry.
type measurement struct {
	Run    string `json:"run"` // when the command began
	Form   string `json:"form"`
	Title  string `json:"title"`
	Real   bool   `json:"real,omitempty"`
	Task   string `json:"task"`
	Reader string `json:"reader,omitempty"` // reader in Python; empty: ours
	How    string `json:"how,omitempty"`
	Python string `json:"python,omitempty"` // versions of its packages
	Turn   int    `json:"turn"`
	Loops  int    `json:"loops"`
	Goal   goal   `json:"goal"`
	Bound  bool   `json:"bound"` // the broker has another core

	Bytes  int64 `json:"bytes"`  // the input's files
	Frames int64 `json:"frames"` // in the input
	Points int64 `json:"points"`

	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"` // the whole process
	MaxRSS     int64   `json:"max_rss"`     // largest resident set, bytes
}

func (m *measurement) per(amount int64) float64 {
	return float64(amount) * float64(m.Loops) / max(m.Seconds, sleepless)
}

func (m *measurement) bytesPerSecond() float64 { return m.per(m.Bytes) }

func (m *measurement) framesPerSecond() float64 { return m.per(m.Frames) }

// reader returns the name of the reader.
func (m *measurement) reader() string {
	if m.Reader == "" {
		return "ours"
	}
	return m.Reader
}

// report is the file of all records, and the page of the newest ones.
type report struct {
	rows *rig.Journal[measurement]
	page string // path of the page; empty: nothing is kept
}

// openReport returns the report of a folder; empty: nothing is kept.
func openReport(folder string) (*report, error) {
	r, path := &report{}, ""
	if folder != "" {
		path, r.page = filepath.Join(folder, "formats.jsonl"), filepath.Join(folder, "formats.md")
	}
	rows, err := rig.ReadJournal[measurement]("formats", path)
	r.rows = rows
	return r, err
}

func (r *report) add(m measurement) error { return r.rows.Add(m) }

// write prints the page, and replaces the file.
func (r *report) write(out io.Writer) error {
	page := r.markdown()
	if _, err := io.WriteString(out, page); err != nil || r.page == "" {
		return err
	}
	return rig.WritePage(r.page, page)
}

// row is what one task showed of an input, in the newest run that measured it.
type row struct {
	first  measurement // ours, first turn
	ours   []measurement
	peers  map[string][]measurement // by reader
	best   string                   // fastest reader in Python; empty: none was measured
	stamps []rig.Stamp
}

// rowsOf returns the rows of a task, in the order of the forms.
func (r *report) rowsOf(task string) []*row {
	newest := map[string]string{}
	key := func(m *measurement) string { return fmt.Sprint(m.Form, m.Real) }
	for i := range r.rows.Records {
		if m := &r.rows.Records[i].Figures; m.Task == task {
			newest[key(m)] = max(newest[key(m)], m.Run)
		}
	}
	found := map[string]*row{}
	var rows []*row
	for i := range r.rows.Records {
		m := r.rows.Records[i].Figures
		if m.Task != task || m.Run != newest[key(&m)] {
			continue
		}
		w := found[key(&m)]
		if w == nil {
			w = &row{first: m, peers: map[string][]measurement{}}
			found[key(&m)] = w
			rows = append(rows, w)
		}
		w.stamps = append(w.stamps, r.rows.Records[i].Stamp)
		if m.Reader == "" {
			w.ours = append(w.ours, m)
		} else {
			w.peers[m.Reader] = append(w.peers[m.Reader], m)
		}
	}
	for _, w := range rows {
		w.best = w.fastest()
	}
	slices.SortStableFunc(rows, func(a, b *row) int { return place(&a.first) - place(&b.first) })
	return rows
}

// place orders rows as the forms are, synthetic inputs before real ones.
func place(m *measurement) int {
	at := 2 * (1 + slices.IndexFunc(forms, func(f *form) bool { return f.name == m.Form }))
	if m.Real {
		at++
	}
	return at
}

// fastest returns the reader in Python with the highest median rate.
func (w *row) fastest() (best string) {
	most := 0.0
	for name, turns := range w.peers {
		if rate := rig.Median(rates(turns)); rate > most || rate == most && name < best {
			best, most = name, rate
		}
	}
	return best
}

func rates(turns []measurement) []float64 {
	all := make([]float64, len(turns))
	for i := range turns {
		all[i] = turns[i].framesPerSecond()
	}
	return all
}

// megabytes, frames and points are rates of ours, a second.
func (w *row) megabytes() rig.Interval {
	return scaled(w.ours, func(m *measurement) int64 { return m.Bytes }, 1e-6)
}
func (w *row) frames() rig.Interval {
	return scaled(w.ours, func(m *measurement) int64 { return m.Frames }, 1)
}
func (w *row) points() rig.Interval {
	return scaled(w.ours, func(m *measurement) int64 { return m.Points }, 1e-6)
}

func scaled(turns []measurement, amount func(*measurement) int64, unit float64) rig.Interval {
	all := make([]float64, len(turns))
	for i := range turns {
		all[i] = unit * turns[i].per(amount(&turns[i]))
	}
	return rig.MedianOf(all)
}

// ratio returns our rate over that of the fastest reader in Python, turn by turn.
func (w *row) ratio() (rig.Interval, bool) {
	theirs := w.peers[w.best]
	n := min(len(theirs), len(w.ours))
	all := make([]float64, n)
	for i := range all {
		all[i] = w.ours[i].framesPerSecond() / theirs[i].framesPerSecond()
	}
	return rig.MedianOf(all), n > 0
}

// rateVerdict returns goal and verdict of the rate; empty without a goal.
func (w *row) rateVerdict() string {
	switch g := w.first.Goal; {
	case g.Megabytes > 0:
		return fmt.Sprintf("%s (%.0f MB/s)", w.megabytes().Verdict(g.Megabytes), g.Megabytes)
	case g.Frames > 0:
		return fmt.Sprintf("%s (%.0f frames/s)", w.frames().Verdict(g.Frames), g.Frames)
	}
	return ""
}

func (w *row) ratioVerdict() string {
	i, ok := w.ratio()
	if !ok {
		return ""
	}
	return i.Verdict(goalRatio)
}

// memory returns the largest resident set of all turns of ours, and its verdict.
func (w *row) memory() (most int64, met string) {
	for i := range w.ours {
		most = max(most, w.ours[i].MaxRSS)
	}
	return most, map[bool]string{true: "met", false: "not met"}[float64(most) < goalMemory]
}

// title names the input.
func (w *row) title() string {
	if w.first.Real {
		return w.first.Title + ", real files"
	}
	return w.first.Title
}

// markdown returns the page.
func (r *report) markdown() string {
	var b strings.Builder
	read, kafka, long := r.rowsOf(taskRead), r.rowsOf(taskKafka), r.rowsOf(taskLong)
	var stamps []rig.Stamp
	var all []measurement
	bound := true
	for _, w := range slices.Concat(read, kafka, long) {
		stamps = append(stamps, w.stamps...)
		all = append(all, w.ours...)
		bound = bound && w.first.Bound
	}
	where := "the broker has another core"
	if !bound {
		where = "the broker shares this core"
	}
	fmt.Fprintf(&b, "# Sensor formats beside Python's readers\n\n`go run ./benchmarks/formats`, %s.\n\n",
		rig.Origin(stamps))
	fmt.Fprintf(&b, preface, where)
	if versions := rig.Each(all, func(m measurement) string { return m.Python }); versions != "" {
		fmt.Fprintf(&b, "Python's packages: %s.\n\n", versions)
	}
	b.WriteString("## Files to columns\n\n" + rateTable.Markdown(read))
	b.WriteString("\n## Files to messages in Kafka\n\n" + rateTable.Markdown(kafka))
	b.WriteString("\n## Memory over long inputs\n\n" + longTable(kafka).Markdown(long))
	b.WriteString("\n## Readers in Python\n\n" + peerTable.Markdown(peersOf(read)))
	return b.String()
}

const preface = `All processes that are measured run on one core, one after the other, in turns; %s. Files lie in the
page cache. MB are 10^6 bytes of files as they lie on the disk, compressed where the format is. Figures are medians of
turns, in brackets the interval in which the median lies with 95 %% (with fewer than six turns: from the least to the
most). The ratio is ours over the fastest reader in Python, turn by turn. A verdict is "met" if the whole interval
reaches the goal, "not met" if none of it does, else "undecided".

Reading counts from the first file to the last column, on both sides without starting the process. Ours fills every
column that the format has, Python x, y, z and intensity. Before the first turn all readers must find as many frames
and points and the same sums of magnitudes. Sending counts, for ours, the whole process from its start to its end, and
for Python from its first file to the last acknowledgement: the fastest of its readers, Arrow streams of pyarrow, and
confluent-kafka. Each turn sends to a new embedded broker. Memory is the largest resident set of the process.

`

var rateTable = rig.Table[*row]{
	{Head: "input", Text: (*row).title},
	{Head: "frames × MB", Align: rig.Right, Text: func(w *row) string {
		return fmt.Sprintf("%d × %.2f", w.first.Frames, float64(w.first.Bytes)/float64(w.first.Frames)/1e6)
	}},
	{Head: "MB/s", Align: rig.Right, Text: func(w *row) string { return w.megabytes().Text("%.0f") }},
	{Head: "frames/s", Align: rig.Right, Text: func(w *row) string { return fmt.Sprintf("%.1f", w.frames().Mid) }},
	{Head: "10^6 points/s", Align: rig.Right, Text: func(w *row) string { return fmt.Sprintf("%.1f", w.points().Mid) }},
	{Head: "rate", Text: (*row).rateVerdict},
	{Head: "fastest in Python", Text: func(w *row) string { return w.best }},
	{Head: "its MB/s", Align: rig.Right, Text: func(w *row) string {
		if w.best == "" {
			return ""
		}
		return scaled(w.peers[w.best], func(m *measurement) int64 { return m.Bytes }, 1e-6).Text("%.0f")
	}},
	{Head: "ratio", Align: rig.Right, Text: func(w *row) string {
		i, ok := w.ratio()
		if !ok {
			return ""
		}
		return i.Text("%.2f")
	}},
	{Head: "10 times", Text: (*row).ratioVerdict},
	{Head: "peak MB", Align: rig.Right, Text: func(w *row) string {
		most, _ := w.memory()
		return fmt.Sprintf("%.0f", float64(most)/1e6)
	}},
	{Head: "below 300 MB", Text: func(w *row) string { _, met := w.memory(); return met }},
}

// longTable compares memory over long inputs with that of the turns.
func longTable(kafka []*row) rig.Table[*row] {
	short := map[string]*row{}
	for _, w := range kafka {
		if !w.first.Real {
			short[w.first.Form] = w
		}
	}
	return rig.Table[*row]{
		{Head: "input", Text: (*row).title},
		{Head: "GB", Align: rig.Right, Text: func(w *row) string {
			return fmt.Sprintf("%.2f", float64(w.first.Bytes)/1e9)
		}},
		{Head: "frames", Align: rig.Right, Text: func(w *row) string { return fmt.Sprint(w.first.Frames) }},
		{Head: "peak MB", Align: rig.Right, Text: func(w *row) string {
			most, _ := w.memory()
			return fmt.Sprintf("%.0f", float64(most)/1e6)
		}},
		{Head: "with the short input", Align: rig.Right, Text: func(w *row) string {
			s := short[w.first.Form]
			if s == nil {
				return ""
			}
			most, _ := s.memory()
			return fmt.Sprintf("%.0f MB, %.2f GB", float64(most)/1e6, float64(s.first.Bytes)/1e9)
		}},
		{Head: "below 300 MB", Text: func(w *row) string { _, met := w.memory(); return met }},
	}
}

// peerRow is a reader in Python over an input.
type peerRow struct {
	row   *row
	name  string
	turns []measurement
}

func peersOf(rows []*row) (all []peerRow) {
	for _, w := range rows {
		from := len(all)
		for name, turns := range w.peers {
			all = append(all, peerRow{w, name, turns})
		}
		slices.SortFunc(all[from:], func(a, b peerRow) int { return strings.Compare(a.name, b.name) })
	}
	return all
}

var peerTable = rig.Table[peerRow]{
	{Head: "input", Text: func(p peerRow) string { return p.row.title() }},
	{Head: "reader", Text: func(p peerRow) string { return p.name }},
	{Head: "what it does", Text: func(p peerRow) string { return p.turns[0].How }},
	{Head: "MB/s", Align: rig.Right, Text: func(p peerRow) string {
		return scaled(p.turns, func(m *measurement) int64 { return m.Bytes }, 1e-6).Text("%.0f")
	}},
	{Head: "peak MB", Align: rig.Right, Text: func(p peerRow) string {
		most := int64(0)
		for i := range p.turns {
			most = max(most, p.turns[i].MaxRSS)
		}
		return fmt.Sprintf("%.0f", float64(most)/1e6)
	}},
}
