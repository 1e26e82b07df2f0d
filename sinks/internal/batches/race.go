//go:build race

package batches

// Sparse divides the repetitions of long tests: under the race detector they take ten
// times as long, and the detector looks for something else.
var Sparse = 16
