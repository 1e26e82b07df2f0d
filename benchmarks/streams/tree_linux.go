package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"entropipe/benchmarks/rig"
)

// treeCmd runs a command on some processors and writes what it and all its descendants cost.
// A descendant whose parent is gone becomes a child of this process, which waits for all of
// them: nobody's processor time is lost. SIGTERM has all of them killed by kill -9.
type treeCmd struct {
	Cores   int      `help:"Processors that they may use; 0: all."`
	File    string   `arg:"" help:"File of the costs, as JSON."`
	Command []string `arg:"" passthrough:"" help:"Command with its arguments."`
}

// sampling is the time between two looks at the memory of a tree.
const sampling = 100 * time.Millisecond

// Run is the subcommand. Its status is that of the command.
func (c *treeCmd) Run() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("this system lets a process not adopt its descendants: %w", err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, os.Interrupt)
	args := c.Command
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	began := time.Now()
	pid, err := c.start(args)
	if err != nil {
		return err
	}
	var t cost
	stop, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-stop:
				return
			case <-asked:
				killTree()
			case <-time.After(sampling):
				t.sample()
			}
		}
	}()
	status := 0
	for {
		var how unix.WaitStatus
		ended, err := unix.Wait4(-1, &how, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			break // no child is left
		}
		if ended != pid {
			continue
		}
		t.WallS = time.Since(began).Seconds()
		if status = how.ExitStatus(); how.Signaled() {
			status = 128 + int(how.Signal())
		}
	}
	close(stop)
	<-sampled
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &used); err != nil {
		return err
	}
	t.CPUS = time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	text, err := json.Marshal(t)
	if err == nil {
		err = os.WriteFile(c.File, text, 0o666)
	}
	if err == nil && status != 0 {
		return exitStatus(status)
	}
	return err
}

// start starts the command, and returns its process id.
func (c *treeCmd) start(args []string) (pid int, err error) {
	if len(args) == 0 {
		return 0, errors.New("no command")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	runtime.LockOSThread() // for good: the kernel kills the command when this thread ends
	if c.Cores > 0 {
		var some unix.CPUSet
		for i, core := range rig.Cores() {
			if i < c.Cores {
				some.Set(core)
			}
		}
		if err := unix.SchedSetaffinity(0, &some); err != nil {
			return 0, err
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// killTree kills all descendants, also those that come meanwhile.
func killTree() {
	for {
		all := descendants()
		if len(all) == 0 {
			return
		}
		for _, pid := range all {
			unix.Kill(pid, unix.SIGKILL) // fails where it has ended
		}
		time.Sleep(time.Millisecond)
	}
}

// sample takes the sum of the tree's memory, if it is the largest so far.
func (t *cost) sample() {
	pss, rss := int64(0), int64(0)
	for _, pid := range descendants() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has ended
		}
		pss += kilobytes(text, "\nPss:")
		rss += kilobytes(text, "\nRss:")
	}
	t.PSS, t.RSS = max(t.PSS, pss), max(t.RSS, rss)
}

// kilobytes returns the number after a name, in bytes; 0 without one.
func kilobytes(text []byte, name string) int64 {
	_, rest, _ := bytes.Cut(text, []byte(name))
	fields := bytes.Fields(rest[:min(len(rest), 40)])
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// descendants returns the processes below this one that have not ended.
func descendants() (found []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		// The name stands in brackets and may hold anything; state and parent follow.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil && fields[0][0] != 'Z' {
			children[parent] = append(children[parent], pid)
		}
	}
	for next := children[os.Getpid()]; len(next) > 0; {
		pid := next[0]
		found = append(found, pid)
		next = append(next[1:], children[pid]...)
	}
	return found
}

// busy returns the processor time that all programs of the machine have taken so far, in
// seconds.
func busy() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[:max(0, bytes.IndexByte(text, '\n'))])
	ticks := 0.0
	for i, field := range fields {
		if i == 4 || i == 5 || i > 8 { // idle, waiting for disks, guests
			continue
		}
		n, _ := strconv.ParseFloat(string(field), 64) // the first field is a name
		ticks += n
	}
	return ticks / 100 // USER_HZ is 100 on every platform
}
