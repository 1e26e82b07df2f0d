//go:build readers

package compact

import (
	"testing"

	"entropipe/sinks"
	"entropipe/sinks/read"
	"entropipe/sinks/s3/s3test"
)

// Law: DuckDB and Polars count the rows of the files that a list names as verify does.
func TestListsInPython(t *testing.T) {
	out, with, roots := localPair(t)
	mustBeReadAsItGrows(t, out, with, roots)
	mustCount(t, with, "folder", roots.With)
}

// The same in buckets.
func TestListsOfBucketsInPython(t *testing.T) {
	server := s3test.New(t)
	out, with := server.Open(t, "lidar/all of it"), server.Open(t, "lidar/compacted")
	mustBeReadAsItGrows(t, out, with, read.Roots{Out: out.String(), With: with.String(), Endpoint: server.URL,
		Region: "us-east-1"})
}

// mustBeReadAsItGrows has readers count the rows of an output when its compaction has all of it,
// when there is a tail, and when the compaction has several files a table.
func mustBeReadAsItGrows(t *testing.T, out, with sinks.Store, roots read.Roots) {
	t.Helper()
	each := func() {
		for _, format := range []string{read.DuckDB, read.Polars} {
			mustBeRead(t, format, out, with, roots)
		}
	}
	grow(t, out, 2)
	compacted(t, out, with, Config{})
	each()
	partly(t, out, with)
	each()
	compacted(t, out, with, Config{TargetBytes: 4_000})
	each()
}
