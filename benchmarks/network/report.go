package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
)

// report is the file of the last run's rows, and the page that shows them.
type report struct {
	torch string // version of PyTorch
	rows  rig.Journal[row]
	page  string // path of the page; empty: nothing is kept
}

// row is a case with one number of threads.
type row struct {
	Torch   string           `json:"torch"` // version of PyTorch
	Case    string           `json:"case"`
	Size    string           `json:"size"`
	Threads int              `json:"threads"`
	Work    float64          `json:"operations"` // floating-point, the least that the case takes
	Median  map[string]int64 `json:"median_ns"`  // by entry
	Least   map[string]int64 `json:"least_ns"`
}

// newReport returns a report that keeps its rows in folder; empty: nowhere.
func newReport(folder string) *report {
	r := &report{rows: rig.Journal[row]{Bench: "network"}}
	if folder != "" {
		r.rows.Path, r.page = filepath.Join(folder, "network.jsonl"), filepath.Join(folder, "network.md")
	}
	return r
}

// add appends a row with the times of all runs, by entry.
func (r *report) add(w row, ns map[string][]int64) {
	w.Torch, w.Median, w.Least = r.torch, map[string]int64{}, map[string]int64{}
	for name, all := range ns {
		w.Median[name], w.Least[name] = median(all), slices.Min(all)
	}
	r.rows.Records = append(r.rows.Records, rig.Record[row]{Stamp: rig.Here(r.rows.Bench), Figures: w})
}

// read reads the rows of an earlier run.
func (r *report) read() error {
	rows, err := rig.ReadJournal[row](r.rows.Bench, r.rows.Path)
	if err == nil {
		r.rows = *rows
	}
	return err
}

func median(ns []int64) int64 {
	s := slices.Sorted(slices.Values(ns))
	return s[len(s)/2]
}

// fastest returns the form of PyTorch with the least median.
func (w *row) fastest() string {
	best := ""
	for name, ns := range w.Median {
		if name != ours && (best == "" || ns < w.Median[best]) {
			best = name
		}
	}
	return best
}

// rate returns the operations of the shortest run over its time, in GFLOP/s.
func (w *row) rate() float64 { return w.Work / float64(w.Least[ours]) }

// write prints the page, and replaces the page and the rows of the run before.
func (r *report) write(out io.Writer) error {
	page := r.markdown()
	if _, err := io.WriteString(out, page); err != nil || r.page == "" {
		return err
	}
	if err := r.rows.Save(); err != nil {
		return err
	}
	return rig.WritePage(r.page, page)
}

// markdown returns the page: medians in milliseconds, the shortest in brackets.
func (r *report) markdown() string {
	var b strings.Builder
	var rows []*row
	for i := range r.rows.Records {
		rows = append(rows, &r.rows.Records[i].Figures)
	}
	fmt.Fprintf(&b, "# EntropyNet beside PyTorch %s\n\n", rig.Each(rows, func(w *row) string { return w.Torch }))
	fmt.Fprintf(&b, "`go run ./benchmarks/network`, %s. Median milliseconds of turns that took turns (shortest in "+
		"brackets); the ratio is ours over the fastest form of PyTorch, by medians and by the shortest. Both sides "+
		"compute the same displacements and the same F, which the run checks. The rate is that of the least number "+
		"of operations; its share is of the product's rate in the same run.\n\n",
		rig.Origin(r.rows.Stamps()))
	b.WriteString(columns(rows).Markdown(rows))
	return b.String()
}

// columns returns the table's columns: one for every form that a row has.
func columns(rows []*row) rig.Table[*row] {
	var forms []string
	product := map[int]float64{} // rate of the product by the number of threads
	for _, w := range rows {
		for name := range w.Median {
			if name != ours && !slices.Contains(forms, name) {
				forms = append(forms, name)
			}
		}
		if w.Case == "product" {
			product[w.Threads] = w.rate()
		}
	}
	slices.Sort(forms)
	table := rig.Table[*row]{
		{Head: "case", Text: func(w *row) string { return w.Case + ", " + w.Size }},
		{Head: "threads", Text: func(w *row) string { return fmt.Sprint(w.Threads) }},
	}
	for _, name := range append([]string{ours}, forms...) {
		table = append(table, rig.Column[*row]{Head: name, Text: func(w *row) string {
			if _, ok := w.Median[name]; !ok {
				return ""
			}
			return fmt.Sprintf("%.1f (%.1f)", float64(w.Median[name])/1e6, float64(w.Least[name])/1e6)
		}})
	}
	return append(table,
		rig.Column[*row]{Head: "ratio", Text: func(w *row) string {
			best := w.fastest()
			return fmt.Sprintf("%.2f (%.2f)", float64(w.Median[ours])/float64(w.Median[best]),
				float64(w.Least[ours])/float64(w.Least[best]))
		}},
		rig.Column[*row]{Head: "GFLOP/s", Text: func(w *row) string { return fmt.Sprintf("%.0f", w.rate()) }},
		rig.Column[*row]{Head: "share", Text: func(w *row) string {
			return fmt.Sprintf("%.0f %%", 100*w.rate()/product[w.Threads])
		}})
}
