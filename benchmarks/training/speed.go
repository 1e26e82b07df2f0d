package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"entropipe/models/mat"
	"entropipe/sparse/train"
)

// step times steps of the default networks, in turns with a product of a
// chunk's rows by the widest layer, on one core.
func (c *cli) step(text bool, reg train.Regulariser, workers int) (row, error) {
	t, name, err := beginning(text, reg, workers)
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
		TokensPerSecond: float64(t.Tokens()) / least, GFLOPs: gflops, Share: gflops / float64(workers) / (2e-9 * p.work() / product),
		Parameters: t.Parameters(), SequenceLen: t.Tokens() / t.Config().Batch}, nil
}

// beginning is a training whose time is over after the first step, so that from
// the second on the regulariser has its full weight.
func beginning(text bool, reg train.Regulariser, workers int) (*train.Trainer, string, error) {
	cfg := train.Config{Time: time.Nanosecond, Judged: 1, Workers: workers, Regulariser: reg, Seed: 1}
	if !text {
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

// report is the rows as Markdown.
func report(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Training small transformers\n\n`go run ./benchmarks/training`, %s.", time.Now().Format("2006-01-02"))
	if len(rows) > 0 {
		fmt.Fprintf(&b, " %s.", rows[0].Machine)
	}
	b.WriteString(" Two layers, 128 wide, four heads. The rate is that of the multiplications of forward and backward, regularisers left out; its share is of one product of 256×128×512 on each core, timed in turns in the same process, the shortest of each.\n\n## A step\n\n| data | regulariser | workers | tokens/s | GFLOP/s | share of the product |\n|---|---|---:|---:|---:|---:|\n")
	for _, r := range rows {
		if r.Kind == "step" {
			fmt.Fprintf(&b, "| %s | %s | %d | %.0f | %.1f | %.2f |\n", r.Data, r.Regulariser, r.Workers, r.TokensPerSecond, r.GFLOPs, r.Share)
		}
	}
	b.WriteString("\n## Whole trainings\n\nHeld out: the last tenth of the text, every sixth image; all of it. Bounded by minutes, so steps differ from run to run.\n\n| data | parameters | workers | minutes | steps | tokens/s | loss, nats a target | accuracy |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		if r.Kind == "run" {
			fmt.Fprintf(&b, "| %s | %d | %d | %.1f | %d | %.0f | %.4f | %.2f %% |\n", r.Data, r.Parameters, r.Workers, r.Seconds/60, r.Steps, r.TokensPerSecond, r.Loss, 100*r.Accuracy)
		}
	}
	return b.String()
}
