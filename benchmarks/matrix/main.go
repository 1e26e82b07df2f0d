// Command matrix times package models/mat beside NumPy (OpenBLAS) and PyTorch:
// the same shapes, in turns, in one run. It prints a table of the shortest
// times and of their ratios, and appends all medians to a file.
//
//	python3 -m venv VENV && VENV/bin/pip install numpy torch
//	go run ./benchmarks/matrix --python VENV/bin/python
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	_ "embed"

	"github.com/alecthomas/kong"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
)

type cli struct {
	Python  string        `placeholder:"PATH" default:"python3" help:"A Python that has numpy and torch (${default})."`
	Threads []int         `default:"1,2" help:"Numbers of threads, of all (${default})."`
	Only    []string      `placeholder:"NAME" help:"Only these rows: mul, tmul, exp, …"`
	Rounds  int           `default:"7" help:"Turns of each (${default})."`
	Turn    time.Duration `default:"150ms" help:"Time of a turn (${default})."`
	Results string        `placeholder:"FILE" help:"File of JSON lines to append medians to; by default none."`
}

//go:embed peer.py
var peer string

// row is one line of the table.
type row struct {
	Op string `json:"op"`
	M  int    `json:"m"`
	K  int    `json:"k"`
	N  int    `json:"n"`
}

var rows = []row{
	{"mul", 1024, 1024, 1024}, {"mul", 100_000, 64, 128}, {"mul", 100_000, 256, 128}, {"mul", 144, 128, 256},
	{"mul", 128, 768, 768}, {"mul", 128, 768, 3072}, {"mul", 512, 384, 1536}, {"mul", 1, 768, 3072},
	{"tmul", 16384, 128, 256}, {"tmul", 16384, 64, 128},
	{Op: "exp", M: 128, N: 512}, {Op: "tanh", M: 128, N: 512}, {Op: "gelu", M: 128, N: 512},
	{Op: "gelu tanh", M: 128, N: 512}, {Op: "silu", M: 128, N: 512},
	{Op: "softmax", M: 512, N: 512}, {Op: "layer norm", M: 512, N: 384}, {Op: "rms norm", M: 512, N: 384},
}

func main() {
	var c cli
	kong.Parse(&c, kong.Name("matrix"), kong.Description("Times models/mat beside NumPy and PyTorch."))
	if err := c.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func (c *cli) run(out io.Writer) error {
	fmt.Fprintf(out, "%s, %d CPUs, level %v. Shortest of %d turns of %v each; above 1, ours is faster.\n\n",
		runtime.GOARCH, runtime.NumCPU(), mat.Best(), c.Rounds, c.Turn)
	fmt.Fprint(out, table.Head())
	j := rig.Journal[result]{Bench: "matrix", Path: c.Results}
	for _, threads := range c.Threads {
		p, err := c.start(threads)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if len(c.Only) > 0 && !slices.Contains(c.Only, r.Op) {
				continue
			}
			times, err := c.measure(p, r, threads)
			if err != nil {
				return err
			}
			m := newResult(r, threads, times)
			fmt.Fprint(out, table.Row(m))
			if err := j.Add(m); err != nil {
				return err
			}
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}

// start starts peer.py.
func (c *cli) start(threads int) (*rig.Script, error) {
	n := fmt.Sprint(threads)
	return rig.StartScript(context.Background(), rig.ScriptSpec{
		Python: c.Python, Name: "peer.py", Text: peer,
		Env: []string{"OMP_NUM_THREADS=" + n, "OPENBLAS_NUM_THREADS=" + n, "MKL_NUM_THREADS=" + n},
	}, &map[string]string{}) // the libraries' versions
}

// measure returns the times of a row's calls in nanoseconds, by library.
func (c *cli) measure(p *rig.Script, r row, threads int) (map[string][]int64, error) {
	request := struct {
		row
		Seconds float64 `json:"seconds"`
	}{r, c.Turn.Seconds()}
	all, call := map[string][]int64{}, ours(r, threads)
	for range c.Rounds {
		call()
		for begun := time.Now(); time.Since(begun) < c.Turn; {
			start := time.Now()
			call()
			all["ours"] = append(all["ours"], time.Since(start).Nanoseconds())
		}
		var theirs map[string][]int64
		if err := p.Ask(request, &theirs); err != nil {
			return nil, err
		}
		for name, times := range theirs {
			all[name] = append(all[name], times...)
		}
	}
	return all, nil
}

// rate is what a time of the row means: GFLOP/s, or ns a number.
func (r row) rate(ns int64) string {
	if r.K > 0 {
		return fmt.Sprintf("%.1f GF/s", 2*float64(r.M)*float64(r.K)*float64(r.N)/float64(ns))
	}
	return fmt.Sprintf("%.3f ns", float64(ns)/float64(r.M*r.N))
}

// result is a row with one number of threads: what a record keeps.
type result struct {
	Threads int `json:"threads"`
	row
	Median map[string]int64 `json:"median_ns"` // by library
	Least  map[string]int64 `json:"least_ns"`
}

func newResult(r row, threads int, times map[string][]int64) result {
	m := result{threads, r, map[string]int64{}, map[string]int64{}}
	for who, ns := range times {
		slices.Sort(ns)
		m.Median[who], m.Least[who] = ns[len(ns)/2], ns[0]
	}
	return m
}

// rateOf returns a column of a library's rate in its shortest run.
func rateOf(head, who string) rig.Column[result] {
	return rig.Column[result]{Head: head, Text: func(m result) string {
		if m.Least[who] == 0 {
			return ""
		}
		return m.rate(m.Least[who])
	}}
}

// ratioOf returns a column of a library's shortest time over ours.
func ratioOf(head, who string) rig.Column[result] {
	return rig.Number(head, "%.2f", rig.Default, func(m result) (float64, bool) {
		return float64(m.Least[who]) / float64(m.Least["ours"]), m.Least[who] > 0
	})
}

var table = rig.Table[result]{
	{Head: "operation", Text: func(m result) string {
		if m.K == 0 {
			return fmt.Sprintf("%s %d×%d", m.Op, m.M, m.N)
		}
		return fmt.Sprintf("%s %d×%d×%d", m.Op, m.M, m.K, m.N)
	}},
	{Head: "threads", Text: func(m result) string { return fmt.Sprint(m.Threads) }},
	rateOf("ours", "ours"), rateOf("NumPy", "numpy"), rateOf("PyTorch", "torch"),
	ratioOf("NumPy/ours", "numpy"), ratioOf("PyTorch/ours", "torch"),
}
