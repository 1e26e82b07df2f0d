package freeze

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

const (
	tries      = 4       // sets of anchors of which the selector entropy takes the best
	sampleKeys = 2048    // keys of a head that anchors are fitted to
	lloyd      = 8       // steps of k-means
	sharpness  = 3       // of soft assignments, in the median distance between nearest and second
	balance    = 0.5     // weight of the clusters' balance in the objective
	maxSums    = 1 << 27 // float32 numbers of averages
)

// cluster is what the calibration knows of one head's keys with one set of
// anchors: means over inputs, by position.
type cluster struct {
	anchors mat.Matrix // [k][dim]
	alpha   float64    // inverse temperature of soft assignments
	member  [][]float32
	queries [][]float32 // [bucket][blocks][k]: mass that the queries of a block give to a cluster
	spread  float64     // sum of H(a_t)
	seen    float64     // queries in it
	sizes   []float64   // [k]: soft sizes
}

// clustered freezes by anchors.
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
		return nil, errors.New("freeze: too many clusters, heads and positions for this selector: take shorter buckets")
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
		best[i] = slices.MinFunc(of, func(a, b *cluster) int { return compare(a.objective(), b.objective()) })
	}
	switch {
	case f.o.Mode == support.Anchor:
		return f.anchored(best), nil
	case f.o.Permute:
		return f.permuted(best)
	}
	return f.positional(best, rows), nil
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// objective is what the selector entropy makes small: few clusters for a query,
// and clusters of like size.
func (c *cluster) objective() float64 { return c.spread/c.seen - balance*entropyOf(c.sizes) }

// entropyOf is the entropy of sizes, in nats.
func entropyOf(sizes []float64) float64 {
	all, h := 0.0, 0.0
	for _, s := range sizes {
		all += s
	}
	for _, s := range sizes {
		if s > 0 {
			h -= s / all * math.Log(s/all)
		}
	}
	return h
}

// fit takes keys of all inputs, evenly, and fits anchors to each head's.
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
			c := &cluster{anchors: kMeans(keys, k, rand.New(rand.NewPCG(f.o.Seed, uint64(h*tries+try)))), sizes: make([]float64, k)}
			c.alpha = sharpness / max(gap(keys, c.anchors), 1e-12)
			for _, n := range f.buckets {
				c.member = append(c.member, make([]float32, n*k))
				c.queries = append(c.queries, make([]float32, support.Blocks(n, f.o.Block)*k))
			}
			clusters[h] = append(clusters[h], c)
		}
	})
	return clusters, nil
}

