package s3_test

import (
	"flag"
	"os"
	"testing"
)

// Most tests wait for tries again: some more of them than there are processors run at a time.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}
