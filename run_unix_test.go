//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestSecondSignalAborts(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	const n = 40
	must(t, dir, "produce", "synthetic", "--frames", strconv.Itoa(n), "--points", "40000", "--rate", "max",
		"--brokers", brokers)
	r := launch(t, dir, "run", "--brokers", brokers, "--out", "out", "--roll-records", "2", "--workers", "1")
	waitFor(t, "a commit", func() bool { return manifests(t, filepath.Join(dir, "out")) > 0 })
	// Stopped, it gets both at once: it cannot drain in between.
	r.signal(syscall.SIGSTOP)
	r.signal(syscall.SIGTERM)
	r.signal(os.Interrupt)
	r.signal(syscall.SIGCONT)
	r.exits(130, patience)
	before := committed(verified(t, filepath.Join(dir, "out")))
	if before >= n {
		t.Errorf("all %d frames are committed: there was nothing to abort", before)
	}
	// Its own group has not missed the dead process yet.
	must(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end", "--group", "another")
	holds(t, filepath.Join(dir, "out"), n)
}

// --until-end that was stopped before the end asks to be run again; a service that was
// stopped has done what it was to do.
func TestInterruptedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	const n = 20
	must(t, dir, spread(brokers, "points", "a", "--frames", "1", "--rate", "max")...)
	// A member that has all partitions and says nothing, so that nobody else gets any.
	frozen := launch(t, dir, fast(brokers, "points", "--session-timeout", "4m", "--rebalance-timeout", "4m")...)
	waitFor(t, "its commit", func() bool { return reached(t, out) == 1 })
	frozen.signal(syscall.SIGSTOP)
	must(t, dir, spread(brokers, "points", "a", "--frames", strconv.Itoa(n-1), "--rate", "max")...)
	r := launch(t, dir, fast(brokers, "points", "--until-end")...)
	r.until(`msg=running`)
	r.signal(syscall.SIGTERM)
	r.exits(75, patience)
	r.says(`msg=stopped frames=0 `)
	r.says(`^entropipe: interrupted before the end, which points/\d has not reached; run it again to go on from there$`)
	frozen.signal(syscall.SIGKILL)
	frozen.killed()
	must(t, dir, fast(brokers, "points", "--until-end")...)
	holds(t, out, n)
}
