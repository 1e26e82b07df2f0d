package kern

import (
	"math"
	"slices"

	"entropipe/sparse/support"
)

// Sizes within a tile. The rows of a tile share one list of panels. Groups of up
// to 6 rows take a chunk of that list through scores, weights and values, so that
// the scores stay in the first-level cache, and the chunk's keys and values in
// the second-level cache.
const (
	tileRows = 64
	chunk    = 32                  // panels
	lead     = chunk*panel + panel // stride of a row of scores; a power of 2 would use few cache sets
)

// worker is the memory of one goroutine.
type worker struct {
	scores             []float32 // [6][lead]
	queries            []float32 // [tileRows][Dim]
	sums               []float32 // [tileRows][wide]
	top, total, factor [tileRows]float32
	list               []int32 // panels that the tile reads
	at                 []int32 // position of each listed panel among the packed keys
	located            []int32 // at of a paged job
	ascending          []int32 // 0, 1, 2, …
	bits               []int32 // offset of each listed panel's bits in layout.Bits, or -1; empty if no panel is masked
	tmp                []float32
	packed             []float32
}

// tileView is the tile that a worker computes.
type tileView struct {
	*pack
	layout   *support.Layout
	lo, head int // the first query, and its head
	scale    float32
	// data holds the values; panel and step are the bytes from panel to panel
	// and from key to key. If listed, w.at indexes panels of values as it indexes
	// panels of keys. Otherwise the values lie in the job's own matrix, except
	// for a last panel with fewer than 16 keys, which is packed.
	data        []float32
	panel, step int
	listed      bool
}

var minusInf = float32(math.Inf(-1))

// tile computes queries lo to hi-1 of a head, which share a row of its layout.
func (w *worker) tile(p *pack, head, lo, hi int) {
	view := w.start(p, head, lo, hi)
	w.run(&view, hi-lo)
	w.finish(&view, hi-lo)
}

// row returns the query and head of row r of the tile.
func (v *tileView) row(r int) (query, head int) {
	if v.job.abreast() {
		return 0, v.head + r
	}
	return v.lo + r, v.head
}

// horizon returns the number of keys that row r of the tile may see by position.
func (v *tileView) horizon(r int) int {
	query, _ := v.row(r)
	return v.job.horizon(query)
}

// start prepares a tile. Its rows are queries lo to hi-1 of one head, or, where
// heads lie abreast, hi-lo heads of the job's one query.
func (w *worker) start(p *pack, head, lo, hi int) tileView {
	job := p.job
	rows := hi - lo
	scale := float32(math.Abs(float64(job.Scale)) * math.Log2E)
	view := tileView{pack: p, layout: job.layout(head), lo: lo, head: head, scale: scale}
	view.data, view.panel, view.step, view.listed = p.values, 4*panel*job.wide(), 4*job.wide(), true
	w.begin(rows, job.Dim, job.wide())
	for r := range rows {
		query := w.queries[r*job.Dim:][:job.Dim]
		copy(query, job.query(view.row(r)))
		if job.Scale < 0 {
			for c := range query {
				query[c] = -query[c]
			}
		}
	}
	w.read(&view, view.horizon(rows-1))
	w.at = w.list
	if job.Paged != nil {
		w.located = p.locate(w.located, w.list)
		w.at = w.located
		return view
	}
	fetchRows(job.Out, lo, rows, head*job.Dim, job.Dim) // finish writes these rows
	if next := min(rows, job.Q.Rows-hi); next > 0 {
		fetchRows(job.Q, hi, next, head*job.Dim, job.Dim)
	}
	return view
}

// run adds all listed panels to the rows of a tile.
func (w *worker) run(view *tileView, rows int) {
	for at := 0; at < len(w.list); at += chunk {
		for r := 0; r < rows; {
			group := height(rows - r)
			if n := w.weights(view, r, group, at, min(at+chunk, len(w.list))); n > 0 {
				w.values(view, r, group, at, n)
			}
			r += group
		}
	}
}

