package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// thisProcess returns what this process is, the zero value where the system does
// not tell.
func thisProcess() process {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return process{}
	}
	p := process{pid: os.Getpid()}
	if _, p.start, err = statOf(p.pid); err != nil {
		return process{}
	}
	// The user, because some systems hide the processes of others.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", bytes.TrimSpace(boot), space, os.Getuid()))
	p.place = hex.EncodeToString(sum[:8])
	return p
}

// dead tells whether p, of this place, has ended. A process that was killed, but
// that its parent has not waited for, has.
func (p process) dead() bool {
	if errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH) {
		return true
	}
	state, start, err := statOf(p.pid)
	return err == nil && (start != p.start || state == 'Z' || state == 'X')
}

// statOf reads state and start of a process from /proc/PID/stat. The second
// field, a name in parentheses, may hold anything.
func statOf(pid int) (state byte, start uint64, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const startField = 22 - 3
	if len(fields) <= startField {
		return 0, 0, fmt.Errorf("process %d: a state of %d fields", pid, len(fields))
	}
	start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	return fields[0][0], start, err
}
