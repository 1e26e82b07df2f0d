//go:build spark

package compact

import (
	"testing"

	"entropipe/sinks/read"
)

// Law: Spark counts the rows of the files that a list names as verify does.
func TestListsInSpark(t *testing.T) {
	out, with, roots := localPair(t)
	partly(t, out, with)
	mustBeRead(t, read.Spark, out, with, roots)
}
