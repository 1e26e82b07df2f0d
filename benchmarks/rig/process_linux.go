package rig

import (
	"os"
	"syscall"
)

// attributes lets the kernel kill a child whose parent is gone: a test that
// times out must not leave workers behind.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func maxRSS(st *os.ProcessState) int64 {
	if ru, ok := st.SysUsage().(*syscall.Rusage); ok {
		return ru.Maxrss << 10
	}
	return 0
}
