package mat

// Column sets dst, of the length of a column, to column j as it was packed: a row
// of what PackT copied. Weights that are a table too, such as tied embeddings, then
// need no copy of it. It panics if j or dst do not fit, or if the weights are
// rounded. Cost: a cache line for each number.
func (w *Weights) Column(dst []float32, j int) {
	if j < 0 || j >= w.n || len(dst) != w.k || w.rounded {
		panic(badColumns)
	}
	b, wide := w.bandAt(j / band * band)
	for i := range dst {
		dst[i] = b[i*wide+j%band]
	}
}
