//go:build !amd64

package pairhash

func hasSHA() bool { return false }

// blocksSHANI is never called here.
func blocksSHANI(*[8]uint32, *byte, *[8]uint32, *byte, int) { panic("pairhash: no SHA extensions") }
