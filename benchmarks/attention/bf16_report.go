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

// bf16Cell is the times of one product or encoder with both forms of weights;
// or of texts, how far the states are apart.
type bf16Cell struct {
	Of      string             `json:"of"`
	Rows    int                `json:"rows"`
	Threads int                `json:"threads"`
	Work    float64            `json:"work,omitempty"` // operations of a product
	Ns      map[string][]int64 `json:"ns,omitempty"`   // least, median and longest run

	Off       float64 `json:"off,omitempty"` // largest difference of two numbers of the states
	Square    float64 `json:"square,omitempty"`
	Size      float64 `json:"size,omitempty"` // sums of squares: of the differences, of the numbers
	Cosine    float64 `json:"cosine,omitempty"`
	Embedding float64 `json:"embedding,omitempty"` // least cosines: of a row, of an embedding
}

// shorten keeps three of the times: there may be thousands.
func (c *bf16Cell) shorten() {
	for form, ns := range c.Ns {
		slices.Sort(ns)
		c.Ns[form] = []int64{ns[0], ns[len(ns)/2], ns[len(ns)-1]}
	}
}

// compare adds a row of the states.
func (c *bf16Cell) compare(got, want []float32) {
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		c.Off = max(c.Off, math.Abs(d))
		c.Square += d * d
		c.Size += float64(w) * float64(w)
	}
	c.Cosine = min(c.Cosine, cosine(got, want))
}

type bf16Report struct{ journal[bf16Cell] }

func (r *bf16Report) has(of string, rows, threads int) bool {
	return slices.ContainsFunc(r.cells, func(c *bf16Cell) bool { return c.Of == of && c.Rows == rows && c.Threads == threads })
}

func (r *bf16Report) add(c *bf16Cell) error {
	fmt.Fprintln(os.Stderr, c.row())
	return r.keep(c)
}

func (r *bf16Report) write(out io.Writer) error { return r.publish(out, r.markdown()) }

func (r *bf16Report) markdown() string {
	var b strings.Builder
	how := "with the CPU's instruction for pairs of bf16"
	if !mat.HasBF16() {
		how = "without an instruction for bf16"
	}
	fmt.Fprintf(&b, "# Weights in bf16 beside float32\n\n")
	fmt.Fprintf(&b, "`go run ./benchmarks/attention bf16`, %s, %d CPUs (%s), %v kernels, %s, %s. Both forms take turns. Milliseconds of the shortest run, the median in brackets; a ratio is the time of float32 over that of bf16, above 1 bf16 is faster. Rounding of the rows is in the times.\n\n",
		time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), rig.CPU(), mat.Best(), how, runtime.Version())
	table := func(what, more string, of func(*bf16Cell) bool) {
		columns := "| " + what + " | rows | threads | f32 | bf16 | f32 / bf16 |" + more
		fmt.Fprintf(&b, "%s\n%s|\n", columns, strings.Repeat("|---", strings.Count(columns, "|")-1))
		for _, c := range r.cells {
			if of(c) {
				fmt.Fprintln(&b, c.row())
			}
		}
		mean, least := r.summary(of)
		fmt.Fprintf(&b, "\nGeometric mean %.2f, least %.2f.\n\n", mean, least)
	}
	table("product", " GFLOP/s of each |", func(c *bf16Cell) bool { return c.Ns != nil && c.Work > 0 })
	b.WriteString("Whole encoders, one sequence, from ids to the last hidden state: minilm, six layers of 384; bert, four layers of 768. Attention is float32 in both.\n\n")
	table("encoder", "", func(c *bf16Cell) bool { return c.Ns != nil && c.Work == 0 })
	for _, c := range r.cells {
		if c.Ns == nil {
			fmt.Fprintf(&b, "MiniLM on %d pieces of 256 tokens of WikiText-2: numbers of the last hidden states are at most %.2g apart, at a mean size of %.2g (root mean square) and a mean distance of %.2g; the cosine of a token's states is at least %.6f, that of an embedding %.6f.\n",
				c.Rows, c.Off, math.Sqrt(c.Size/c.numbers()), math.Sqrt(c.Square/c.numbers()), c.Cosine, c.Embedding)
		}
	}
	return b.String()
}

// numbers of the compared states.
func (c *bf16Cell) numbers() float64 { return float64(c.Rows) * 256 * 384 }

// summary is over the ratios of the shortest runs.
func (r *bf16Report) summary(of func(*bf16Cell) bool) (mean, least float64) {
	sum, n := 0., 0.
	least = math.Inf(1)
	for _, c := range r.cells {
		if of(c) {
			x := c.ratio(0)
			sum, n, least = sum+math.Log(x), n+1, min(least, x)
		}
	}
	return math.Exp(sum / max(n, 1)), least
}

func (c *bf16Cell) ratio(which int) float64 {
	return float64(c.Ns[bf16Forms[0]][which]) / float64(c.Ns[bf16Forms[1]][which])
}

func (c *bf16Cell) row() string {
	if c.Ns == nil {
		return fmt.Sprintf("%d texts: %.2g apart, cosines %.6f and %.6f", c.Rows, c.Off, c.Cosine, c.Embedding)
	}
	cells := []string{c.Of, fmt.Sprint(c.Rows), fmt.Sprint(c.Threads)}
	for _, form := range bf16Forms {
		cells = append(cells, fmt.Sprintf("%.3f (%.3f)", float64(c.Ns[form][0])/1e6, float64(c.Ns[form][1])/1e6))
	}
	cells = append(cells, fmt.Sprintf("%.2f (%.2f)", c.ratio(0), c.ratio(1)))
	if c.Work > 0 {
		cells = append(cells, fmt.Sprintf("%.0f, %.0f", c.Work/float64(c.Ns[bf16Forms[0]][0]), c.Work/float64(c.Ns[bf16Forms[1]][0])))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}
