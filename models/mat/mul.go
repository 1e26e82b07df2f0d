package mat

import "sync"

//go:generate go run -C gen ./product -out ../product_amd64.s -stubs ../product_amd64.go -pkg mat

// Epilogue lists the operations of a product on each number before it is stored,
// in this order: bias, old number, ReLU, Apply, Times. The zero value stores the
// product.
type Epilogue struct {
	Add   bool      // adds the old number of dst, once, to the complete sum
	Bias  []float32 // [n] added to every row; nil if there is none
	ReLU  bool      // negative numbers become zero
	Times Matrix    // factors of the shape of dst; without rows there are none

	// Apply is a function of single numbers, such as GELU; nil if there is none. All
	// workers call it, with parts of dst's rows as dst and src.
	Apply func(dst, src []float32)
}

// Sizes of the parts of a product. A product takes depth numbers of each row of a
// at a time, so that the current part of a band stays in the second-level cache,
// beside the part that is prefetched. A row is always cut at the same places, so
// that its bits depend on nothing else.
const (
	depth     = 384
	mulRows   = 240     // rows of a task; depth numbers of each stay in the second-level cache
	smallWork = 1 << 18 // multiplications that are not worth a goroutine
	fetchRows = 7       // least number of rows for prefetching; with fewer, memory is busy already
)

// Mul sets dst [rows][n] to a·w, where a is [rows][k] and w is [k][n], and applies
// e. dst shares no memory with a. If k is 0, the product is zero. Mul panics if the
// shapes do not fit.
//
// Every number is a sum of sums over up to 384 of w's rows, each in ascending
// order. Its error is at most k·2⁻²⁴·Σ|a||w| to first order, and half of that on
// the vector levels. With e.Add the old number of dst is added to the complete
// sum, so that it costs a single rounding, however large it is: a residual of a
// transformer may be 10⁴ times as large as the products. Cost: rows·k·n
// multiplications, shared among workers by rows, and by columns, too, when there
// are few rows.
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

// rows returns e for rows lo to hi-1 of dst.
func (e Epilogue) rows(lo, hi int) Epilogue {
	if e.Times.Rows > 0 {
		e.Times = e.Times.Slice(lo, hi)
	}
	return e
}

// finish applies Apply and Times, which the kernels do not, to columns lo to hi-1
// of dst, while the caches still hold them.
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

// share cuts a product into tasks by rows. If that gives a worker fewer than eight
// tasks, it cuts by columns, too.
func (w *Weights) share(dst, a Matrix, e Epilogue, workers int) {
	rows, columns := mulRows, w.n
	if dst.Rows < 2*workers*mulRows {
		// Shares are equal, of whole register blocks, and large enough that reading
		// the bands costs less than the products.
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

// bandsOfTask returns the number of bands of a task when there are down rows of
// tasks. It minimises the work of the busiest worker. Of equal solutions it prefers
// fewer bands as long as that worker has at most four tasks, because workers do not
// start at the same time.
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

// block computes columns j to end-1 of dst; a band begins at j. The parts of a
// band are used in the order in which they lie in memory, and the sums of one part
// are still in the cache when the next part is added.
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
		if kept != nil { // dst accumulates the parts, so its old numbers must wait
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

// part is the share of a product that one call of a kernel computes, within one
// band.
type part struct {
	deep, wide [2]int    // first and end column of a; first and end column of dst
	add        bool      // adds the old numbers of dst
	held       []float32 // [rows][band] further numbers to add, or nil
	bias       []float32
	relu       bool
}

// heldRows holds the old numbers of dst, [rows][band], until a sum in several
// parts is complete.
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

// args returns the arguments of the kernels that do not depend on weights and
// columns.
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

// at sets the arguments that depend on the columns: n columns from j on.
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

// mulVector is mulPortable by the kernels: all panels of the band at a time with
// AVX-512, one panel at a time with AVX2.
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

// start returns &v[i], or nil if i is beyond v; a kernel then reads nothing.
func start(v []float32, i int) *float32 {
	if i >= len(v) {
		return nil
	}
	return &v[i]
}

// mulPortable sums the products of columns deep[0] to deep[1]-1 of a, for columns
// wide[0] to wide[1]-1 of dst, and stores number of each sum.
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

// number returns the number that a kernel stores for the sum s in row i and column
// j of dst, whose old number is old.
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
