package rig

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skipf("the child is a script of sh and sleep: %v", err)
	}
	p, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

// TestExitStatusIsAnErrorThatQuotesStderr: a failed child names its last words.
func TestExitStatusIsAnErrorThatQuotesStderr(t *testing.T) {
	p := shell(t, "echo out; echo first >&2; echo last words >&2; exit 3")
	exit, err := p.Wait(t.Context())
	if exit.Status != 3 || err == nil || !strings.Contains(err.Error(), "last words") || p.Output() != "out\n" {
		t.Errorf("got %+v, %v, output %q", exit, err, p.Output())
	}
	if exit.Wall <= 0 {
		t.Errorf("wall time %v", exit.Wall)
	}
}

// TestWaitEndsWithItsContext and leaves no process behind.
func TestWaitEndsWithItsContext(t *testing.T) {
	p := shell(t, "exec sleep 100")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if exit, err := p.Wait(ctx); err == nil || exit.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, %v; want an error and SIGKILL", exit, err)
	}
}

// TestStopReportsUnclean: a child that ends with another status than 0 after
// SIGTERM did not end well.
func TestStopReportsUnclean(t *testing.T) {
	for _, c := range []struct {
		script string
		clean  bool
	}{
		{"trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done", true},
		{"trap 'exit 1' TERM; echo ready >&2; while :; do sleep 0.01; done", false},
	} {
		p := shell(t, c.script)
		for end := time.Now().Add(time.Minute); p.Tail(1) != "ready"; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: never ready, the last it said is %q", c.script, p.Tail(1))
			}
		}
		if exit, err := p.Stop(time.Minute); (err == nil) != c.clean {
			t.Errorf("%s: %+v, %v", c.script, exit, err)
		}
	}
}

// TestTailOfLongLog reads the end of a log, whole lines only at its end.
func TestTailOfLongLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("a line\n", 100_000)+"one\ntwo\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := (&Process{log: path}).Tail(2); got != "one\ntwo" {
		t.Errorf("got %q", got)
	}
}

// TestPortsAreOutsideTheEphemeralRange: a client that calls a dead broker on a
// port of that range can end up connected to itself.
func TestPortsAreOutsideTheEphemeralRange(t *testing.T) {
	for range 20 {
		port, err := freePorts()
		if err != nil || port < 20000 || port+1 >= 30000 {
			t.Fatalf("got %d, %v", port, err)
		}
	}
}

// TestScriptsMustExist: a name that is wrong is told before a broker is wanted.
func TestScriptsMustExist(t *testing.T) {
	t.Setenv("ENTROPIPE_KAFKA_START", "/bin/sh")
	t.Setenv("ENTROPIPE_KAFKA_STOP", "/bin/sh")
	if s, err := ScriptsFromEnv(); err != nil || s != (Scripts{"/bin/sh", "/bin/sh"}) {
		t.Errorf("got %+v, %v", s, err)
	}
	t.Setenv("ENTROPIPE_KAFKA_STOP", "nowhere/stop")
	if s, err := ScriptsFromEnv(); err == nil {
		t.Errorf("got %+v, want an error", s)
	}
}
