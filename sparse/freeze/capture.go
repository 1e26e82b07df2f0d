package freeze

import (
	"fmt"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// capture averages the block mass over the inputs of one bucket.
type capture struct {
	block, blocks, group int
	sums                 [][]float64 // [layer*kv heads+head][blocks][blocks] sums over inputs and query heads
	rows                 []int       // [blocks] number of inputs that have the block of queries
}

func (f *run) newCapture(bucket int) *capture {
	blocks := support.Blocks(f.buckets[bucket], f.o.Block)
	c := &capture{block: f.o.Block, blocks: blocks, group: f.c.Heads / f.c.KVHeads, rows: make([]int, blocks)}
	c.sums = make([][]float64, f.c.Layers*f.c.KVHeads)
	for i := range c.sums {
		c.sums[i] = make([]float64, blocks*blocks)
	}
	return c
}

// add adds the attention of a layer for one input, whose keys may be sorted. One
// goroutine handles a head, so that sums are taken in the order of the inputs.
func (c *capture) add(layer int, j *kern.Job, workers int) {
	blocks := support.Blocks(j.Q.Rows, c.block)
	if layer == 0 {
		for r := range blocks {
			c.rows[r]++
		}
	}
	mat.Tiles(j.KVHeads, 1, workers, func(kv, _ int) {
		one := make([]float64, blocks*blocks)
		sum := c.sums[layer*j.KVHeads+kv]
		for h := kv * c.group; h < (kv+1)*c.group; h++ {
			kern.BlockMass(one, j, h, c.block)
			for r := range blocks {
				for k, x := range one[r*blocks:][:blocks] {
					sum[r*c.blocks+k] += x
				}
			}
		}
	})
}

// mean divides the sums, so that every row of a head is a mean of masses and sums to
// 1. It returns an error if no input has the row.
func (c *capture) mean(length int) error {
	for r, n := range c.rows {
		if n == 0 {
			return tooShort(r*c.block, length)
		}
		for _, sum := range c.sums {
			for k := range c.blocks {
				sum[r*c.blocks+k] /= float64(n * c.group)
			}
		}
	}
	return nil
}

func tooShort(at, length int) error {
	return fmt.Errorf("freeze: no input of the calibration reaches token %d, and a bucket has %d: use shorter "+
		"buckets or longer inputs",
		at+1, length)
}

// captureMass runs the calibration inputs once, and returns the mean block masses of
// each bucket.
func (f *run) captureMass() ([]*capture, error) {
	var all []*capture
	for b := range f.buckets {
		all = append(all, f.newCapture(b))
	}
	err := f.each("calibrate", 0, f.calibrate, func(_ int) model.Options {
		return model.Options{Hook: func(layer, _ int, j *kern.Job) {
			all[f.bucket(j.Q.Rows)].add(layer, j, f.o.Workers)
		}}
	})
	if err != nil {
		return nil, err
	}
	for b, c := range all {
		if err := c.mean(f.buckets[b]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// each runs the model on inputs lo to hi-1, with options(i) for input i.
func (f *run) each(step string, lo, hi int, options func(i int) model.Options) error {
	for i := lo; i < hi; i++ {
		f.progress(step, i-lo, hi-lo)
		if _, err := f.forward(i, options(i)); err != nil {
			return err
		}
	}
	f.progress(step, hi-lo, hi-lo)
	return nil
}
