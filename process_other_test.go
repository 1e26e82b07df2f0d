//go:build !linux

package main

import (
	"net"
	"testing"
)

// ownAddress returns an address that is free now; it cannot be kept free here.
func ownAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
