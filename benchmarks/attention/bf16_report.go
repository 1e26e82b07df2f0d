package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

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
	How     string             `json:"how,omitempty"`  // how products of bf16 are computed
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
	return r.journal.has(func(c *bf16Cell) bool { return c.Of == of && c.Rows == rows && c.Threads == threads })
}

func (r *bf16Report) add(c *bf16Cell) error {
	if c.Ns == nil {
		return r.keep(c, fmt.Sprintf("%d texts: %.2g apart, cosines %.6f and %.6f\n", c.Rows, c.Off,
			c.Cosine, c.Embedding))
	}
	return r.keep(c, bf16Products.Row(c))
}

func (r *bf16Report) write(out io.Writer) error { return r.publish(out, r.markdown()) }

// bf16Columns returns the columns of products and of encoders, as what names them.
func bf16Columns(what string) rig.Table[*bf16Cell] {
	form := func(i int) rig.Column[*bf16Cell] {
		return rig.Column[*bf16Cell]{Head: bf16Forms[i], Text: func(c *bf16Cell) string {
			ns := c.Ns[bf16Forms[i]]
			return fmt.Sprintf("%.3f (%.3f)", float64(ns[0])/1e6, float64(ns[1])/1e6)
		}}
	}
	return rig.Table[*bf16Cell]{
		{Head: what, Text: func(c *bf16Cell) string { return c.Of }},
		{Head: "rows", Text: func(c *bf16Cell) string { return fmt.Sprint(c.Rows) }},
		{Head: "threads", Text: func(c *bf16Cell) string { return fmt.Sprint(c.Threads) }},
		form(0), form(1),
		{Head: "f32 / bf16", Text: func(c *bf16Cell) string {
			return fmt.Sprintf("%.2f (%.2f)", c.ratio(0), c.ratio(1))
		}},
	}
}

var bf16Encoders = bf16Columns("encoder")

var bf16Products = append(bf16Columns("product"),
	rig.Column[*bf16Cell]{Head: "GFLOP/s of each", Text: func(c *bf16Cell) string {
		return fmt.Sprintf("%.0f, %.0f", c.Work/float64(c.Ns[bf16Forms[0]][0]), c.Work/float64(c.Ns[bf16Forms[1]][0]))
	}})

func (r *bf16Report) markdown() string {
	var b strings.Builder
	b.WriteString("# Weights in bf16 beside float32\n\n")
	fmt.Fprintf(&b, "`go run ./benchmarks/attention bf16`, %s, %s. Both forms take turns. Milliseconds of the "+
		"shortest run, the median in brackets; a ratio is the time of float32 over that of bf16, above 1 bf16 is "+
		"faster. Rounding of the rows is in the times.\n\n",
		rig.Origin(r.Stamps()), rig.Each(r.cells(nil), func(c *bf16Cell) string { return c.How }))
	r.table(&b, bf16Products, func(c *bf16Cell) bool { return c.Ns != nil && c.Work > 0 })
	b.WriteString("Whole encoders, one sequence, from ids to the last hidden state: minilm, six layers of 384; " +
		"bert, four layers of 768. Attention is float32 in both.\n\n")
	r.table(&b, bf16Encoders, func(c *bf16Cell) bool { return c.Ns != nil && c.Work == 0 })
	for _, c := range r.cells(func(c *bf16Cell) bool { return c.Ns == nil }) {
		fmt.Fprintf(&b, "MiniLM on %d pieces of 256 tokens of WikiText-2: numbers of the last hidden states are at "+
			"most %.2g apart, at a mean size of %.2g (root mean square) and a mean distance of %.2g; the cosine of "+
			"a token's states is at least %.6f, that of an embedding %.6f.\n",
			c.Rows, c.Off, math.Sqrt(c.Size/c.numbers()), math.Sqrt(c.Square/c.numbers()), c.Cosine, c.Embedding)
	}
	return b.String()
}

// table writes the cells that keep accepts, and the range of their ratios by the
// shortest runs.
func (r *bf16Report) table(b *strings.Builder, columns rig.Table[*bf16Cell], keep func(*bf16Cell) bool) {
	cells := r.cells(keep)
	var ratios []float64
	for _, c := range cells {
		ratios = append(ratios, c.ratio(0))
	}
	all := rig.SpreadOf(ratios)
	fmt.Fprintf(b, "%s\nGeometric mean %.2f, least %.2f.\n\n", columns.Markdown(cells), all.Mean, all.Least)
}

// How the products of bf16 are computed.
const (
	withInstruction    = "with the CPU's instruction for pairs of bf16"
	withoutInstruction = "without an instruction for bf16"
)

// howBF16 returns how this machine computes products of bf16.
func howBF16() string {
	if mat.HasBF16() {
		return withInstruction
	}
	return withoutInstruction
}

// numbers returns the count of compared numbers: pieces × tokens × width.
func (c *bf16Cell) numbers() float64 { return float64(c.Rows) * 256 * 384 }

// ratio returns the time of float32 over that of bf16; which is 0 for the
// shortest runs, 1 for the medians.
func (c *bf16Cell) ratio(which int) float64 {
	return float64(c.Ns[bf16Forms[0]][which]) / float64(c.Ns[bf16Forms[1]][which])
}
