//go:build !amd64

package kernel

// No level but Portable is ever detected here.

func chords32AVX512(_, _, _ *float32, _ int, _ int32, _ *int32, _ int) (int, int) {
	panic("kernel: no vector unit")
}

func chords64AVX512(_, _, _ *float64, _ int, _ int32, _ *int32, _ int) (int, int) {
	panic("kernel: no vector unit")
}

func chords32AVX2(_, _, _ *float32, _ int, _ int32, _ *int32, _ int) (int, int) {
	panic("kernel: no vector unit")
}
