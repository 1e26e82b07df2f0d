//go:build !race

package batches

import "os"

// Sparse divides the repetitions of long tests: 3, and 1 where the environment variable
// ENTROPIPE_LONG asks for tests of minutes; more under the race detector.
var Sparse = sparse(os.Getenv("ENTROPIPE_LONG") != "")

func sparse(long bool) int {
	if long {
		return 1
	}
	return 3
}
