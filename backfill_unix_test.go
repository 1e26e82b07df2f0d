//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A backfill that a signal ends asks to be run again, whenever it comes, and what it left
// is computed by the next one: the rows are those of a backfill that nobody disturbed.
func TestInterruptedBackfill(t *testing.T) {
	t.Parallel()
	// One lane at a time is read, to its end, and each frame is a commit: whoever is told to
	// end has many lanes left, and whoever is killed is within one.
	const lanes, each = 16, 6
	archive, dir := drives(t, 300, slices.Repeat([]int{each}, lanes)...), t.TempDir()
	out := filepath.Join(dir, "out")
	args := []string{"backfill", archive, "--out", "out", "--roll-records", "1", "--workers", "1"}
	for _, sent := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		before := manifests(t, out)
		p := launch(t, dir, args...)
		waitFor(t, "a commit", func() bool { return manifests(t, out) > before })
		p.signal(sent)
		p.exits(75, patience)
		p.says(`^entropipe: interrupted before the end: (1 of 16 lanes is|\d+ of 16 lanes are) left; run it again`)
		if !strings.Contains(p.out(), "; left: ") {
			t.Error(p.out())
		}
	}
	// The second signal, with the first: it cannot drain in between.
	before := manifests(t, out)
	p := launch(t, dir, args...)
	waitFor(t, "a commit", func() bool { return manifests(t, out) > before })
	for _, s := range []os.Signal{syscall.SIGSTOP, syscall.SIGTERM, os.Interrupt, syscall.SIGCONT} {
		p.signal(s)
	}
	p.exits(130, patience)
	if got := committed(verified(t, out)); got >= lanes*each {
		t.Errorf("all %d frames are committed: there was nothing to interrupt", got)
	}
	between := 0
	for i := range 3 {
		before := manifests(t, out)
		p := launch(t, dir, args...)
		waitFor(t, "a commit", func() bool { return manifests(t, out) > before })
		p.killed()
		if got := committed(verified(t, out)); got >= lanes*each {
			t.Logf("kill %d came after the end", i)
			break
		}
		between++
	}
	if between == 0 {
		t.Error("no backfill was killed before its end")
	}
	must(t, dir, args...)
	holds(t, out, lanes*each)
	must(t, dir, "backfill", archive, "--out", "undisturbed")
	sameRows(t, out, filepath.Join(dir, "undisturbed"))
}

// A signal that comes before the first lane asks to be run again.
func TestBackfillInterruptedAtStart(t *testing.T) {
	t.Parallel()
	archive, dir := drives(t, 10, 300), t.TempDir()
	p := launch(t, dir, "backfill", archive, "--out", "out", "--log-level", "debug", "--workers", "1")
	p.until("msg=found")
	p.signal(syscall.SIGTERM)
	<-p.done
	status := p.cmd.ProcessState.ExitCode()
	left := strings.Contains(p.log(), "interrupted before")
	if (status != 75 || !left) && (status != 0 || !strings.Contains(p.out(), "nothing is left")) {
		t.Fatalf("status %d", status)
	}
	must(t, dir, "backfill", archive, "--out", "out")
	holds(t, filepath.Join(dir, "out"), 300)
}
