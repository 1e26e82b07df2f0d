package compact

import (
	"flag"
	"testing"

	"entropipe/ops/leaktest"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "20") // a check reads all files of two outputs; the command line may say more
	leaktest.Main(m)
}
