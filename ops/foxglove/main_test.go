package foxglove

import (
	"testing"

	"entropipe/ops/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
