package kern

import (
	"cmp"
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// A Ladder lets rows read more than their layout says, when their certificate
// (Cheap) does not bound δ as wanted: the next best blocks by their upper
// bounds, and then all keys. What a row reads depends on that row's query, its
// keys and its layout only.
type Ladder struct {
	Delta float64 // rows whose upper bound of δ is at most this stay as they are
	Most  int     // blocks that are added before a row reads all keys
}

// Rungs counts what a Ladder did, by rows of heads.
type Rungs struct {
	Rows     int // all
	Extended int // that read further blocks
	Dense    int // that read all keys
	Blocks   int // added to extended rows
}

// AttendWithin attends j as Attend does, and then again each row that the
// ladder wants to read more. Heads without a layout are left as they are. It is
// for encoders with mode static or anchor: a causal decoder, whose cache drops
// blocks, has no ladder. Cost: besides Attend's, summaries of keys (NewCertifier),
// for every row and block that it does not read Dim multiplications, and one
// attention of a single row for each that is extended.
func (s *Scratch) AttendWithin(j *Job, l Ladder, workers int) Rungs {
	within := *j
	within.LogSums = make([]float64, j.Q.Rows*j.Heads)
	s.Attend([]Job{within}, workers)
	heads := make([]Rungs, j.Heads)
	s.grow(max(workers, 1))
	mat.Share(j.Heads, workers, func(h, who int) {
		heads[h].Rows = j.Q.Rows
		if within.layout(h) != nil && j.K.Rows > 0 {
			c := climber{&l, NewCertifier(&within, h, panel), s.workers[who], [2]pack{}, &heads[h]}
			c.head()
		}
	})
	all := Rungs{}
	for _, r := range heads {
		all.Rows += r.Rows
		all.Extended += r.Extended
		all.Dense += r.Dense
		all.Blocks += r.Blocks
	}
	if j.LogSums != nil {
		copy(j.LogSums, within.LogSums)
	}
	return all
}

// climber takes the rows of one head up a ladder.
type climber struct {
	*Ladder
	*Certifier
	worker *worker
	packs  [2]pack // by the layout's order, and by the keys' own
	rungs  *Rungs
}

func (c *climber) head() {
	for i := range c.job.Q.Rows {
		add, dense := c.climb(i)
		switch {
		case dense:
			c.rungs.Dense++
			c.again(i, nil, true)
		case len(add) > 0:
			c.rungs.Extended++
			c.rungs.Blocks += len(add)
			c.again(i, add, false)
		}
	}
}

// climb returns the column blocks that row i reads besides, or that it reads all
// keys.
func (c *climber) climb(i int) (add []int, dense bool) {
	t := tail{c: c.Certifier, query: c.job.query(i, c.Certifier.head), i: i}
	t.split()
	kept := c.job.LogSums[i*c.job.Heads+c.Certifier.head]
	if !(kept > math.Inf(-1)) { // no key, or not a number
		return nil, true
	}
	keys := math.Inf(-1) // single keys that were not read
	for _, k := range t.keys {
		keys = logAdd(keys, c.job.score(i, int(k), c.Certifier.head))
	}
	ups := make([]float64, len(t.blocks))
	order := make([]int, len(t.blocks))
	for b, s := range t.blocks {
		order[b] = b
		_, ups[b] = t.block(s)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ups[b], ups[a]) })
	for n := 0; ; n++ {
		up := keys
		for _, b := range order[n:] {
			up = logAdd(up, ups[b])
		}
		if shareOf(up, kept) <= c.Delta {
			return add, false
		}
		if n == len(order) || n == c.Most {
			return nil, true
		}
		next := t.blocks[order[n]]
		for _, k := range next.keys {
			kept = logAdd(kept, c.job.score(i, int(k), c.Certifier.head))
		}
		add = append(add, next.column)
	}
}

// again attends row i with blocks added, or with all keys where dense is set.
func (c *climber) again(i int, add []int, dense bool) {
	j, h := *c.job, c.Certifier.head
	j.Q, j.Out, j.Offset = j.Q.Slice(i, i+1), j.Out.Slice(i, i+1), j.Offset+i
	j.LogSums = j.LogSums[i*j.Heads : (i+1)*j.Heads]
	own := j.layout(h)
	j.Layouts = make([]*support.Layout, j.KVHeads)
	if !dense {
		j.Layouts[j.kv(h)] = widened(own, j.Offset/own.Block, add)
	}
	if mat.Best() == mat.Portable {
		j.attendRow(0, h, make([]float64, j.K.Rows), make([]float64, j.Dim))
		return
	}
	p := &c.packs[0]
	if dense {
		p = &c.packs[1]
	}
	p.job = &j
	if p.keys == nil {
		p.kv, p.panels = j.kv(h), j.packedPanels(j.kv(h))
		p.fill(make([]float32, p.size()), &c.worker.tmp)
	}
	c.worker.tile(p, h, 0, 1)
}

// widened returns a layout with row r of l and blocks added to it, whole, and
// nothing in the rows before.
func widened(l *support.Layout, r int, add []int) *support.Layout {
	cols, kinds := l.Row(r)
	w := &support.Layout{Block: l.Block, Rows: r + 1, Cols: l.Cols, RowPtr: make([]int32, r+2), Order: l.Order}
	w.Col, w.Kind = slices.Clone(cols), slices.Clone(kinds)
	for _, b := range add {
		at, _ := slices.BinarySearch(w.Col, int32(b))
		w.Col = slices.Insert(w.Col, at, int32(b))
		w.Kind = slices.Insert(w.Kind, at, support.Edge)
	}
	w.RowPtr[r+1] = int32(len(w.Col))
	first, n := maskedBefore(l, r), 0
	for _, k := range kinds {
		if k == support.Masked {
			n++
		}
	}
	w.Bits = l.Bits[first*l.Words() : (first+n)*l.Words()]
	return w
}
