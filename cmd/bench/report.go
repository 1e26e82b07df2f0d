package bench

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"entropipe/algos/vector"
	"entropipe/cmd/command"
)

// benchReport is what bench prints.
type benchReport struct {
	Version    string     `json:"version"`
	CPU        string     `json:"cpu"`
	Processors int        `json:"processors"`
	Level      string     `json:"level"`
	Seed       uint64     `json:"seed"`
	Rows       []benchRow `json:"rows"`
}

// benchRow is a figure. Times are nanoseconds a point; the share is the
// floor's time over the least, 1 where an operator takes as long as one read.
type benchRow struct {
	Op           string  `json:"op"`
	Distribution string  `json:"distribution"`
	Size         int     `json:"size,omitempty"` // absent: KITTI's scans as they are
	Clouds       int     `json:"clouds"`
	Points       int     `json:"points"` // total of all clouds
	Type         string  `json:"type"`
	Workers      int     `json:"workers"`
	Median       float64 `json:"median_ns"`
	Least        float64 `json:"min_ns"`
	Floor        float64 `json:"floor_ns"`
	FloorShare   float64 `json:"floor_share"`
	Rounds       int     `json:"rounds"`
	Found        int     `json:"found"` // indices or triangles, of all clouds
}

func newBenchReport(level vector.Level, seed uint64) *benchReport {
	return &benchReport{Version: command.VersionString(), CPU: cpuModel(), Processors: runtime.GOMAXPROCS(0),
		Level: level.String(), Seed: seed, Rows: []benchRow{}}
}

// cpuModel returns the processor's name, or its kind where the system does not
// say.
func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // not there: no such line
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// String is a table an operator, type and number of workers: a line a
// distribution, a column a size.
func (r *benchReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d processors, level %s, entropipe %s, seed %d\n", r.CPU, r.Processors,
		r.Level, r.Version, r.Seed)
	b.WriteString("ns/point: median (least, its share of one read of the coordinates)\n")
	for rows := r.Rows; len(rows) > 0; {
		op := rows[0].Op
		n := slices.IndexFunc(rows, func(row benchRow) bool { return row.Op != op })
		if n < 0 {
			n = len(rows)
		}
		r.tables(&b, rows[:n])
		rows = rows[n:]
	}
	return b.String()
}

// tables writes the tables of one operator.
func (r *benchReport) tables(b *strings.Builder, rows []benchRow) {
	type heading struct {
		kind    string
		workers int
	}
	var headings []heading
	for _, row := range rows {
		if h := (heading{row.Type, row.Workers}); !slices.Contains(headings, h) {
			headings = append(headings, h)
		}
	}
	slices.SortFunc(headings, func(a, b heading) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.workers, b.workers))
	})
	for _, h := range headings {
		plural := "s"
		if h.workers == 1 {
			plural = ""
		}
		fmt.Fprintf(b, "\n%s, %s, %d worker%s\n", rows[0].Op, h.kind, h.workers, plural)
		mine := slices.DeleteFunc(slices.Clone(rows),
			func(row benchRow) bool { return row.Type != h.kind || row.Workers != h.workers })
		writeTable(b, mine)
	}
}

// writeTable writes lines of distributions and columns of sizes, in the order
// in which they come.
func writeTable(b *strings.Builder, rows []benchRow) {
	var dists []string
	var sizes []int
	cells := map[string]string{}
	for _, row := range rows {
		if !slices.Contains(dists, row.Distribution) {
			dists = append(dists, row.Distribution)
		}
		if !slices.Contains(sizes, row.Size) {
			sizes = append(sizes, row.Size)
		}
		cells[fmt.Sprint(row.Distribution, row.Size)] = fmt.Sprintf("%s (%s, %.0f%%)", digits3(row.Median),
			digits3(row.Least), 100*row.FloorShare)
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, size := range sizes {
		if size == 0 {
			fmt.Fprint(w, "\tscans")
			continue
		}
		fmt.Fprintf(w, "\t%v", pointCount(size))
	}
	fmt.Fprintln(w, "\t")
	for _, dist := range dists {
		fmt.Fprint(w, dist)
		for _, size := range sizes {
			fmt.Fprint(w, "\t"+cells[fmt.Sprint(dist, size)])
		}
		fmt.Fprintln(w, "\t")
	}
	w.Flush() // into memory
}

// digits3 writes v with three digits, never as a power: 0.917, 27.4, 468.
func digits3(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
