// Package kernel holds the inner loops that operators run over large slices.
// Portable Go defines what each of them means; where there are vector units,
// generated assembly does the same, value for value.
//
// It is not a library of geometry: no predicates, no clouds, only slices of
// numbers. No kernel decides a sign. A kernel drops points that certainly do not
// matter, with a margin that its comment proves, and package exact decides about
// the rest; so results have the same bits at every level.
package kernel
