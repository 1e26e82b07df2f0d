//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A backfill that a signal ends asks to be run again, whenever it comes, and what it left
// is computed by the next one: the rows are those of a backfill that nobody disturbed.
func TestInterruptedBackfill(t *testing.T) {
	t.Parallel()
	archive, dir := drives(t, 8_000, 24, 24), t.TempDir()
	out := filepath.Join(dir, "out")
	args := []string{"backfill", archive, "--out", "out", "--roll-records", "2", "--workers", "1"}
	for _, sent := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		before := manifests(t, out)
		p := launch(t, dir, args...)
		waitFor(t, "a commit", func() bool { return manifests(t, out) > before })
		p.signal(sent)
		p.exits(75, patience)
		p.says(`^entropipe: interrupted before the end: (1 of 2 lanes is|2 of 2 lanes are) left; run it again`)
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
	if got := committed(verified(t, out)); got >= 48 {
		t.Errorf("all %d frames are committed: there was nothing to interrupt", got)
	}
	for i := range 3 {
		before := manifests(t, out)
		p := launch(t, dir, args...)
		waitFor(t, "a commit", func() bool { return manifests(t, out) > before })
		p.killed()
		if got := committed(verified(t, out)); got >= 48 {
			t.Logf("kill %d came after the end", i)
			break
		}
	}
	must(t, dir, args...)
	holds(t, out, 48)
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
