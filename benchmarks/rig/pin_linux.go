package rig

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Cores returns the processors that this process may use.
func Cores() (cores []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores
}

// OnCore calls start, whose new processes may use one processor alone: they inherit it from
// the thread that starts them. A negative core, and one that cannot be had, changes nothing.
func OnCore(core int, start func() error) error {
	if core < 0 {
		return start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	one.Set(core)
	if unix.SchedGetaffinity(0, &before) == nil && unix.SchedSetaffinity(0, &one) == nil {
		defer unix.SchedSetaffinity(0, &before)
	}
	return start()
}
