package sinktest

import (
	"context"
	"errors"

	"entropipe/sinks/internal/disk"
)

var errCrashed = errors.New("the process is gone")

// process is one process that may die: from the n-th change of the disk on,
// every call of its disk fails and its context is over.
type process struct {
	Disk FaultDisk
	Ctx  context.Context
	Dead bool
}

func DieAt(d disk.Disk, n int) *process {
	ctx, die := context.WithCancel(context.Background())
	p, count := &process{Ctx: ctx}, 0
	p.Disk = FaultDisk{Disk: d, Before: func(op, _ string) error {
		if op != "look" {
			if count == n {
				p.Dead = true
				die()
			}
			count++
		}
		if p.Dead {
			return errCrashed
		}
		return nil
	}}
	return p
}

func IsCrash(err error) error { return err }
