//go:build !linux

package rig

// Cores returns nil: processes cannot be bound to a processor here.
func Cores() []int { return nil }

// OnCore calls start.
func OnCore(_ int, start func() error) error { return start() }
