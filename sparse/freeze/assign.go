package freeze

import (
	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
)

// group holds the sets of anchors of one head side by side, so that one product
// compares keys with all of them.
type group struct {
	sets    []*cluster
	measure measure
}

func newGroup(sets []*cluster) *group {
	k, dim := sets[0].anchors.Rows, sets[0].anchors.Cols
	all := mat.Of(len(sets)*k, dim, make([]float32, len(sets)*k*dim))
	for i, c := range sets {
		copy(all.Data[i*k*dim:], c.anchors.Data)
	}
	g := &group{sets: sets}
	g.measure.set(all)
	return g
}

// assign runs the calibration inputs again and sums assignments and the attention to
// clusters by position. It returns, for each bucket, the number of inputs that have
// each position.
func (f *run) assign(clusters [][]*cluster) ([][]int, error) {
	rows := make([][]int, len(f.buckets))
	for b, n := range f.buckets {
		rows[b] = make([]int, n)
	}
	groups := make([]*group, len(clusters))
	for h, sets := range clusters {
		groups[h] = newGroup(sets)
	}
	desks := make([]desk, f.o.Workers)
	err := f.each("cluster", 0, f.calibrate, func(int) model.Options {
		return model.Options{Hook: func(layer, _ int, j *kern.Job) {
			b := f.bucket(j.Q.Rows)
			for t := 0; layer == 0 && t < j.Q.Rows; t++ {
				rows[b][t]++
			}
			mat.Share(j.KVHeads, f.o.Workers, func(kv, who int) {
				g := groups[layer*j.KVHeads+kv]
				g.addKeys(&desks[who], j, kv, b)
				for h := kv * j.Heads / j.KVHeads; h < (kv+1)*j.Heads/j.KVHeads && f.o.Select == Entropy; h++ {
					g.addQueries(&desks[who], j, h, b, f.o.Block)
				}
			})
		}}
	})
	for b, n := range f.buckets {
		if last := (n - 1) / f.o.Block * f.o.Block; err == nil && rows[b][last] == 0 {
			err = tooShort(last, n)
		}
	}
	return rows, err
}

// desk is the memory of one goroutine.
type desk struct {
	keys, members mat.Weights // packed transposed keys of the current head, and packed p
	p             []float32   // [keys][sets*k] assignments of keys to anchors
	w             []float32   // [queries of a block][keys] weights
	a             []float32   // [queries of a block][sets*k] mass that queries give to clusters
}

// grown returns a matrix with undefined contents in the memory of v, which it extends
// if necessary.
func grown(v *[]float32, rows, cols int) mat.Matrix {
	if len(*v) < rows*cols {
		*v = make([]float32, rows*cols)
	}
	return mat.Of(rows, cols, *v)
}

// addKeys adds the soft assignments of one input's keys of a head to the sums. It
// leaves the packed assignments and the packed keys in d for addQueries.
func (g *group) addKeys(d *desk, j *kern.Job, kv, b int) {
	k := g.sets[0].anchors.Rows
	keys := j.K.Columns(kv*j.Dim, (kv+1)*j.Dim)
	p := grown(&d.p, keys.Rows, len(g.sets)*k)
	g.measure.near(p, keys)
	for i, c := range g.sets {
		mat.Softmax(p.Columns(i*k, (i+1)*k), float32(c.alpha))
		for t := range p.Rows {
			for at, x := range p.Row(t)[i*k:][:k] {
				c.member[b][t*k+at] += x
				c.sizes[at] += float64(x)
			}
		}
	}
	d.keys.PackT(keys)
	d.members.Pack(p)
}

// addQueries adds the mass that the queries of head h give to the clusters, weights
// times assignments, one block of queries at a time.
func (g *group) addQueries(d *desk, j *kern.Job, h, b, block int) {
	k := g.sets[0].anchors.Rows
	queries := j.Q.Columns(h*j.Dim, (h+1)*j.Dim)
	for lo := 0; lo < queries.Rows; lo += block {
		hi := min(lo+block, queries.Rows)
		w := grown(&d.w, hi-lo, j.K.Rows)
		d.keys.Mul(w, queries.Slice(lo, hi), mat.Epilogue{}, 1)
		for t := range w.Rows {
			row := w.Slice(t, t+1)
			if j.Causal {
				row.Cols = lo + t + 1
				clear(w.Row(t)[row.Cols:])
			}
			mat.Softmax(row, j.Scale)
		}
		a := grown(&d.a, hi-lo, len(g.sets)*k)
		d.members.Mul(a, w, mat.Epilogue{}, 1)
		for i, c := range g.sets {
			sum := c.queries[b][lo/block*k:][:k]
			for t := range a.Rows {
				mass := a.Row(t)[i*k:][:k]
				c.spread += entropyOf(mass)
				c.seen++
				for at, x := range mass {
					sum[at] += x
				}
			}
		}
	}
}
