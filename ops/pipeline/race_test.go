//go:build race

package pipeline

import "runtime"

// Under the race detector the tests of this package run on one processor. Nearly all of
// them run in bubbles of testing/synctest, and Go 1.26 keeps one race context for all
// timers of a bubble: two processors that run two of these timers at once destroy it, and
// the detector itself then crashes (SIGSEGV below time.goFunc). The detector compares what
// is ordered with what is not, so it finds the same races on one processor.
func init() { runtime.GOMAXPROCS(1) }
