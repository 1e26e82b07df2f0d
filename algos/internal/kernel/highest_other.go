//go:build !amd64

package kernel

// No level but Portable is ever detected here.

func highestAVX512(_ *float32, _ int, _, _, _ *float32, _ int, _ *float32, _ *int32) {
	panic("kernel: no vector unit")
}

func highestAVX2(_ *float32, _ int, _, _, _ *float32, _ int, _ *float32, _ *int32) {
	panic("kernel: no vector unit")
}
