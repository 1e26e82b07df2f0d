//go:build unix

package rig

import (
	"syscall"
	"testing"
)

// TestKillReachesFrozen: SIGSTOP does not protect from kill -9.
func TestKillReachesFrozen(t *testing.T) {
	p := shell(t, "exec sleep 100")
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if exit := p.Kill(); exit.Signal != syscall.SIGKILL || exit.Status != -1 {
		t.Errorf("got %+v, want SIGKILL", exit)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Errorf("a signal to an ended process: %v, want none", err)
	}
}
