package kern

import (
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// A Ladder extends the rows whose layout leaves out too much: a row reads further
// keys until its δ is at most Delta. The row is then at most 2·B·δ from the row of
// dense attention, where B is the length of the longest value. The keys that a row
// reads depend on its own query, its keys and its layout only.
//
// δ is measured from the scores of all keys. Bounds from summaries of blocks
// (Cheap) are too weak: on a trained encoder they certify no row, and they cost
// more than the scores.
type Ladder struct {
	Delta float64 // rows whose δ is at most Delta are not extended
	// Most is the largest number of further blocks of a row, which are added in
	// descending order of their softmax mass. A row that would need more reads all
	// keys. An extended row is attended alone, so that, unless a sequence has
	// thousands of keys, a few such blocks cost more than all keys in a tile shared
	// with other rows.
	Most int
}

// Rungs counts rows of heads that have a layout by what a Ladder did with them.
type Rungs struct {
	Rows     int // all rows
	Extended int // rows that read further blocks
	Dense    int // rows that read all keys
	Blocks   int // blocks added to extended rows
}

// Add adds o to r.
func (r *Rungs) Add(o Rungs) {
	r.Rows += o.Rows
	r.Extended += o.Extended
	r.Dense += o.Dense
	r.Blocks += o.Blocks
}

const badLadder = "kern: a ladder was given a causal or paged job, or rungs do not match the jobs"

// AttendWithin attends the jobs as Attend does, then attends again each row that
// l extends, and adds the counts of jobs[i] to rungs[i]. Heads without a layout
// are dense and not counted. Rows that l does not extend have the bits of Attend;
// rows that read all keys have the bits of dense attention. It panics if a job is
// causal (a decoder's cache drops blocks) or paged, or if rungs and jobs differ in
// length. Cost: that of Attend, the scores of all keys (about two thirds of dense
// attention), and dense attention for the rows that read all keys.
func (s *Scratch) AttendWithin(jobs []Job, l Ladder, rungs []Rungs, workers int) {
	if len(rungs) != len(jobs) {
		panic(badLadder)
	}
	for _, c := range s.within(jobs, l, workers) {
		rungs[c.number].Add(c.rungs)
	}
}

// within attends the jobs as AttendWithin does. It returns the heads that have
// layouts, each with its counts.
func (s *Scratch) within(jobs []Job, l Ladder, workers int) []climber {
	jobs = slices.Clone(jobs)
	var heads []climber
	for i := range jobs {
		j := &jobs[i]
		if j.Causal || j.Paged != nil {
			panic(badLadder)
		}
		if j.LogSums == nil && len(j.Layouts) > 0 {
			j.LogSums = make([]float64, j.Q.Rows*j.Heads)
		}
		for h := range j.Heads {
			if j.layout(h) != nil && j.K.Rows > 0 && j.Q.Rows > 0 {
				heads = append(heads, climber{Ladder: l, job: j, number: i, head: h})
			}
		}
	}
	s.Attend(jobs, workers)
	s.grow(max(workers, 1))
	mat.Share(len(heads), workers, func(i, who int) { heads[i].climb(s.workers[who]) })
	return heads
}

// climber applies a ladder to the rows of one head.
type climber struct {
	Ladder
	job          *Job
	number, head int
	rungs        Rungs
	dense        []int // rows that read all keys
	wider        []wider
}

// wider is a row that reads further blocks.
type wider struct {
	row    int
	blocks []int32
}

func (c *climber) climb(w *worker) {
	c.rungs.Rows = c.job.Q.Rows
	p := pack{job: c.job, kv: c.job.kv(c.head), panels: c.job.packedPanels(c.job.kv(c.head))}
	if mat.Best() == mat.Portable {
		c.measurePortable()
	} else {
		p.fill(w.room(p.size()), &w.tmp)
		c.measure(w, &p)
	}
	for _, x := range c.wider {
		c.again(w, p, x)
	}
	c.all(w, p)
	c.rungs.Dense, c.rungs.Extended = len(c.dense), len(c.wider)
}

// room returns memory for n packed numbers.
func (w *worker) room(n int) []float32 {
	if cap(w.packed) < n {
		w.packed = make([]float32, n)
	}
	return w.packed[:cap(w.packed)]
}

// measure decides what every row reads, from the weights of all keys.
func (c *climber) measure(w *worker, p *pack) {
	job, layout := c.job, c.job.layout(c.head)
	var sums []float64 // [6][layout.Cols] weights of six rows, summed by block
	if c.Most > 0 {
		sums = make([]float64, 6*layout.Cols)
	}
	scale := math.Abs(float64(job.Scale))
	for lo := 0; lo < job.Q.Rows; lo += tileRows {
		hi := min(lo+tileRows, job.Q.Rows)
		view := w.start(p, c.head, lo, hi)
		view.layout = nil // the rows read all keys, in the layout's order
		w.read(&view, job.K.Rows)
		w.at = w.list
		for r := 0; r < hi-lo; {
			group := height(hi - lo - r)
			w.blockSums(&view, r, group, layout.Block, layout.Cols, sums)
			for q := r; q < r+group; q++ {
				total := float64(w.total[q])
				var shares []float64
				if c.Most > 0 {
					shares = sums[(q-r)*layout.Cols:][:layout.Cols]
					for b := range shares {
						shares[b] /= total
					}
				}
				c.decide(lo+q, float64(w.top[q])*scale+math.Log(total), shares)
			}
			r += group
		}
	}
}

// measurePortable is the definition of measure, in float64.
func (c *climber) measurePortable() {
	job, layout := c.job, c.job.layout(c.head)
	shares := make([]float64, layout.Cols)
	for i := range job.Q.Rows {
		whole := math.Inf(-1)
		for key := range job.K.Rows {
			whole = logAdd(whole, job.score(i, key, c.head))
		}
		clear(shares)
		for place := range layout.Cols * layout.Block {
			if key := keyOf(layout, place); key >= 0 && key < job.K.Rows {
				shares[place/layout.Block] += math.Exp(job.score(i, key, c.head) - whole)
			}
		}
		c.decide(i, whole, shares)
	}
}

// decide decides what row i reads. whole is ln Σ exp(score) over all keys; shares
// holds the share of each block in that sum, and decide overwrites it. A row whose
// δ is NaN reads all keys.
func (c *climber) decide(i int, whole float64, shares []float64) {
	job, layout := c.job, c.job.layout(c.head)
	delta := dropped(job.LogSums[i*job.Heads+c.head], whole) + slack
	if delta <= c.Delta {
		return
	}
	var add []int32
	if c.Most > 0 {
		cols, _ := layout.Row((job.Offset + i) / layout.Block)
		for _, b := range cols {
			shares[b] = -1
		}
	}
	for len(add) < c.Most && len(add) < len(shares) && delta > c.Delta {
		best := 0
		for b, x := range shares {
			if x > shares[best] {
				best = b
			}
		}
		if !(shares[best] > 0) { // all blocks are read; masks drop the missing keys
			break
		}
		add = append(add, int32(best))
		delta -= shares[best]
		shares[best] = -1
	}
	if !(delta <= c.Delta) { // true for NaN, too
		c.dense = append(c.dense, i)
		return
	}
	c.wider = append(c.wider, wider{i, add})
	c.rungs.Blocks += len(add)
}

// again attends one row once more, with its further blocks.
func (c *climber) again(w *worker, p pack, x wider) {
	one, layout := *c.job, c.job.layout(c.head)
	one.Q, one.Out = one.Q.Slice(x.row, x.row+1), one.Out.Slice(x.row, x.row+1)
	one.Offset += x.row
	one.LogSums = one.LogSums[x.row*one.Heads : (x.row+1)*one.Heads]
	one.Layouts = make([]*support.Layout, one.KVHeads)
	one.Layouts[one.kv(c.head)] = widened(layout, one.Offset/layout.Block, x.blocks)
	if mat.Best() == mat.Portable {
		one.attendRow(0, c.head, make([]float64, one.K.Rows), make([]float64, one.Dim))
		return
	}
	p.job = &one
	w.tile(&p, c.head, 0, 1)
}

// all attends the rows that read all keys, in common tiles. p is the pack of
// their head.
func (c *climber) all(w *worker, p pack) {
	n, job := len(c.dense), c.job
	if n == 0 {
		return
	}
	from, to := job.kv(c.head)*job.Dim, (job.kv(c.head)+1)*job.Dim
	rows := make([]float32, 2*n*job.Dim)
	gathered := Job{
		Q: mat.Of(n, job.Dim, rows[:n*job.Dim]), Out: mat.Of(n, job.Dim, rows[n*job.Dim:]),
		K: job.K.Columns(from, to), V: job.V.Columns(from, to),
		Heads: 1, KVHeads: 1, Dim: job.Dim, Scale: job.Scale, LogSums: make([]float64, n),
	}
	for at, i := range c.dense {
		copy(gathered.Q.Row(at), job.query(i, c.head))
	}
	if mat.Best() == mat.Portable {
		weights, sum := make([]float64, job.K.Rows), make([]float64, job.Dim)
		for at := range n {
			gathered.attendRow(at, 0, weights, sum)
		}
	} else {
		if p.ordered() { // dense attention reads the keys in their own order
			p = pack{job: &gathered, panels: gathered.packedPanels(0)}
			p.fill(w.room(p.size()), &w.tmp)
		}
		p.job, p.kv = &gathered, 0
		p.tiles(func(_, lo, hi int) { w.tile(&p, 0, lo, hi) })
	}
	for at, i := range c.dense {
		copy(job.out(i, c.head), gathered.Out.Row(at))
		job.LogSums[i*job.Heads+c.head] = gathered.LogSums[at]
	}
}

// widened returns a layout whose row r is row r of l with whole blocks added, and
// whose earlier rows are empty.
func widened(l *support.Layout, r int, add []int32) *support.Layout {
	cols, kinds := l.Row(r)
	wide := &support.Layout{Block: l.Block, Rows: r + 1, Cols: l.Cols, RowPtr: make([]int32, r+2), Order: l.Order}
	wide.Col, wide.Kind = slices.Clone(cols), slices.Clone(kinds)
	for _, b := range add {
		at, _ := slices.BinarySearch(wide.Col, b)
		wide.Col = slices.Insert(wide.Col, at, b)
		wide.Kind = slices.Insert(wide.Kind, at, support.Edge)
	}
	wide.RowPtr[r+1] = int32(len(wide.Col))
	first, n := maskedBefore(l, r), 0
	for _, k := range kinds {
		if k == support.Masked {
			n++
		}
	}
	wide.Bits = l.Bits[first*l.Words() : (first+n)*l.Words()]
	return wide
}
