package mat

// Weights are a k×n matrix packed for products (Mul). The zero value is 0×0;
// Pack uses its memory again. Products only read: one value may serve many
// goroutines.
type Weights struct {
	k, n int
	// Bands of 64 columns, one after the other, each with its k rows of 64
	// numbers one after the other, so that a product reads memory in order. The
	// last band is as many panels of 16 columns wide as it needs, and missing
	// columns are zeros. The form is the same at every level.
	bands []float32
	// Once they are rounded, two rows of a band are one of pairs of bf16, and
	// bands is nil.
	pairs   []uint32
	rounded bool
}

// panel is the number of columns of a panel: one vector of AVX-512, two of
// AVX2. band is the number of columns of a whole band.
const (
	panel = 16
	band  = 64
)

// Shape returns the number of rows and columns.
func (w *Weights) Shape() (k, n int) { return w.k, w.n }

// bandAt returns the band that begins with column j, and the length of its rows.
func (w *Weights) bandAt(j int) (b []float32, wide int) {
	wide = min(band, (w.n-j+panel-1)/panel*panel)
	return w.bands[j*w.k : (j+wide)*w.k], wide
}

// Pack copies b, as it is: Mul then gives A·b.
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

// PackT copies the transposed of b: Mul then gives A·bᵀ. Layers stored as
// [out][in] are packed so for their outputs, and with Pack for the gradients
// of their inputs.
func (w *Weights) PackT(b Matrix) {
	const rows = 64 // at a time, so that what is written stays in the first cache
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
