//go:build !linux

package rig

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

// maxRSS is known on Linux only: the unit differs between systems.
func maxRSS(*os.ProcessState) int64 { return 0 }
