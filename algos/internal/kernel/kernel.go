// Package kernel holds the inner loops that operators run over large slices.
// Portable Go defines what each of them means; where there are vector units,
// generated assembly does the same, value for value.
//
// It is not a library of geometry: no predicates, no clouds, only slices of
// numbers.
package kernel