// finish divides the sums by the totals and writes the rows to the job.
func (w *worker) finish(view *tileView, rows int) {
	job, wide := view.job, view.job.wide()
	for r := range rows {
		by := float32(0)
		if w.total[r] > 0 {
			by = 1 / w.total[r]
		}
		query, head := view.row(r)
		scaled(job.out(query, head), w.sums[r*wide:], by)
		if job.LogSums != nil {
			top := float64(w.top[r]) * math.Abs(float64(job.Scale))
			job.LogSums[query*job.Heads+head] = top + math.Log(float64(w.total[r]))
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

// begin makes room for a tile and resets the sums of its rows.
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

// read lists the panels of the tile; end is the number of keys that its last row
// may see. read omits panels beyond end only at the end of the list: the place
// where a chunk begins must not depend on which rows share the tile.
func (w *worker) read(view *tileView, end int) {
	w.list, w.bits = w.list[:0], w.bits[:0]
	layout := view.layout
	panels := view.panels
	if view.order == nil {
		panels = min(panels, (end+panel-1)/panel)
	}
	if layout == nil {
		for i := range panels {
			w.list = append(w.list, int32(i))
		}
		return
	}
	row := (view.job.Offset + view.lo) / layout.Block
	per := layout.Block / panel
	cols, kinds := layout.Row(row)
	for _, column := range cols {
		for i := int(column) * per; i < min((int(column)+1)*per, panels); i++ {
			w.list = append(w.list, int32(i))
		}
	}
	if !slices.Contains(kinds, support.Masked) {
		return
	}
	masked := maskedBefore(layout, row)
	for entry, column := range cols {
		for i := int(column) * per; i < min((int(column)+1)*per, panels); i++ {
			at := int32(-1)
			if kinds[entry] == support.Masked {
				at = int32(masked*layout.Block*layout.Block + (i-int(column)*per)*panel)
			}
			w.bits = append(w.bits, at)
		}
		if kinds[entry] == support.Masked {
			masked++
		}
	}
}

// weights computes the weights of rows r to r+rows-1 of the tile for panels from
// to to-1 of its list and leaves them in w.scores. It returns the number n of
// panels that it computed: the first n of them, as the others lie beyond what
// these rows may see.
func (w *worker) weights(view *tileView, r, rows, from, to int) (n int) {
	job := view.job
	end := view.horizon(r + rows - 1)
	if view.order == nil {
		for to > from && int(w.list[to-1])*panel >= end {
			to--
		}
	}
	if to == from {
		return 0
	}
	n = to - from
	args := productArgs{
		a: &w.queries[r*job.Dim], aStride: 4 * job.Dim,
		b: &view.keys[0], bPanel: 4 * view.keyPanel, steps: job.Dim,
		cStride: 4 * lead,
	}
	for i, most := 0, widest(); i < n; {
		by := width(n-i, most)
		args.count = (n - i) / by
		args.list, args.c = &w.at[from+i], &w.scores[i*panel]
		scores(rows, by, &args)
		i += args.count * by
	}
	w.cut(view, r, rows, from, to)
	if n%2 == 1 { // weights come in pairs of panels
		for q := range rows {
			fill(w.scores[q*lead+n*panel:][:panel])
		}
	}
	weigh(&weightArgs{
		s: &w.scores[0], stride: 4 * lead, rows: rows, pairs: (n + 1) / 2, scale: view.scale,
		top: &w.top[r], total: &w.total[r], factor: &w.factor[r],
	})
	return n
}

// values multiplies the weights of rows r to r+rows-1 by the values of n panels,
// from place from of the list on, and adds the products to the sums.
func (w *worker) values(view *tileView, r, rows, from, n int) {
	if view.listed {
		w.product(view, r, rows, w.at[from:from+n], 0, &w.factor[r])
		return
	}
	list, factors := w.list[from:from+n], &w.factor[r]
	if last := int(list[n-1]); (last+1)*panel > view.job.K.Rows {
		if n > 1 {
			w.product(view, r, rows, list[:n-1], 0, factors)
			factors = &ones[0]
		}
		tail := *view
		tail.data, tail.step = view.pack.values, 4*view.job.wide()
		w.product(&tail, r, rows, w.ascending[:1], n-1, factors)
		return
	}
	w.product(view, r, rows, list, 0, factors)
}

var ones = [6]float32{1, 1, 1, 1, 1, 1}

// product is values for the panels in list, whose weights begin at panel at.
func (w *worker) product(view *tileView, r, rows int, list []int32, at int, factors *float32) {
	wide := view.job.wide()
	args := productArgs{
		a: &w.scores[at*panel], aStride: 4 * lead,
		bPanel: view.panel, bStep: view.step, list: &list[0], count: len(list),
		cStride: 4 * wide, factors: factors,
	}
	for c, most := 0, widest(); c < wide; {
		by := width((wide-c)/panel, most)
		args.b, args.c = &view.data[c], &w.sums[r*wide+c]
		values(rows, by, &args)
		c += by * panel
	}
}

func fill(scores []float32) {
	for i := range scores {
		scores[i] = minusInf
	}
}

// cut sets to minus infinity the scores of keys that a row does not see.
func (w *worker) cut(view *tileView, r, rows, from, to int) {
	first := view.horizon(r)
	for i := to - 1; i >= from; i-- {
		place := int(w.list[i]) * panel
		whole := place+panel <= first
		if view.order != nil {
			whole = int(view.last[w.list[i]]) < first
		}
		switch {
		case whole && len(w.bits) == 0 && view.order == nil:
			return // the panels before it are whole, too
		case whole && (len(w.bits) == 0 || w.bits[i] < 0):
			continue
		}
		for q := range rows {
			scores := w.scores[q*lead+(i-from)*panel:][:panel]
			end := view.horizon(r + q)
			if view.order == nil {
				fill(scores[max(0, min(end-place, panel)):])
			} else {
				for c, key := range view.order[place : place+panel] {
					if int(key) >= end {
						scores[c] = minusInf
					}
				}
			}
			if len(w.bits) > 0 && w.bits[i] >= 0 {
				query, _ := view.row(r + q)
				w.clearBits(view, scores, query, int(w.bits[i]))
			}
		}
	}
}

// clearBits sets to minus infinity the scores of keys that the layout's bits do
// not select for a query. at is the offset of the panel's bits in the block's
// first row.
func (w *worker) clearBits(view *tileView, scores []float32, query, at int) {
	layout := view.layout
	at += (view.job.Offset + query) % layout.Block * layout.Block
	bits := layout.Bits[at/64] >> (at % 64)
	for c := range scores {
		if bits>>c&1 == 0 {
			scores[c] = minusInf
		}
	}
}
