package kern

import (
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// A Ladder lets rows read more than their layout says, until δ, the share of the
// softmax that they do not read, is small enough: then the row is at most 2·B·δ
// from that of dense attention, B being the longest value. What a row reads
// depends on its own query, its keys and its layout only.
//
// δ is measured by the scores of all keys. Bounds by summaries of blocks
// (Cheap) would not do: of a trained encoder they certify no row at all, and
// they cost more than the scores.
type Ladder struct {
	Delta float64 // rows whose δ is at most this stay as they are
	// Most is how many further blocks a row may read, those with the most of its
	// softmax first, before it reads all keys instead. A row that reads blocks of
	// its own is taken by itself, so that a few are slower than all keys beside
	// other rows, unless there are thousands.
	Most int
}

// Rungs counts what a Ladder did with the rows of heads that have a layout.
type Rungs struct {
	Rows     int // all
	Extended int // that read further blocks
	Dense    int // that read all keys
	Blocks   int // added to extended rows
}

// Add adds o to r.
func (r *Rungs) Add(o Rungs) {
	r.Rows += o.Rows
	r.Extended += o.Extended
	r.Dense += o.Dense
	r.Blocks += o.Blocks
}

const badLadder = "kern: a ladder for a causal job, or not one count of rungs a job"

// AttendWithin attends the jobs as Attend does, and then again each row that l
// wants to read more; it adds to rungs[i] what became of the rows of jobs[i].
// Heads without a layout are dense as ever, and not counted. Rows that stay have
// the bits of Attend, and rows that read all keys those of dense attention. It
// panics for causal jobs: a decoder's cache drops blocks. Cost: besides
// Attend's, the scores of all keys, some two thirds of dense attention, and the
// dense attention of the rows that read all.
func (s *Scratch) AttendWithin(jobs []Job, l Ladder, rungs []Rungs, workers int) {
	if len(rungs) != len(jobs) {
		panic(badLadder)
	}
	for _, c := range s.within(jobs, l, workers) {
		rungs[c.number].Add(c.rungs)
	}
}

// within is AttendWithin; it returns the heads that have layouts.
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

// climber takes the rows of one head up a ladder.
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

// measure decides about every row, by the weights of all keys.
func (c *climber) measure(w *worker, p *pack) {
	j, l := c.job, c.job.layout(c.head)
	var sums []float64 // of six rows, by block of l's columns
	if c.Most > 0 {
		sums = make([]float64, 6*l.Cols)
	}
	for lo := 0; lo < j.Q.Rows; lo += tileRows {
		hi := min(lo+tileRows, j.Q.Rows)
		v := w.start(p, c.head, lo, hi)
		v.layout = nil // all keys, in its order
		w.read(&v, j.K.Rows)
		w.at = w.list
		for r := 0; r < hi-lo; {
			h := height(hi - lo - r)
			w.blockSums(&v, r, h, l.Block, l.Cols, sums)
			for q := r; q < r+h; q++ {
				total := float64(w.total[q])
				var shares []float64
				if c.Most > 0 {
					shares = sums[(q-r)*l.Cols:][:l.Cols]
					for b := range shares {
						shares[b] /= total
					}
				}
				c.decide(lo+q, float64(w.top[q])*math.Abs(float64(j.Scale))+math.Log(total), shares)
			}
			r += h
		}
	}
}

// measurePortable is measure as it is defined.
func (c *climber) measurePortable() {
	j, l := c.job, c.job.layout(c.head)
	shares := make([]float64, l.Cols)
	for i := range j.Q.Rows {
		whole := math.Inf(-1)
		for k := range j.K.Rows {
			whole = logAdd(whole, j.score(i, k, c.head))
		}
		clear(shares)
		for place := range l.Cols * l.Block {
			if k := keyOf(l, place); k >= 0 && k < j.K.Rows {
				shares[place/l.Block] += math.Exp(j.score(i, k, c.head) - whole)
			}
		}
		c.decide(i, whole, shares)
	}
}

// decide says what row i reads: whole is the logarithm of the sum over all keys,
// shares what each block has of it, which decide overwrites. A row with δ that is
// no number reads all.
func (c *climber) decide(i int, whole float64, shares []float64) {
	j, l := c.job, c.job.layout(c.head)
	delta := dropped(j.LogSums[i*j.Heads+c.head], whole) + slack
	if delta <= c.Delta {
		return
	}
	var add []int32
	if c.Most > 0 {
		cols, _ := l.Row((j.Offset + i) / l.Block)
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
		if !(shares[best] > 0) { // what is missing are single keys
			break
		}
		add = append(add, int32(best))
		delta -= shares[best]
		shares[best] = -1
	}
	if !(delta <= c.Delta) {
		c.dense = append(c.dense, i)
		return
	}
	c.wider = append(c.wider, wider{i, add})
	c.rungs.Blocks += len(add)
}

// again attends a row with blocks added.
func (c *climber) again(w *worker, p pack, x wider) {
	j, l := *c.job, c.job.layout(c.head)
	j.Q, j.Out, j.Offset = j.Q.Slice(x.row, x.row+1), j.Out.Slice(x.row, x.row+1), j.Offset+x.row
	j.LogSums = j.LogSums[x.row*j.Heads : (x.row+1)*j.Heads]
	j.Layouts = make([]*support.Layout, j.KVHeads)
	j.Layouts[j.kv(c.head)] = widened(l, j.Offset/l.Block, x.blocks)
	if mat.Best() == mat.Portable {
		j.attendRow(0, c.head, make([]float64, j.K.Rows), make([]float64, j.Dim))
		return
	}
	p.job = &j
	w.tile(&p, c.head, 0, 1)
}

// all attends the rows that read all keys, side by side. p is their head's pack.
func (c *climber) all(w *worker, p pack) {
	n, j := len(c.dense), c.job
	if n == 0 {
		return
	}
	from, to := j.kv(c.head)*j.Dim, (j.kv(c.head)+1)*j.Dim
	rows := make([]float32, 2*n*j.Dim)
	g := Job{Q: mat.Of(n, j.Dim, rows[:n*j.Dim]), Out: mat.Of(n, j.Dim, rows[n*j.Dim:]), K: j.K.Columns(from, to), V: j.V.Columns(from, to),
		Heads: 1, KVHeads: 1, Dim: j.Dim, Scale: j.Scale, LogSums: make([]float64, n)}
	for at, i := range c.dense {
		copy(g.Q.Row(at), j.query(i, c.head))
	}
	if mat.Best() == mat.Portable {
		weights, sum := make([]float64, j.K.Rows), make([]float64, j.Dim)
		for at := range n {
			g.attendRow(at, 0, weights, sum)
		}
	} else {
		if p.ordered() { // dense attention has the keys' own order
			p = pack{job: &g, panels: g.packedPanels(0)}
			p.fill(w.room(p.size()), &w.tmp)
		}
		p.job, p.kv = &g, 0
		p.tiles(func(_, lo, hi int) { w.tile(&p, 0, lo, hi) })
	}
	for at, i := range c.dense {
		copy(j.out(i, c.head), g.Out.Row(at))
		j.LogSums[i*j.Heads+c.head] = g.LogSums[at]
	}
}

// widened returns a layout with row r of l and blocks added to it, whole, and
// nothing in the rows before.
func widened(l *support.Layout, r int, add []int32) *support.Layout {
	cols, kinds := l.Row(r)
	w := &support.Layout{Block: l.Block, Rows: r + 1, Cols: l.Cols, RowPtr: make([]int32, r+2), Order: l.Order}
	w.Col, w.Kind = slices.Clone(cols), slices.Clone(kinds)
	for _, b := range add {
		at, _ := slices.BinarySearch(w.Col, b)
		w.Col = slices.Insert(w.Col, at, b)
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
