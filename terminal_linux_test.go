package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// terminal opens a pseudo-terminal of 100 columns and returns its two ends.
func terminal(t *testing.T) (here, there *os.File) {
	t.Helper()
	here, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { here.Close() })
	var lock, n int32
	size := [4]uint16{24, 100}
	control := func(f *os.File, what uintptr, with unsafe.Pointer) {
		t.Helper()
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), what, uintptr(with)); code != 0 {
			t.Skipf("no pseudo-terminals here: %v", code)
		}
	}
	control(here, syscall.TIOCSPTLCK, unsafe.Pointer(&lock))
	control(here, syscall.TIOCGPTN, unsafe.Pointer(&n))
	there, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { there.Close() })
	control(there, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	return here, there
}

// On a terminal there is a bar, with or without a known end, and it never
// keeps the program from ending.
func TestBarOnATerminal(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{spread(brokers, "points", "a", "--frames", "60", "--rate", "100hz"), "60/60"},
		{spread(brokers, "points", "a", "--frames", "2", "--rate", "max"), "2/2"},
		{[]string{"run", "--brokers", brokers, "--until-end", "--out", "out", "--progress"}, "62 "},
		{[]string{"run", "--brokers", brokers, "--until-end", "--out", "out", "--progress"}, " 0 frames/s"},
		{[]string{"verify", "out"}, "manifests"},
		{[]string{"produce", "kitti", "absent", "--brokers", brokers}, "no such file"},
	} {
		here, there := terminal(t)
		cmd := exec.Command("entropipe", c.args...)
		cmd.Dir, cmd.Stderr = dir, there
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		there.Close()
		var shown bytes.Buffer
		done := make(chan struct{})
		go func() { shown.ReadFrom(here); close(done) }() // ends with EIO when the other end is closed
		select {
		case <-done:
		case <-time.After(patience):
			cmd.Process.Kill()
			t.Fatalf("%v has not ended after %v", c.args, patience)
		}
		cmd.Wait() // status: "absent" fails
		if !strings.Contains(shown.String(), c.want) {
			t.Errorf("%v shows no %q:\n%q", c.args, c.want, shown.String())
		}
	}
}

// What is binary does not go to a terminal; text does, and a file may.
func TestExportToATerminal(t *testing.T) {
	_, there := terminal(t)
	for _, c := range []struct {
		cmd     exportCmd
		refused bool
	}{
		{exportCmd{As: "png"}, true}, {exportCmd{As: "ply", File: "-"}, true}, {exportCmd{As: "ply", ASCII: true}, false},
		{exportCmd{As: "svg"}, false}, {exportCmd{As: "geojson"}, false}, {exportCmd{File: "a.PNG"}, false},
	} {
		c.cmd.Width = 300
		if err := c.cmd.check(there); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c.cmd, err)
		}
		if err := c.cmd.check(&bytes.Buffer{}); err != nil {
			t.Errorf("%+v to a pipe: %v", c.cmd, err)
		}
	}
}
