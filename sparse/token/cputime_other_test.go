//go:build !unix

package token

import (
	"testing"
	"time"
)

// cpuTime returns 0: the process's time on processors is not known on this system.
func cpuTime(*testing.B) time.Duration { return 0 }
