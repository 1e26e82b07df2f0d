//go:build race

package batches

// sparse is by how much the long tests are thinned: the race detector makes
// them ten times slower, and looks for something else than they do.
const sparse = 16
