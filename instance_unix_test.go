//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Of two processes with one --group-instance the earlier ends with status 78 and says why.
// A process that takes the place of a stopped one joins without a rebalance.
func TestLaterProcessWithTheSameInstanceEndsTheEarlier(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	must(t, dir, spread(brokers, "points", "a", "--frames", "20", "--rate", "max")...)
	args := fast(brokers, "points", "--session-timeout", "4m", "--group-instance", "pod-0")
	earlier := launch(t, dir, args...)
	earlier.until(`msg=assigned .* partitions=4$`)
	later := launch(t, dir, args...)
	earlier.exits(78, patience)
	earlier.says(`another process has joined with --group-instance pod-0`)
	later.until(`msg=assigned .* partitions=4$`)
	later.signal(syscall.SIGTERM)
	later.exits(0, patience)

	back := launch(t, dir, args...)
	generation := later.until(`msg=assigned .* generation=(\d+) `)[1]
	if got := back.until(`msg=assigned .* generation=(\d+) partitions=4$`)[1]; got != generation {
		t.Errorf("the process that came back is of generation %s, want %s", got, generation)
	}
	waitFor(t, "all records", func() bool { return published(t, filepath.Join(dir, "out"), 20) })
	back.signal(syscall.SIGTERM)
	back.exits(0, patience)
}
