//go:build !amd64

package kernel

// No level but Portable is ever detected here.

func finite32AVX512(*float32, int) bool { panic("kernel: no vector unit") }
func finite64AVX512(*float64, int) bool { panic("kernel: no vector unit") }
