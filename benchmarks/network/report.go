package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"entropipe/models/mat"
)

// report is what a run found.
type report struct {
	Time  time.Time
	Torch string
	Turn  time.Duration
	rows  []*row
}

// row is a case with one number of threads.
type row struct {
	Case    string             `json:"case"`
	Size    string             `json:"size"`
	Threads int                `json:"threads"`
	Work    float64            `json:"operations"` // floating-point, the least that the case takes
	Ns      map[string][]int64 `json:"-"`
}

func newReport(c *cli) *report { return &report{Time: time.Now().UTC(), Turn: c.Turn} }

func (r *report) add(name, size string, threads int, work float64) *row {
	r.rows = append(r.rows, &row{name, size, threads, work, map[string][]int64{}})
	return r.rows[len(r.rows)-1]
}

func median(ns []int64) int64 {
	s := slices.Sorted(slices.Values(ns))
	return s[len(s)/2]
}

// fastest is the form of PyTorch with the least median.
func (r *row) fastest() string {
	best := ""
	for name, ns := range r.Ns {
		if name != ours && (best == "" || median(ns) < median(r.Ns[best])) {
			best = name
		}
	}
	return best
}

// write prints the table and keeps table and raw figures.
func (r *report) write(folder string, out io.Writer) error {
	table := r.markdown()
	if _, err := io.WriteString(out, table); err != nil {
		return err
	}
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	var lines strings.Builder
	for _, w := range r.rows {
		medians, least := map[string]int64{}, map[string]int64{}
		for name, ns := range w.Ns {
			medians[name], least[name] = median(ns), slices.Min(ns)
		}
		text, err := json.Marshal(struct {
			Time  time.Time `json:"time"`
			Torch string    `json:"torch"`
			Level string    `json:"level"`
			*row
			Median map[string]int64 `json:"median_ns"`
			Least  map[string]int64 `json:"least_ns"`
		}{r.Time, r.Torch, mat.Best().String(), w, medians, least})
		if err != nil {
			return err
		}
		lines.Write(append(text, '\n'))
	}
	if err := os.WriteFile(filepath.Join(folder, "network.jsonl"), []byte(lines.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "network.md"), []byte(table), 0o666)
}

// markdown is the table: medians in milliseconds, the shortest in brackets.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# EntropyNet beside PyTorch %s\n\n", r.Torch)
	fmt.Fprintf(&b, "`go run ./benchmarks/network`, %s, %d CPUs, %v kernels, %s. Median milliseconds of turns that took turns (shortest in brackets); the ratio is ours over the fastest form of PyTorch, by medians and by the shortest. Both sides compute the same displacements and the same F, which the run checks. The rate is that of the least number of operations; its share is of the product's rate in the same run.\n\n",
		r.Time.Format("2006-01-02"), runtime.NumCPU(), mat.Best(), runtime.GOARCH)
	var forms []string
	for _, row := range r.rows {
		for name := range row.Ns {
			if name != ours && !slices.Contains(forms, name) {
				forms = append(forms, name)
			}
		}
	}
	slices.Sort(forms)
	fmt.Fprintf(&b, "| case | threads | %s | %s | ratio | GFLOP/s | share |\n|---|---|---|%s---|---|---|\n", ours, strings.Join(forms, " | "), strings.Repeat("---|", len(forms)))
	product := map[int]float64{}
	for _, row := range r.rows {
		cells := []string{row.Case + ", " + row.Size, fmt.Sprint(row.Threads), cell(row.Ns[ours])}
		for _, f := range forms {
			cells = append(cells, cell(row.Ns[f]))
		}
		best, rate := row.fastest(), row.Work/float64(slices.Min(row.Ns[ours]))
		if row.Case == "product" {
			product[row.Threads] = rate
		}
		cells = append(cells, fmt.Sprintf("%.2f (%.2f)", float64(median(row.Ns[ours]))/float64(median(row.Ns[best])), float64(slices.Min(row.Ns[ours]))/float64(slices.Min(row.Ns[best]))),
			fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f %%", 100*rate/product[row.Threads]))
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func cell(ns []int64) string {
	if len(ns) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f (%.1f)", float64(median(ns))/1e6, float64(slices.Min(ns))/1e6)
}
