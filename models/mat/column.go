package mat

// Column sets dst [k] to column j of the packed matrix, which is row j of the
// argument of PackT. Weights that also serve as a table, such as tied embeddings,
// need no second copy. It panics if j or len(dst) are out of range, or if the
// weights are rounded. Cost: a cache line for each number.
func (w *Weights) Column(dst []float32, j int) {
	if j < 0 || j >= w.n || len(dst) != w.k || w.rounded {
		panic(badColumns)
	}
	b, wide := w.bandAt(j / band * band)
	for i := range dst {
		dst[i] = b[i*wide+j%band]
	}
}
