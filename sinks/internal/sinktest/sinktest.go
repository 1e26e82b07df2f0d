// Package sinktest has what tests of outputs share: a disk in memory that loses in
// a crash what was not fsynced, disks whose calls fail, writers that copy a
// reproducible log, and checks that every record of the log is there once.
package sinktest

// The log that writers copy: records of batches.Synthetic, by offset.
const (
	LogTopic = "points"
	LogSeed  = 42
)
