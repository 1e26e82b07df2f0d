// Package kernel holds the inner loops that operators run over large slices. Portable Go
// defines the result of each loop; where there are vector units, generated assembly
// computes the same result, value for value.
//
// It is not a library of geometry: it knows no predicates and no clouds, only slices of
// numbers. No kernel decides a sign. A kernel drops points that certainly do not matter,
// with a margin that its comment proves, and package exact decides about the rest; so
// results have the same bits at every level.
//
// The level in use is one variable of the process, and each kind of loop has one place
// that chooses its form by the level: a table of functions or one switch.
package kernel
