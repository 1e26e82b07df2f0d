package pairhash

import "github.com/klauspost/cpuid/v2"

// hasSHA tells whether this process may use blocksSHANI.
func hasSHA() bool { return cpuid.CPU.Supports(cpuid.SHA, cpuid.SSSE3, cpuid.SSE4) }
