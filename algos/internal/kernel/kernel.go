// Package kernel holds the inner loops that more than one operator runs over
// large slices. Portable Go defines what each of them means.
//
// It is not a library of geometry: no predicates, no clouds, only slices of
// numbers.
package kernel
