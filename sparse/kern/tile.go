package kern

import (
	"math"
	"slices"

	"entropipe/sparse/support"
)

// How a tile is cut. Rows of a tile share their list of panels; groups of up to
// 6 rows take a chunk of it through scores, weights and values while the scores
// stay in the first cache, and the chunk's keys and values in the second.
const (
	tileRows = 64
	chunk    = 32                  // panels
	lead     = chunk*panel + panel // of a row of scores; a power of 2 would use few cache sets
)

// worker is the memory of one goroutine.
type worker struct {
	scores             []float32 // [6][lead]
	queries            []float32 // [tileRows][Dim]
	sums               []float32 // [tileRows][wide]
	top, total, factor [tileRows]float32
	list               []int32 // panels that the tile reads
	at                 []int32 // where the keys of each are packed
	located            []int32 // of a paged job, that
	ascending          []int32 // 0, 1, 2, …
	bits               []int32 // of each panel, where its bits begin in the layout's; -1: none. Empty: no panel has any
	tmp                []float32
	packed             []float32
}

// view is a tile being worked on.
type view struct {
	*pack
	layout   *support.Layout
	lo, head int // the first query, and its head
	scale    float32
	// Values, and how many bytes lie between panels and between keys. listed
	// says that w.at has their panels, as it has those of keys; else they lie in
	// the job, all but those of a last panel that lacks some.
	data        []float32
	panel, step int
	listed      bool
}

var minusInf = float32(math.Inf(-1))

// tile computes queries lo to hi-1 of a head, which share a row of its layout.
func (w *worker) tile(p *pack, head, lo, hi int) {
	v := w.start(p, head, lo, hi)
	w.run(&v, hi-lo)
	w.finish(&v, hi-lo)
}

// row returns the query and head of row r of the tile.
func (v *view) row(r int) (i, h int) {
	if v.job.abreast() {
		return 0, v.head + r
	}
	return v.lo + r, v.head
}

// horizon is the number of keys that row r of the tile may see by position.
func (v *view) horizon(r int) int {
	i, _ := v.row(r)
	return v.job.horizon(i)
}

// start makes a tile ready: queries lo to hi-1 of a head, or as many heads of
// one query.
func (w *worker) start(p *pack, head, lo, hi int) view {
	j := p.job
	rows := hi - lo
	v := view{pack: p, layout: j.layout(head), lo: lo, head: head, scale: float32(math.Abs(float64(j.Scale)) * math.Log2E)}
	v.data, v.panel, v.step, v.listed = p.values, 4*panel*j.wide(), 4*j.wide(), true
	w.begin(rows, j.Dim, j.wide())
	for r := range rows {
		q := w.queries[r*j.Dim:][:j.Dim]
		copy(q, j.query(v.row(r)))
		if j.Scale < 0 {
			for c := range q {
				q[c] = -q[c]
			}
		}
	}
	w.read(&v, v.horizon(rows-1))
	w.at = w.list
	if j.Paged != nil {
		w.located = p.locate(w.located, w.list)
		w.at = w.located
		return v
	}
	fetchRows(j.Out, lo, rows, head*j.Dim, j.Dim) // they are written at the end
	if next := min(rows, j.Q.Rows-hi); next > 0 {
		fetchRows(j.Q, hi, next, head*j.Dim, j.Dim)
	}
	return v
}

// run takes the rows of a tile through its list.
func (w *worker) run(v *view, rows int) {
	for at := 0; at < len(w.list); at += chunk {
		for r := 0; r < rows; {
			h := height(rows - r)
			if n := w.weights(v, r, h, at, min(at+chunk, len(w.list))); n > 0 {
				w.values(v, r, h, at, n)
			}
			r += h
		}
	}
}

// finish writes the rows.
func (w *worker) finish(v *view, rows int) {
	j, wide := v.job, v.job.wide()
	for r := range rows {
		by := float32(0)
		if w.total[r] > 0 {
			by = 1 / w.total[r]
		}
		i, h := v.row(r)
		scaled(j.out(i, h), w.sums[r*wide:], by)
		if j.LogSums != nil {
			j.LogSums[i*j.Heads+h] = float64(w.top[r])*math.Abs(float64(j.Scale)) + math.Log(float64(w.total[r]))
		}
	}
}

// scaled sets dst to src times by.
func scaled(dst, src []float32, by float32) {
	done := len(dst) / 8 * 8
	if done > 0 {
		scaleAVX2(&dst[0], &src[0], done/8, by)
	}
	for c := done; c < len(dst); c++ {
		dst[c] = src[c] * by
	}
}

// begin makes room for a tile and forgets the last one.
func (w *worker) begin(rows, dim, wide int) {
	if w.scores == nil {
		w.scores = make([]float32, 6*lead)
	}
	if len(w.queries) < tileRows*dim {
		w.queries = make([]float32, tileRows*dim)
	}
	if len(w.sums) < tileRows*wide {
		w.sums = make([]float32, tileRows*wide)
	}
	clear(w.sums[:rows*wide])
	for r := range rows {
		w.top[r], w.total[r] = minusInf, 0
	}
}

