package train

import (
	"fmt"
	"testing"
	"time"

	"entropipe/models/mat"
)

// A step of the default networks with each regulariser: tokens/s, and which
// share of the speed of one large product its multiplications have. Both are
// timed in turns.
func BenchmarkStep(b *testing.B) {
	for _, text := range []bool{true, false} {
		for _, reg := range []Regulariser{None, Entropy, Paper, L1} {
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("text=%v/%s/workers=%d", text, reg, workers), func(b *testing.B) {
					tr := midway(b, text, reg, workers)
					var steps, product time.Duration
					rate := newProduct()
					for b.Loop() {
						start := time.Now()
						if err := tr.Step(); err != nil {
							b.Fatal(err)
						}
						steps += time.Since(start)
						product += rate.time()
					}
					work := float64(b.N) * float64(tr.Tokens())
					perSecond := work * tr.net.form.multiplications() / steps.Seconds()
					b.ReportMetric(work/steps.Seconds(), "tokens/s")
					b.ReportMetric(2e-9*perSecond, "GFLOP/s")
					b.ReportMetric(perSecond/float64(workers)/(float64(b.N)*rate.work()/product.Seconds()), "of-GEMM")
				})
			}
		}
	}
}

// midway is a default training where the regulariser has its weight.
func midway(b *testing.B, text bool, reg Regulariser, workers int) *Trainer {
	c := Config{Steps: 1 << 20, Every: 1 << 20, Workers: workers, Regulariser: reg, Seed: 1}
	var tr *Trainer
	var err error
	if text {
		data := make([]byte, 1<<16)
		for i := range data {
			data[i] = byte(i * i >> 3)
		}
		var bytes *Text
		if bytes, err = ByteText("made", data); err == nil {
			tr, err = NewLM(c, bytes)
		}
	} else {
		tr, err = NewViT(c, Shapes(200, 28, 1))
	}
	if err != nil {
		b.Fatal(err)
	}
	tr.step = c.Steps / 2
	tr.prepareRegulariser(tr.plan())
	return tr
}

// product is a matrix product to compare with, of a chunk's rows.
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

func (p *product) work() float64 { return 20 * 256 * 128 * 512 }

func (p *product) time() time.Duration {
	start := time.Now()
	for range 20 {
		p.w.Mul(p.dst, p.a, mat.Epilogue{}, 1)
	}
	return time.Since(start)
}
