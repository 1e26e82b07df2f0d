package mat

// Weights are a matrix [k][n] packed for products (Mul). The zero value is 0×0.
// Pack and PackT reuse the memory. Products only read, so that one value may serve
// many goroutines at once.
type Weights struct {
	k, n int
	// bands holds bands of 64 columns, one after the other. A band holds its k rows
	// of 64 numbers one after the other, so that a product reads memory in order.
	// The last band has as many panels of 16 columns as it needs, and missing
	// columns are zeros. The form is the same at every level.
	bands []float32
	// pairs replaces bands, which is then nil, once the weights are rounded: two
	// rows of a band become one row of pairs of bf16.
	pairs   []uint32
	rounded bool
}

// panel is the number of columns of a panel: one vector of AVX-512, two of
// AVX2. band is the number of columns of a whole band.
const (
	panel = 16
	band  = 64
)

// Shape returns the numbers of rows and columns.
func (w *Weights) Shape() (k, n int) { return w.k, w.n }

// bandAt returns the band that begins with column j, and the length of its rows.
func (w *Weights) bandAt(j int) (b []float32, wide int) {
	wide = min(band, (w.n-j+panel-1)/panel*panel)
	return w.bands[j*w.k : (j+wide)*w.k], wide
}

// Pack copies b [k][n]. Mul then computes a·b.
func (w *Weights) Pack(b Matrix) {
	b.check()
	w.reset(b.Rows, b.Cols)
	for j := 0; j < w.n; j += band {
		to, wide := w.bandAt(j)
		columns := min(band, w.n-j)
		for i := range w.k {
			row := to[i*wide : (i+1)*wide]
			clear(row[copy(row, b.Data[i*b.Stride+j:i*b.Stride+j+columns]):])
		}
	}
}

// PackT copies the transpose of b [n][k]. Mul then computes a·bᵀ. For a layer that
// is stored as [out][in], PackT serves its outputs, and Pack the gradients of its
// inputs.
func (w *Weights) PackT(b Matrix) {
	const rows = 64 // rows of a step, so that the written memory stays in the first-level cache
	b.check()
	w.reset(b.Cols, b.Rows)
	for j := 0; j < w.n; j += band {
		to, wide := w.bandAt(j)
		columns := min(band, w.n-j)
		if columns < wide {
			clear(to)
		}
		for lo := 0; lo < w.k; lo += rows {
			hi := min(lo+rows, w.k)
			for q := range columns {
				p := to[lo*wide+q:]
				for i, x := range b.Data[(j+q)*b.Stride+lo : (j+q)*b.Stride+hi] {
					p[i*wide] = x
				}
			}
		}
	}
}

func (w *Weights) reset(k, n int) {
	w.k, w.n, w.pairs, w.rounded = k, n, nil, false
	size := k * ((n + panel - 1) / panel * panel)
	if cap(w.bands) < size {
		w.bands = make([]float32, size)
	}
	w.bands = w.bands[:size]
}
