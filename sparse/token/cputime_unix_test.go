//go:build unix

package token

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is the process's time on processors, which other processes disturb
// less than the clock.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
