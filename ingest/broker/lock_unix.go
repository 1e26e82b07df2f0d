//go:build unix

package broker

import (
	"os"
	"syscall"
)

// lockFile takes an exclusive lock that the kernel drops with the process.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
