//go:build !amd64

package mat

// No level but Portable is ever detected here.

func mul1AVX512(*byte)  { panic(noVectors) }
func mul2AVX512(*byte)  { panic(noVectors) }
func mul3AVX512(*byte)  { panic(noVectors) }
func mul4AVX512(*byte)  { panic(noVectors) }
func tmul1AVX512(*byte) { panic(noVectors) }
func tmul2AVX512(*byte) { panic(noVectors) }
func tmul3AVX512(*byte) { panic(noVectors) }
func tmul4AVX512(*byte) { panic(noVectors) }
func mul1AVX2(*byte)    { panic(noVectors) }
func tmul1AVX2(*byte)   { panic(noVectors) }

const noVectors = "mat: no vector unit"
