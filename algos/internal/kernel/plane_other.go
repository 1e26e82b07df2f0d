//go:build !amd64

package kernel

// No level but Portable is ever detected here.

func beyond32AVX512(_, _, _, _ *float32, _ int, _ *uint64) { panic("kernel: no vector unit") }
func beyond64AVX512(_, _, _, _ *float64, _ int, _ *uint64) { panic("kernel: no vector unit") }
func beyond32AVX2(_, _, _, _ *float32, _ int, _ *uint64)   { panic("kernel: no vector unit") }
func beyond64AVX2(_, _, _, _ *float64, _ int, _ *uint64)   { panic("kernel: no vector unit") }
