//go:build !linux

package main

// allowed returns nil: processes cannot be bound to a processor here.
func allowed() []int { return nil }

// onCore calls start.
func onCore(_ int, start func() error) error { return start() }
