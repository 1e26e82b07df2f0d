package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
)

// denseCell is a cell and the times of all its runs.
type denseCell struct {
	Model   string `json:"model"`
	Tokens  int    `json:"tokens"`
	Threads int    `json:"threads"`
	Ns      times  `json:"ns"`
}

// denseReport collects cells, and keeps each as soon as it is measured.
type denseReport struct {
	Versions     string
	RandomMiniLM bool
	journal[denseCell]
}

func (c *denseCmd) report() (*denseReport, error) {
	r := &denseReport{}
	return r, r.open("attention-dense", c.Results, c.Quick, c.Resume)
}

func (r *denseReport) has(name string, n, threads int) bool {
	return slices.ContainsFunc(r.cells, func(c *denseCell) bool {
		return c.Model == name && c.Tokens == n && c.Threads == threads
	})
}

func (r *denseReport) add(c *denseCell) error {
	fmt.Fprintln(os.Stderr, c.row())
	return r.keep(c)
}

func (r *denseReport) write(out io.Writer) error { return r.publish(out, r.markdown()) }

func (r *denseReport) markdown() string {
	var b strings.Builder
	weights := "weights of all-MiniLM-L6-v2, positions beyond 512 random"
	if r.RandomMiniLM {
		weights = "random weights"
	}
	fmt.Fprintf(&b, "# Dense encoders beside ONNX Runtime and PyTorch\n\n")
	fmt.Fprintf(&b, "`go run ./benchmarks/attention dense`, %s, %d CPUs (%s), %v kernels, %s, %s. One sequence, from ids to the last hidden state. minilm: six layers of 384, 12 heads of 32, MLP of 1536, %s. bert: four layers of 768, 12 heads of 64, MLP of 3072, random weights. Entries take turns; all compute the same hidden states within %g, which the run checks. Milliseconds of the shortest run, the median in brackets. A ratio is the peer's time over ours, so above 1 ours is faster; by the shortest runs, by medians in brackets. The sparse entry reads a quarter of the blocks of 64 keys, and its ratio is to our dense one: this forces a plan that serving would not choose where it does not pay.\n\n",
		time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), rig.CPU(), mat.Best(), runtime.Version(), r.Versions, weights, tolerance)
	b.WriteString("| model | tokens | threads | entropipe | ONNX Runtime | PyTorch | over ONNX Runtime | over PyTorch | 75 % sparse | over dense |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.cells {
		fmt.Fprintf(&b, "%s\n", c.row())
	}
	b.WriteString("\n| over | geometric mean | least cell |\n|---|---|---|\n")
	for _, peer := range []string{onnx, torch} {
		least, mean := r.summary(times.least, peer, ours)
		worst, middle := r.summary(times.middle, peer, ours)
		fmt.Fprintf(&b, "| %s | %.3f (%.3f) | %.3f (%.3f) |\n", peer, mean, middle, least, worst)
	}
	if least, mean := r.summary(times.least, ours, sparse); least > 0 {
		worst, middle := r.summary(times.middle, ours, sparse)
		fmt.Fprintf(&b, "| dense, of the sparse entry | %.3f (%.3f) | %.3f (%.3f) |\n", mean, middle, least, worst)
	}
	return b.String()
}

// summary is over the cells that have both entries.
func (r *denseReport) summary(of func(times, string) float64, above, below string) (least, mean float64) {
	sum, n := 0.0, 0
	for _, c := range r.cells {
		if x, y := of(c.Ns, above), of(c.Ns, below); x > 0 && y > 0 {
			sum, n = sum+math.Log(x/y), n+1
			if n == 1 || x/y < least {
				least = x / y
			}
		}
	}
	if n > 0 {
		mean = math.Exp(sum / float64(n))
	}
	return least, mean
}

func (c *denseCell) row() string {
	cells := []string{c.Model, fmt.Sprint(c.Tokens), fmt.Sprint(c.Threads)}
	for _, e := range []string{ours, onnx, torch} {
		cells = append(cells, c.time(e))
	}
	cells = append(cells, c.Ns.ratio(onnx, ours), c.Ns.ratio(torch, ours), c.time(sparse), c.Ns.ratio(ours, sparse))
	return "| " + strings.Join(cells, " | ") + " |"
}

func (c *denseCell) time(entry string) string {
	if len(c.Ns[entry]) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f)", c.Ns.least(entry), c.Ns.middle(entry))
}
