//go:build !race

package batches

const Sparse = 1