// assign runs the inputs again and averages assignments and cluster attention
// by position. It returns how many inputs have each position, by bucket.
func (f *run) assign(clusters [][]*cluster) ([][]int, error) {
	rows := make([][]int, len(f.buckets))
	for b, n := range f.buckets {
		rows[b] = make([]int, n)
	}
	err := f.each("cluster", 0, f.calibrate, func(int) model.Options {
		return model.Options{Hook: func(layer, _ int, j *kern.Job) {
			b := f.bucket(j.Q.Rows)
			for t := 0; layer == 0 && t < j.Q.Rows; t++ {
				rows[b][t]++
			}
			mat.Tiles(j.KVHeads, 1, f.o.Workers, func(kv, _ int) {
				addAll(clusters[layer*j.KVHeads+kv], j, kv, b, f.o.Block, f.o.Select == Entropy)
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

// addAll takes one input's keys of a head, and with queries its attention to
// the clusters of each set of anchors.
func addAll(of []*cluster, j *kern.Job, kv, b, block int, queries bool) {
	n := j.K.Rows
	nearest := make([][]int, len(of))
	for i, c := range of {
		nearest[i] = c.addKeys(j, kv, b)
	}
	if !queries {
		return
	}
	w := make([]float64, n)
	for h := kv * j.Heads / j.KVHeads; h < (kv+1)*j.Heads/j.KVHeads; h++ {
		for t := range j.Q.Rows {
			end := n
			if j.Causal {
				end = t + 1
			}
			weights(w[:end], j, h, t)
			for i, c := range of {
				c.addQuery(w[:end], nearest[i], b, t/block)
			}
		}
	}
}

// addKeys returns the nearest anchor of each key.
func (c *cluster) addKeys(j *kern.Job, kv, b int) []int {
	k := c.anchors.Rows
	p, nearest := make([]float64, k), make([]int, j.K.Rows)
	for t := range nearest {
		nearest[t] = soft(p, j.K.Row(t)[kv*j.Dim:][:j.Dim], c.anchors, c.alpha)
		for i, x := range p {
			c.member[b][t*k+i] += float32(x)
			c.sizes[i] += x
		}
	}
	return nearest
}

// addQuery takes the weights that a query of block r gives to its keys.
func (c *cluster) addQuery(w []float64, nearest []int, b, r int) {
	k := c.anchors.Rows
	a := make([]float64, k)
	for key, x := range w {
		a[nearest[key]] += x
	}
	c.spread += entropyOf(a)
	c.seen++
	for i, x := range a {
		c.queries[b][r*k+i] += float32(x)
	}
}

// shares returns, for query block r, the score of every block of keys that it
// sees, in an order of the keys (nil: their own).
func (f *run) shares(c *cluster, b, r, blocks int, rows []int, order []int32) []float64 {
	k, n := c.anchors.Rows, f.buckets[b]
	seen := f.sees(r, blocks)
	parts := make([]float64, blocks*k) // soft members of a cluster in a block
	all := make([]float64, k)
	for place := range min(seen*f.o.Block, n) {
		t := place
		if order != nil {
			t = int(order[place])
		}
		for i := range k {
			x := float64(c.member[b][t*k+i]) / float64(max(rows[t], 1))
			parts[place/f.o.Block*k+i] += x
			all[i] += x
		}
	}
	want := make([]float64, k)
	for i := range want {
		if f.o.Select == Entropy {
			want[i] = float64(c.queries[b][r*k+i]) / max(all[i], 1e-12)
			continue
		}
		for t := r * f.o.Block; t < min((r+1)*f.o.Block, n); t++ {
			want[i] += float64(c.member[b][t*k+i]) / float64(max(rows[t], 1))
		}
	}
	score := make([]float64, blocks)
	for key := range seen {
		for i, x := range want {
			score[key] += x * parts[key*k+i]
		}
	}
	return score
}

// positional makes layouts in the keys' own order.
func (f *run) positional(best []*cluster, rows [][]int) *support.Set {
	return f.fromScores(func(b, head, r, blocks int) []float64 { return f.shares(best[head], b, r, blocks, rows[b], nil) })
}

// permuted sorts every head's keys by their mean assignment. The selector
// entropy then averages the mass of the sorted blocks; affinity goes by the
// clusters.
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
		l := support.New(n, f.o.Block, false, func(r int) []int32 {
			var score []float64
			if masses != nil {
				score = masses.sums[head][r*blocks:][:blocks]
			} else {
				score = f.shares(best[head], 0, r, blocks, rows, order)
			}
			return support.Top(score, support.Budget(f.o.Sparsity, r, blocks, false), slices.Index(order, 0)/f.o.Block)
		})
		l.Order = order
		put(&s.Buckets[0], head, l)
	}
	return s, nil
}

// order sorts positions by their mean assignment, stably.
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

// sortKeys returns the keys of a job in an order of each head.
func sortKeys(j *kern.Job, orders [][]int32) mat.Matrix {
	sorted := mat.Of(j.K.Rows, j.K.Cols, make([]float32, j.K.Rows*j.K.Cols))
	for kv, order := range orders {
		for place, t := range order {
			copy(sorted.Row(place)[kv*j.Dim:][:j.Dim], j.K.Row(int(t))[kv*j.Dim:])
		}
	}
	return sorted
}

// anchored is a set that routes by content.
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
