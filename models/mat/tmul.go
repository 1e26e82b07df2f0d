package mat

// tmulRows is the number of rows that TMul sums before it adds the sum to dst. It
// bounds the error and the memory that has to stay in the cache.
const tmulRows = 256

// TMul sets dst [m][n] to aᵀ·b, where a is [k][m] and b is [k][n]: the gradient of
// a layer's weights from the layer's inputs and the gradients of its outputs. dst
// shares no memory with a or b. Without rows in a and b, dst becomes zero. TMul
// panics if the shapes do not fit.
//
// Every number of dst is summed over 256 rows in ascending order, and these sums
// are added in ascending order, so that the bits do not depend on the number of
// workers. The error is at most (256 + k/256)·2⁻²³·Σ|a||b|. Workers share blocks
// of 12×64 numbers of dst; more workers than blocks do not help.
func TMul(dst, a, b Matrix, workers int) {
	dst.check()
	for i := range dst.Rows {
		clear(dst.Row(i))
	}
	AddTMul(dst, a, b, workers)
}

// AddTMul adds aᵀ·b to dst. Everything else is as for TMul.
func AddTMul(dst, a, b Matrix, workers int) {
	dst.check()
	a.check()
	b.check()
	if a.Rows != b.Rows || dst.Rows != a.Cols {
		panic(badRows)
	}
	if dst.Cols != b.Cols {
		panic(badColumns)
	}
	if dst.empty() {
		return
	}
	if workers > 1 && dst.Rows*dst.Cols*a.Rows > smallWork {
		tmulShare(dst, a, b, workers)
		return
	}
	tmulBlock(dst, a, b)
}

// tmulShare gives every task 64 columns of dst; if that makes too few tasks, it
// divides the rows, too.
func tmulShare(dst, a, b Matrix, workers int) {
	const columns = 64
	across := (dst.Cols + columns - 1) / columns
	rows := dst.Rows
	if across < 2*workers {
		down := (2*workers + across - 1) / across
		rows = max(12, (dst.Rows/down+11)/12*12)
	}
	down := (dst.Rows + rows - 1) / rows
	Tiles(down*across, 1, workers, func(task, _ int) {
		i, j := task/across*rows, task%across*columns
		ie, je := min(i+rows, dst.Rows), min(j+columns, dst.Cols)
		tmulBlock(dst.Slice(i, ie).Columns(j, je), a.Columns(i, ie), b.Columns(j, je))
	})
}

func tmulBlock(dst, a, b Matrix) {
	for p := 0; p < a.Rows; p += tmulRows {
		q := min(p+tmulRows, a.Rows)
		if level == Portable {
			tmulPortable(dst, a.Slice(p, q), b.Slice(p, q))
		} else {
			tmulVector(dst, a.Slice(p, q), b.Slice(p, q))
		}
	}
}

// tmulVector is tmulPortable by the kernels, several panels of columns at a time.
func tmulVector(dst, a, b Matrix) {
	args := productArgs{
		rows: dst.Rows, steps: a.Rows,
		a: &a.Data[0], aStride: 4 * a.Stride,
		bStride: 4 * b.Stride,
		cStride: 4 * dst.Stride,
	}
	for j := 0; j < dst.Cols; {
		n := min(mulPanels(), (dst.Cols-j+panel-1)/panel)
		args.b, args.c = &b.Data[j], &dst.Data[j]
		args.columns(min(n*panel, dst.Cols-j))
		tmulPanelsOf(n, &args)
		j += n * panel
	}
}

// tmulPortable adds aᵀ·b to dst, each number as one sum over all rows of a.
func tmulPortable(dst, a, b Matrix) {
	for i := range dst.Rows {
		for j := 0; j < dst.Cols; j += panel {
			out := dst.Data[i*dst.Stride+j : i*dst.Stride+min(j+panel, dst.Cols)]
			var sum [panel]float32
			for p := range a.Rows {
				f := a.Data[p*a.Stride+i]
				for q, x := range b.Data[p*b.Stride+j : p*b.Stride+j+len(out)] {
					sum[q] += float32(f * x)
				}
			}
			for q := range out {
				out[q] += sum[q]
			}
		}
	}
}
