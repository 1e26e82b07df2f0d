//go:build !linux

package ingest

// thisProcess returns nothing: only on Linux it is known how to tell one process
// from a later one of the same number.
func thisProcess() process { return process{} }

func (process) dead() bool { return false }
