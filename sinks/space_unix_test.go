//go:build linux || darwin

package sinks_test

import (
	"testing"

	"entropipe/sinks"
)

// A folder's file system has a size, and at most that is free.
func TestSpaceOfTheDisk(t *testing.T) {
	s, err := sinks.OpenLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if free, size, ok := s.Space(); !ok || free < 0 || size <= 0 || free > size {
		t.Errorf("%d of %d bytes are free, known: %v", free, size, ok)
	}
}
