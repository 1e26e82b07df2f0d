package mat

import "sync"

//go:generate go run -C gen ./product -out ../product_amd64.s -stubs ../product_amd64.go -pkg mat

// Epilogue is what a product does with a number before it stores it: bias, then
// ReLU or another function, then a factor. The zero value stores the product.
type Epilogue struct {
	Add   bool      // add what dst holds, once, when the sum is complete
	Bias  []float32 // added to every row; nil: none
	ReLU  bool      // negative numbers become zero
	Times Matrix    // numbers of dst's shape that the result is multiplied with; no rows: none

	// Apply is a function of single numbers, such as GELU; nil: none. It is
	// called with parts of dst's rows, from all workers.
	Apply func(dst, src []float32)
}

// How a product is cut. Rows of a are taken depth numbers at a time, so that
// the part of a band in use stays in the second cache, beside the one that is
// fetched. A row is always cut at the same places, so its bits depend on nothing
// else.
const (
	depth     = 384
	mulRows   = 240     // of a task; with depth numbers each they stay in the second cache
	smallWork = 1 << 18 // multiplications that are not worth a goroutine
	fetchRows = 7       // with fewer, memory is busy enough
)

// Mul sets dst to a·w, with e applied. dst has a's rows and w's columns, and
// shares no memory with a. A matrix of no columns times one of no rows is zero.
//
// Every number is a sum of sums over up to 384 of w's rows, each in ascending
// order. Its error is at most k·2⁻²⁴·Σ|a||w| to first order, half of that on the
// vector levels. With e.Add the number that dst held is added to the complete
// sum, so it costs one rounding, however large it is beside the products: a
// residual of a transformer may be 10⁴ times as large. Cost: rows·k·n
// multiplications, shared among workers by rows, and by columns too when the rows
// are few.
func (w *Weights) Mul(dst, a Matrix, e Epilogue, workers int) {
	dst.check()
	a.check()
	if dst.Rows != a.Rows {
		panic(badRows)
	}
	if dst.Cols != w.n || a.Cols != w.k {
		panic(badColumns)
	}
	e.check(dst)
	if dst.empty() {
		return
	}
	if workers > 1 && dst.Rows*w.n*w.k > smallWork {
		w.share(dst, a, e, workers)
		return
	}
	for lo := 0; lo < dst.Rows; lo += mulRows {
		hi := min(lo+mulRows, dst.Rows)
		w.block(dst.Slice(lo, hi), a.Slice(lo, hi), e.rows(lo, hi), 0, w.n)
	}
}

// check panics unless e fits dst.
func (e *Epilogue) check(dst Matrix) {
	if e.Bias != nil {
		lengths(dst.Cols, e.Bias)
	}
	if e.Times.Rows > 0 {
		sameShape(dst, e.Times)
	}
}

// rows is e for rows lo to hi-1 of dst.
func (e Epilogue) rows(lo, hi int) Epilogue {
	if e.Times.Rows > 0 {
		e.Times = e.Times.Slice(lo, hi)
	}
	return e
}

// finish applies what the kernels of products do not, to columns lo to hi-1 of
// dst, which the first caches still hold.
func (e *Epilogue) finish(dst Matrix, lo, hi int) {
	for i := range dst.Rows {
		row := dst.Data[i*dst.Stride+lo : i*dst.Stride+hi]
		if e.Apply != nil {
			e.Apply(row, row)
		}
		if e.Times.Rows > 0 {
			Multiply(row, row, e.Times.Data[i*e.Times.Stride+lo:i*e.Times.Stride+hi])
		}
	}
}

// share cuts a product into tasks: by rows while that gives every worker
// several, else by columns too.
func (w *Weights) share(dst, a Matrix, e Epilogue, workers int) {
	rows, columns := mulRows, w.n
	if dst.Rows < 2*workers*mulRows {
		// Equal shares of rows, of whole register blocks, but not so few that
		// the bands are read more than used.
		rows = max(96, (dst.Rows/(2*workers)+23)/24*24)
	}
	down := (dst.Rows + rows - 1) / rows
	if down < 8*workers {
		columns = band * bandsOfTask((w.n+band-1)/band, down, workers)
	}
	across := (w.n + columns - 1) / columns
	Tiles(down*across, 1, workers, func(task, _ int) {
		lo, j := task/across*rows, task%across*columns
		hi := min(lo+rows, dst.Rows)
		w.block(dst.Slice(lo, hi), a.Slice(lo, hi), e.rows(lo, hi), j, min(j+columns, w.n))
	})
}

// bandsOfTask returns how many of the bands a task takes, when there are down
// rows of tasks: as makes the busiest worker's share least, and of those the
// fewest that give it no more than four tasks, since workers do not begin
// together.
func bandsOfTask(bands, down, workers int) int {
	best, least := bands, bands*down
	for b := bands; b > 0; b-- {
		tasks := down * ((bands + b - 1) / b)
		turns := (tasks + workers - 1) / workers
		if turns*b < least || turns*b == least && turns <= 4 {
			best, least = b, turns*b
		}
	}
	return best
}

