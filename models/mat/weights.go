package mat

// Weights are a k×n matrix packed for products (Mul). The zero value is 0×0;
// Pack uses its memory again. Products only read: one value may serve many
// goroutines.
type Weights struct {
	k, n int
	// Panels of 16 columns, each with its k rows of 16 numbers one after the
	// other, so that a product reads memory in order. The last panel's missing
	// columns are zeros. The form is the same at every level.
	panels []float32
}

// panel is the number of columns of a panel: one vector of AVX-512, two of AVX2.
const panel = 16

// Shape returns the number of rows and columns.
func (w *Weights) Shape() (k, n int) { return w.k, w.n }

// Pack copies b, as it is: Mul then gives A·b.
func (w *Weights) Pack(b Matrix) {
	b.check()
	w.reset(b.Rows, b.Cols)
	for j := 0; j < w.n; j += panel {
		wide := min(panel, w.n-j)
		p := w.panels[j*w.k:]
		for i := range w.k {
			clear(p[i*panel+copy(p[i*panel:i*panel+wide], b.Data[i*b.Stride+j:]) : (i+1)*panel])
		}
	}
}

// PackT copies the transposed of b: Mul then gives A·bᵀ. Layers stored as
// [out][in] are packed so for their outputs, and with Pack for the gradients
// of their inputs.
func (w *Weights) PackT(b Matrix) {
	b.check()
	w.reset(b.Cols, b.Rows)
	for j := 0; j < w.n; j += panel {
		wide := min(panel, w.n-j)
		p := w.panels[j*w.k : j*w.k+w.k*panel]
		if wide < panel {
			clear(p)
		}
		for q := range wide {
			row := b.Data[(j+q)*b.Stride : (j+q)*b.Stride+w.k]
			for i, x := range row {
				p[i*panel+q] = x
			}
		}
	}
}

func (w *Weights) reset(k, n int) {
	w.k, w.n = k, n
	size := k * ((n + panel - 1) / panel * panel)
	if cap(w.panels) < size {
		w.panels = make([]float32, size)
	}
	w.panels = w.panels[:size]
}
