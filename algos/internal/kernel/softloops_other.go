//go:build !amd64

package kernel

// No level but Portable is ever detected here.
var softLevels [AVX512 + 1]softLoops
