package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/train"
)

// step times steps of the default networks, in turns with a product of a
// chunk's rows by the widest layer, on one core.
func (c *cli) step(of kind, reg train.Regulariser, workers int) (row, error) {
	t, name, err := beginning(of, reg, workers)
	if err != nil {
		return row{}, err
	}
	p := newProduct()
	least, product := math.Inf(1), math.Inf(1)
	for i := range c.Rounds + 1 {
		before := t.Elapsed()
		if err := t.Step(); err != nil {
			return row{}, err
		}
		took, other := (t.Elapsed() - before).Seconds(), p.seconds()
		if i > 0 {
			least, product = min(least, took), min(product, other)
		}
	}
	gflops := 2e-9 * t.Multiplications() / least
	return row{Kind: "step", Data: name, Regulariser: string(reg), Workers: workers, Steps: c.Rounds, Seconds: least,
		TokensPerSecond: float64(t.Tokens()) / least, GFLOPs: gflops,
		Share:      gflops / float64(workers) / (2e-9 * p.work() / product),
		Parameters: t.Parameters(), SequenceLen: t.Tokens() / t.Config().Batch}, nil
}

// beginning is a training whose time is over after the first step, so that from
// the second on the regulariser has its full weight.
func beginning(of kind, reg train.Regulariser, workers int) (*train.Trainer, string, error) {
	cfg := train.Config{Time: time.Nanosecond, Judged: 1, Workers: workers, Regulariser: reg, Seed: 1}
	if of == images {
		t, err := train.NewViT(cfg, train.Shapes(200, 28, 1))
		return t, "shapes, patches of 4 × 4", err
	}
	data := make([]byte, 1<<16)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	made, err := train.ByteText("made", data)
	if err != nil {
		return nil, "", err
	}
	t, err := train.NewLM(cfg, made)
	return t, "bytes, context of 256", err
}

// product is a matrix product to compare with.
type product struct {
	w      mat.Weights
	a, dst mat.Matrix
}

func newProduct() *product {
	const rows, k, n = 256, 128, 512
	p := &product{a: mat.Of(rows, k, make([]float32, rows*k)), dst: mat.Of(rows, n, make([]float32, rows*n))}
	p.w.Pack(mat.Of(k, n, make([]float32, k*n)))
	return p
}

// work is the multiplications of what seconds times.
func (p *product) work() float64 { return 20 * 256 * 128 * 512 }

func (p *product) seconds() float64 {
	start := time.Now()
	for range 20 {
		p.w.Mul(p.dst, p.a, mat.Epilogue{}, 1)
	}
	return time.Since(start).Seconds()
}

// column returns a column whose cells stand at the right.
func column(head, format string, get func(*row) any) rig.Column[*row] {
	return rig.Column[*row]{Head: head, Align: rig.Right,
		Text: func(r *row) string { return fmt.Sprintf(format, get(r)) }}
}

var stepTable = rig.Table[*row]{
	{Head: "data", Text: func(r *row) string { return r.Data }},
	{Head: "regulariser", Text: func(r *row) string { return r.Regulariser }},
	column("workers", "%d", func(r *row) any { return r.Workers }),
	column("tokens/s", "%.0f", func(r *row) any { return r.TokensPerSecond }),
	column("GFLOP/s", "%.1f", func(r *row) any { return r.GFLOPs }),
	column("share of the product", "%.2f", func(r *row) any { return r.Share }),
}

var runTable = rig.Table[*row]{
	{Head: "data", Text: func(r *row) string { return r.Data }},
	column("parameters", "%d", func(r *row) any { return r.Parameters }),
	column("workers", "%d", func(r *row) any { return r.Workers }),
	column("minutes", "%.1f", func(r *row) any { return r.Seconds / 60 }),
	column("steps", "%d", func(r *row) any { return r.Steps }),
	column("tokens/s", "%.0f", func(r *row) any { return r.TokensPerSecond }),
	column("loss, nats a target", "%.4f", func(r *row) any { return r.Loss }),
	column("accuracy", "%.2f %%", func(r *row) any { return 100 * r.Accuracy }),
}

// report returns the page of the rows.
func report(j *rig.Journal[row]) string {
	kind := map[string][]*row{}
	for i := range j.Records {
		r := &j.Records[i].Figures
		kind[r.Kind] = append(kind[r.Kind], r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Training small transformers\n\n`go run ./benchmarks/training`, %s.", rig.Origin(j.Stamps()))
	b.WriteString(" Two layers, 128 wide, four heads. The rate is that of the multiplications of forward and " +
		"backward, regularisers left out; its share is of one product of 256×128×512 on each core, timed in turns " +
		"in the same process, the shortest of each.\n\n## A step\n\n")
	b.WriteString(stepTable.Markdown(kind["step"]))
	b.WriteString(
		"\n## Whole trainings\n\nHeld out: the last tenth of the text, every sixth image; all of it. Bounded " +
			"by minutes, so steps differ from run to run.\n\n")
	b.WriteString(runTable.Markdown(kind["run"]))
	return b.String()
}
