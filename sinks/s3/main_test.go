package s3_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// Most tests wait for tries again: some more of them than there are processors run at a time.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		flag.Set("test.parallel", "8")
	}
	debug.SetGCPercent(400) // heaps are small, and collections would take a third of the time
	os.Exit(m.Run())
}
