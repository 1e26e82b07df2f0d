package freeze

import (
	"errors"
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

const (
	tries   = 4       // number of sets of anchors among which the selector entropy chooses
	balance = 0.5     // weight of the clusters' balance in the objective
	margin  = 1e-3    // least improvement of the objective over an earlier set
	maxSums = 1 << 27 // largest number of float32 in averages
)

// cluster holds the statistics of one head's keys with one set of anchors: sums over
// inputs, by position.
type cluster struct {
	anchors mat.Matrix  // [k][dim]
	alpha   float64     // inverse temperature of soft assignments
	member  [][]float32 // [bucket][positions][k] soft assignments of keys
	queries [][]float32 // [bucket][blocks][k] mass that the queries of a block give to a cluster
	spread  float64     // Σ H(a_t) over queries t
	seen    float64     // number of queries in spread
	sizes   []float64   // [k] soft sizes of the clusters
}

// clustered runs the selectors affinity and entropy.
func (f *run) clustered() (*support.Set, error) {
	k := max(2, int(math.Sqrt(float64(f.buckets[len(f.buckets)-1]))))
	candidates := 1
	if f.o.Select == Entropy {
		candidates = tries
	}
	size := 0
	for _, n := range f.buckets {
		size += (n + support.Blocks(n, f.o.Block)) * k
	}
	if heads := f.c.Layers * f.c.KVHeads; size*heads*candidates > maxSums || heads*sampleKeys*f.c.Dim > maxSums {
		return nil, errors.New("freeze: this selector has too many clusters, heads and positions: use shorter buckets")
	}
	clusters, err := f.fit(k, candidates)
	if err != nil {
		return nil, err
	}
	rows, err := f.assign(clusters)
	if err != nil {
		return nil, err
	}
	best := make([]*cluster, len(clusters))
	for i, of := range clusters {
		best[i] = bestOf(of)
	}
	switch {
	case f.o.Mode == support.Anchor:
		return f.anchored(best), nil
	case f.o.Permute:
		return f.permuted(best)
	}
	return f.positional(best, rows), nil
}

// bestOf returns the set of anchors with the least objective. Sets with the same
// clusters differ by rounding alone; of these it returns the first.
func bestOf(sets []*cluster) *cluster {
	best := sets[0]
	for _, c := range sets[1:] {
		if c.objective() < best.objective()-margin {
			best = c
		}
	}
	return best
}

// objective returns mean H(a_t) - balance·H(sizes), which the selector entropy
// minimises: it is small if a query needs few clusters and clusters have like sizes.
func (c *cluster) objective() float64 { return c.spread/c.seen - balance*entropyOf(c.sizes) }

// entropyOf returns the entropy of the shares of sizes, in nats.
func entropyOf[F float32 | float64](sizes []F) float64 {
	all, sum := 0.0, 0.0
	for _, s := range sizes {
		if s > 0 {
			all += float64(s)
			sum += float64(s) * math.Log(float64(s))
		}
	}
	return math.Log(all) - sum/all
}

// fit samples keys evenly from all calibration inputs, and fits anchors to the keys
// of each head.
func (f *run) fit(k, candidates int) ([][]*cluster, error) {
	heads := f.c.Layers * f.c.KVHeads
	samples := make([][]float32, heads)
	each := max(1, sampleKeys/f.calibrate)
	err := f.each("sample keys", 0, f.calibrate, func(int) model.Options {
		return model.Options{Hook: func(layer, _ int, j *kern.Job) {
			for kv := range j.KVHeads {
				s := &samples[layer*j.KVHeads+kv]
				for i := range min(each, j.K.Rows) {
					if len(*s) < sampleKeys*j.Dim {
						*s = append(*s, j.K.Row(i * j.K.Rows / min(each, j.K.Rows))[kv*j.Dim:][:j.Dim]...)
					}
				}
			}
		}}
	})
	if err != nil {
		return nil, err
	}
	clusters := make([][]*cluster, heads)
	mat.Tiles(heads, 1, f.o.Workers, func(h, _ int) {
		keys := mat.Of(len(samples[h])/f.c.Dim, f.c.Dim, samples[h])
		for try := range candidates {
			c := &cluster{sizes: make([]float64, k)}
			c.anchors, c.alpha = kMeans(keys, k, lot(f.o.Seed, uint64(h), uint64(try)))
			for _, n := range f.buckets {
				c.member = append(c.member, make([]float32, n*k))
				c.queries = append(c.queries, make([]float32, support.Blocks(n, f.o.Block)*k))
			}
			clusters[h] = append(clusters[h], c)
		}
	})
	return clusters, nil
}

// shares returns the score of every block of keys for every block of queries,
// [blocks][blocks]: the sum over clusters of the queries' demand for the cluster
// times the block's members of it. order is the order of the keys; nil is their own
// order. A causal row has scores up to its own block.
func (f *run) shares(c *cluster, b int, rows []int, order []int32) []float64 {
	k, n := c.anchors.Rows, f.buckets[b]
	blocks := support.Blocks(n, f.o.Block)
	parts := make([]float64, blocks*k) // soft members of a cluster in a block of keys
	want := make([]float64, blocks*k)  // demand of a block of queries for a cluster
	for t := range n {
		at := t
		if order != nil {
			at = int(order[t])
		}
		for i := range k {
			parts[t/f.o.Block*k+i] += float64(c.member[b][at*k+i]) / float64(max(rows[at], 1))
			want[t/f.o.Block*k+i] += float64(c.member[b][t*k+i]) / float64(max(rows[t], 1))
		}
	}
	score := make([]float64, blocks*blocks)
	all := make([]float64, k) // members of each cluster that a row sees
	for r := range blocks {
		seen := f.sees(r, blocks)
		if f.o.Select == Entropy {
			clear(all)
			for key := range seen {
				for i := range all {
					all[i] += parts[key*k+i]
				}
			}
			for i := range all {
				want[r*k+i] = float64(c.queries[b][r*k+i]) / max(all[i], 1e-12)
			}
		}
		for key := range seen {
			for i, x := range want[r*k:][:k] {
				score[r*blocks+key] += x * parts[key*k+i]
			}
		}
	}
	return score
}

// positional returns a set with layouts in the keys' own order.
func (f *run) positional(best []*cluster, rows [][]int) *support.Set {
	s := f.newSet()
	for i := range s.Buckets {
		b := &s.Buckets[i]
		blocks := support.Blocks(b.Length, f.o.Block)
		for head, c := range best {
			score := f.shares(c, i, rows[i], nil)
			put(b, head, f.natural(b.Length, func(r int) []float64 { return score[r*blocks:][:blocks] }))
		}
	}
	return s
}

// permuted returns a set whose layouts sort every head's keys by their mean
// assignment. The selector entropy then scores the sorted blocks by their mean mass,
// affinity by their clusters.
func (f *run) permuted(best []*cluster) (*support.Set, error) {
	n, last := f.buckets[0], f.c.Layers*f.c.KVHeads
	blocks := support.Blocks(n, f.o.Block)
	orders := make([][]int32, last)
	for head, c := range best {
		orders[head] = c.order(n)
	}
	var masses *capture
	if f.o.Select == Entropy {
		masses = f.newCapture(0)
		err := f.each("sorted mass", 0, f.calibrate, func(int) model.Options {
			return model.Options{Hook: func(layer, _ int, j *kern.Job) {
				sorted := *j
				sorted.K = sortKeys(j, orders[layer*j.KVHeads:][:j.KVHeads])
				sorted.Layouts = nil
				masses.add(layer, &sorted, f.o.Workers)
			}}
		})
		if err == nil {
			err = masses.mean(n)
		}
		if err != nil {
			return nil, err
		}
	}
	rows := slices.Repeat([]int{f.calibrate}, n)
	s := f.newSet()
	for head, order := range orders {
		var score []float64
		if masses != nil {
			score = masses.sums[head]
		} else {
			score = f.shares(best[head], 0, rows, order)
		}
		first := slices.Index(order, 0) / f.o.Block
		l := support.New(n, f.o.Block, false, func(r int) []int32 {
			return support.Top(score[r*blocks:][:blocks], support.Budget(f.o.Sparsity, r, blocks, false), first)
		})
		l.Order = order
		put(&s.Buckets[0], head, l)
	}
	return s, nil
}

// order returns the positions sorted by their largest mean assignment, stably.
func (c *cluster) order(n int) []int32 {
	k := c.anchors.Rows
	of := make([]int, n)
	order := make([]int32, n)
	for t := range n {
		order[t] = int32(t)
		member := c.member[0][t*k:][:k]
		for i, x := range member {
			if x > member[of[t]] {
				of[t] = i
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return of[a] - of[b] })
	return order
}

// sortKeys returns the keys of a job, sorted by the order of each head.
func sortKeys(j *kern.Job, orders [][]int32) mat.Matrix {
	sorted := mat.Of(j.K.Rows, j.K.Cols, make([]float32, j.K.Rows*j.K.Cols))
	for kv, order := range orders {
		for place, t := range order {
			copy(sorted.Row(place)[kv*j.Dim:][:j.Dim], j.K.Row(int(t))[kv*j.Dim:])
		}
	}
	return sorted
}

// anchored returns a set of mode support.Anchor.
func (f *run) anchored(best []*cluster) *support.Set {
	s := f.newSet()
	s.Mode, s.Anchors = support.Anchor, &support.Anchors{K: best[0].anchors.Rows}
	for _, c := range best {
		s.Anchors.Data = append(s.Anchors.Data, c.anchors.Data...)
	}
	for i := range s.Buckets {
		for h := range s.Buckets[i].Of {
			s.Buckets[i].Of[h] = -1
		}
	}
	return s
}
