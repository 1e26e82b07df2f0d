//go:build !amd64

package kern

// No level but mat.Portable is ever detected here.

const noVectors = "kern: no vector unit"

func scores(int, int, *productArgs)               { panic(noVectors) }
func values(int, int, *productArgs)               { panic(noVectors) }
func weigh(*weightArgs)                           { panic(noVectors) }
func transpose8AVX2(*float32, *float32, int, int) { panic(noVectors) }
func scaleAVX2(*float32, *float32, int, float32)  { panic(noVectors) }
func fetch(*float32, int, int, int)               { panic(noVectors) }
