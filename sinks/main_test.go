package sinks

import (
	"runtime/debug"
	"testing"

	"entropipe/ops/leaktest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // heaps are small, and collections would take a third of the time
	leaktest.Main(m)
}
