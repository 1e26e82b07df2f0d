//go:build !linux

package rig

import (
	"errors"
	"time"
)

// ProcessorTime is not known of another process here.
func ProcessorTime(int) (time.Duration, error) {
	return 0, errors.New("the processor time of a process that runs is not known on this system")
}