// read lists the panels of the tile; end is the number of keys up to which its
// last row may look. Panels beyond are left out at the end only: where a chunk
// begins must not depend on which rows share the tile.
func (w *worker) read(v *view, end int) {
	w.list, w.bits = w.list[:0], w.bits[:0]
	l := v.layout
	panels := v.panels
	if v.order == nil {
		panels = min(panels, (end+panel-1)/panel)
	}
	if l == nil {
		for p := range panels {
			w.list = append(w.list, int32(p))
		}
		return
	}
	row := (v.job.Offset + v.lo) / l.Block
	per := l.Block / panel
	cols, kinds := l.Row(row)
	for _, c := range cols {
		for p := int(c) * per; p < min((int(c)+1)*per, panels); p++ {
			w.list = append(w.list, int32(p))
		}
	}
	if !slices.Contains(kinds, support.Masked) {
		return
	}
	masked := maskedBefore(l, row)
	for i, c := range cols {
		for p := int(c) * per; p < min((int(c)+1)*per, panels); p++ {
			at := int32(-1)
			if kinds[i] == support.Masked {
				at = int32(masked*l.Block*l.Block + (p-int(c)*per)*panel)
			}
			w.bits = append(w.bits, at)
		}
		if kinds[i] == support.Masked {
			masked++
		}
	}
}

// weights sets w.scores to the weights of rows r to r+h-1 of the tile, for
// panels from to to-1 of its list, or the first n of them: the others are
// beyond these rows.
func (w *worker) weights(v *view, r, h, from, to int) (n int) {
	j := v.job
	end := v.horizon(r + h - 1)
	if v.order == nil {
		for to > from && int(w.list[to-1])*panel >= end {
			to--
		}
	}
	if to == from {
		return 0
	}
	n = to - from
	args := productArgs{
		a: &w.queries[r*j.Dim], aStride: 4 * j.Dim,
		b: &v.keys[0], bPanel: 4 * v.keyPanel, steps: j.Dim,
		cStride: 4 * lead,
	}
	for i, most := 0, widest(); i < n; {
		by := width(n-i, most)
		args.count = (n - i) / by
		args.list, args.c = &w.at[from+i], &w.scores[i*panel]
		scores(h, by, &args)
		i += args.count * by
	}
	w.cut(v, r, h, from, to)
	if n%2 == 1 { // weights come in pairs of panels
		for q := range h {
			fill(w.scores[q*lead+n*panel:][:panel])
		}
	}
	weigh(&weightArgs{
		s: &w.scores[0], stride: 4 * lead, rows: h, pairs: (n + 1) / 2, scale: v.scale,
		top: &w.top[r], total: &w.total[r], factor: &w.factor[r],
	})
	return n
}

// values adds to the sums of rows r to r+h-1 what the weights make of the
// values of n panels, from from on in the list.
func (w *worker) values(v *view, r, h, from, n int) {
	if v.listed {
		w.product(v, r, h, w.at[from:from+n], 0, &w.factor[r])
		return
	}
	list, factors := w.list[from:from+n], &w.factor[r]
	if last := int(list[n-1]); (last+1)*panel > v.job.K.Rows {
		if n > 1 {
			w.product(v, r, h, list[:n-1], 0, factors)
			factors = &ones[0]
		}
		tail := *v
		tail.data, tail.step = v.pack.values, 4*v.job.wide()
		w.product(&tail, r, h, w.ascending[:1], n-1, factors)
		return
	}
	w.product(v, r, h, list, 0, factors)
}

var ones = [6]float32{1, 1, 1, 1, 1, 1}

// product is values for the panels in list, whose weights begin at panel at.
func (w *worker) product(v *view, r, h int, list []int32, at int, factors *float32) {
	wide := v.job.wide()
	args := productArgs{
		a: &w.scores[at*panel], aStride: 4 * lead,
		bPanel: v.panel, bStep: v.step, list: &list[0], count: len(list),
		cStride: 4 * wide, factors: factors,
	}
	for c, most := 0, widest(); c < wide; {
		by := width((wide-c)/panel, most)
		args.b, args.c = &v.data[c], &w.sums[r*wide+c]
		values(h, by, &args)
		c += by * panel
	}
}

func fill(s []float32) {
	for i := range s {
		s[i] = minusInf
	}
}

// cut takes away the scores of keys that a row does not see.
func (w *worker) cut(v *view, r, h, from, to int) {
	first := v.horizon(r)
	for i := to - 1; i >= from; i-- {
		place := int(w.list[i]) * panel
		whole := place+panel <= first
		if v.order != nil {
			whole = int(v.last[w.list[i]]) < first
		}
		switch {
		case whole && len(w.bits) == 0 && v.order == nil:
			return // and so are all before it
		case whole && (len(w.bits) == 0 || w.bits[i] < 0):
			continue
		}
		for q := range h {
			s := w.scores[q*lead+(i-from)*panel:][:panel]
			end := v.horizon(r + q)
			if v.order == nil {
				fill(s[max(0, min(end-place, panel)):])
			} else {
				for c, key := range v.order[place : place+panel] {
					if int(key) >= end {
						s[c] = minusInf
					}
				}
			}
			if len(w.bits) > 0 && w.bits[i] >= 0 {
				query, _ := v.row(r + q)
				w.clearBits(v, s, query, int(w.bits[i]))
			}
		}
	}
}

// clearBits takes away the scores of a query that bits of the layout do not
// select; at is where the panel's begin in the block's first row.
func (w *worker) clearBits(v *view, s []float32, query, at int) {
	l := v.layout
	at += (v.job.Offset + query) % l.Block * l.Block
	bits := l.Bits[at/64] >> (at % 64)
	for c := range s {
		if bits>>c&1 == 0 {
			s[c] = minusInf
		}
	}
}