// block computes columns j to end-1 of dst; j begins a band. A band's parts
// follow each other in memory and are used in that order, and what a product
// has stored of a band is still near when it goes on from it.
func (w *Weights) block(dst, a Matrix, e Epilogue, j, end int) {
	steps := w.k
	cut := depth
	var rounded *roundedRows
	if w.rounded {
		steps, cut, rounded = pairsOf(w.k), depth/2, roundRows(a)
		defer rounded.free()
	}
	var kept *heldRows
	if e.Add && steps > cut {
		kept = heldPool.Get().(*heldRows)
		defer heldPool.Put(kept)
	}
	for ; j < end; j += band {
		hi := min(j+band, end)
		if kept != nil { // dst is where the parts are added up
			kept.take(dst, j, hi)
		}
		for p := 0; ; p += cut {
			q := min(p+cut, steps)
			part := part{add: p > 0 || e.Add && kept == nil, deep: [2]int{p, q}, wide: [2]int{j, hi}}
			if q == steps {
				part.bias, part.relu = e.Bias, e.ReLU
				if kept != nil {
					part.held = kept.data
				}
			}
			switch {
			case w.rounded:
				w.mulPairs(dst, rounded, part)
			case level == Portable:
				w.mulPortable(dst, a, part)
			default:
				w.mulVector(dst, a, part)
			}
			if q == steps {
				break
			}
		}
		if e.Apply != nil || e.Times.Rows > 0 {
			e.finish(dst, j, hi)
		}
	}
}

// part is what one call of a kernel adds to dst, of at most one band.
type part struct {
	deep, wide [2]int    // columns of a; columns of dst
	add        bool      // to what dst holds
	held       []float32 // and to this, rows of a band; nil: nothing
	bias       []float32
	relu       bool
}

// heldRows are the numbers of dst that wait until a sum in several parts is
// complete, a band wide.
type heldRows struct{ data []float32 }

var heldPool = sync.Pool{New: func() any { return new(heldRows) }}

// take copies columns lo to hi-1 of dst.
func (h *heldRows) take(dst Matrix, lo, hi int) {
	if n := dst.Rows * band; cap(h.data) < n {
		h.data = make([]float32, n)
	} else {
		h.data = h.data[:n]
	}
	for i := range dst.Rows {
		copy(h.data[i*band:(i+1)*band], dst.Data[i*dst.Stride+lo:i*dst.Stride+hi])
	}
}

// args are what the kernels are told of the part, but for weights and columns.
func (p *part) args(dst Matrix) productArgs {
	args := productArgs{rows: dst.Rows, steps: p.deep[1] - p.deep[0], cStride: 4 * dst.Stride, heldStride: 4 * band}
	if p.add {
		args.add = 1
	}
	if p.relu {
		args.relu = 1
	}
	return args
}

// at sets what depends on the columns: n of them, from j on.
func (p *part) at(args *productArgs, dst Matrix, j, n int) {
	args.c = &dst.Data[j]
	if p.bias != nil {
		args.bias = &p.bias[j]
	}
	if p.held != nil {
		args.heldAt, args.held = 0, &p.held[j-p.wide[0]]
	}
	args.columns(n)
}

// mulVector is mulPortable, for at most one band: all of its panels at a time,
// or one.
func (w *Weights) mulVector(dst, a Matrix, part part) {
	deep, wide := part.deep, part.wide
	b, step := w.bandAt(wide[0])
	b = b[deep[0]*step:]
	args := part.args(dst)
	args.a, args.aStride, args.bStride = start(a.Data, deep[0]), 4*a.Stride, 4*step
	if dst.Rows >= fetchRows {
		next := wide[0]*w.k + deep[1]*step
		args.ahead = fetching(w.bands, next, next+depth*step)
	}
	for j := wide[0]; j < wide[1]; {
		n := min(mulPanels(), (wide[1]-j+panel-1)/panel)
		args.b = start(b, j-wide[0])
		part.at(&args, dst, j, min(n*panel, wide[1]-j))
		mulPanelsOf(n, &args)
		j += n * panel
	}
}

// start is &v[i], or nil where v ends: what is read through it is then nothing.
func start(v []float32, i int) *float32 {
	if i >= len(v) {
		return nil
	}
	return &v[i]
}

// mulPortable adds the products of columns deep[0] to deep[1]-1 of a, for the
// columns from wide[0] to wide[1]-1 of dst.
func (w *Weights) mulPortable(dst, a Matrix, part part) {
	deep, wide := part.deep, part.wide
	b, step := w.bandAt(wide[0])
	for i := range dst.Rows {
		x := a.Data[i*a.Stride+deep[0] : i*a.Stride+deep[1]]
		for j := wide[0]; j < wide[1]; j += panel {
			out := dst.Data[i*dst.Stride+j : i*dst.Stride+min(j+panel, wide[1])]
			var sum [panel]float32
			for p, f := range x {
				r := (*[panel]float32)(b[(deep[0]+p)*step+j-wide[0]:])
				for q := range sum {
					sum[q] += float32(f * r[q])
				}
			}
			for q := range out {
				out[q] = part.number(sum[q], out[q], i, j+q)
			}
		}
	}
}

// number is what the kernels make of a sum in row i and column j, where dst
// holds old.
func (p *part) number(s, old float32, i, j int) float32 {
	if p.bias != nil {
		s += p.bias[j]
	}
	if p.add {
		s += old
	}
	if p.held != nil {
		s += p.held[i*band+j-p.wide[0]]
	}
	if p.relu {
		s = max(s, 0)
	}
	return s
}
