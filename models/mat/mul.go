package mat

//go:generate go run -C gen ./product -out ../product_amd64.s -stubs ../product_amd64.go -pkg mat

// Epilogue is what a product does with a number before it stores it: bias, then
// ReLU or another function, then a factor. The zero value stores the product.
type Epilogue struct {
	Add   bool      // begin with what dst holds instead of zero
	Bias  []float32 // added to every row; nil: none
	ReLU  bool      // negative numbers become zero
	Times Matrix    // numbers of dst's shape that the result is multiplied with; no rows: none

	// Apply is a function of single numbers, such as GELU; nil: none. It is
	// called with parts of dst's rows, from all workers.
	Apply func(dst, src []float32)
}

// How a product is cut. Rows of a are taken depth numbers at a time, so that
// the part of a band in use stays in the second cache, beside the one that is
// fetched; where a row is cut does not change its bits, because the sum goes on
// from what is stored.
const (
	depth     = 384
	mulRows   = 240     // of a task; with depth numbers each they stay in the second cache
	smallWork = 1 << 18 // multiplications that are not worth a goroutine
	fetchRows = 7       // with fewer, memory is busy enough
)

// Mul sets dst to a·w, with e applied. dst has a's rows and w's columns, and
// shares no memory with a. A matrix of no columns times one of no rows is zero.
//
// Every number is one sum over w's rows in ascending order. Its error is at
// most k·2⁻²⁴·Σ|a||w| to first order, half of that on the vector levels. Cost:
// rows·k·n multiplications, shared among workers by rows, and by columns too
// when the rows are few.
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
	var rounded *roundedRows
	if w.rounded {
		steps, rounded = pairsOf(w.k), roundRows(a)
		defer rounded.free()
	}
	for ; j < end; j += band {
		hi := min(j+band, end)
		for p := 0; ; p += depth {
			q := min(p+depth, steps)
			part := Epilogue{Add: e.Add || p > 0}
			if q == steps {
				part.Bias, part.ReLU = e.Bias, e.ReLU
			}
			switch {
			case w.rounded:
				w.mulPairs(dst, rounded, part, [2]int{p, q}, [2]int{j, hi})
			case level == Portable:
				w.mulPortable(dst, a, part, [2]int{p, q}, [2]int{j, hi})
			default:
				w.mulVector(dst, a, part, [2]int{p, q}, [2]int{j, hi})
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

// mulVector is mulPortable, for at most one band: all of its panels at a time,
// or one.
func (w *Weights) mulVector(dst, a Matrix, e Epilogue, deep, wide [2]int) {
	b, step := w.bandAt(wide[0])
	b = b[deep[0]*step:]
	args := productArgs{
		rows: dst.Rows, steps: deep[1] - deep[0],
		a: start(a.Data, deep[0]), aStride: 4 * a.Stride,
		bStride: 4 * step,
		cStride: 4 * dst.Stride,
	}
	if e.Add {
		args.add = 1
	}
	if e.ReLU {
		args.relu = 1
	}
	if dst.Rows >= fetchRows {
		next := wide[0]*w.k + deep[1]*step
		args.ahead = fetching(w.bands, next, next+depth*step)
	}
	for j := wide[0]; j < wide[1]; {
		n := min(mulPanels(), (wide[1]-j+panel-1)/panel)
		args.b, args.c = start(b, j-wide[0]), &dst.Data[j]
		if e.Bias != nil {
			args.bias = &e.Bias[j]
		}
		args.columns(min(n*panel, wide[1]-j))
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
func (w *Weights) mulPortable(dst, a Matrix, e Epilogue, deep, wide [2]int) {
	b, step := w.bandAt(wide[0])
	for i := range dst.Rows {
		x := a.Data[i*a.Stride+deep[0] : i*a.Stride+deep[1]]
		for j := wide[0]; j < wide[1]; j += panel {
			out := dst.Data[i*dst.Stride+j : i*dst.Stride+min(j+panel, wide[1])]
			var sum [panel]float32
			if e.Add {
				copy(sum[:], out)
			}
			for p, f := range x {
				r := (*[panel]float32)(b[(deep[0]+p)*step+j-wide[0]:])
				for q := range sum {
					sum[q] += float32(f * r[q])
				}
			}
			for q := range out {
				out[q] = e.number(sum[q], j+q)
			}
		}
	}
}

// number is what becomes of a sum in column j before it is stored the first
// time.
func (e *Epilogue) number(s float32, j int) float32 {
	if e.Bias != nil {
		s += e.Bias[j]
	}
	if e.ReLU {
		s = max(s, 0)
	}
	return s
}
