//go:build !race

package batches

// Sparse divides the repetitions of long tests; more than 1 under the race detector.
const Sparse = 1
