//go:build !amd64

package mat

// No level but Portable is ever detected here.

func mul1AVX512(*byte)    { panic(noVectors) }
func mul2AVX512(*byte)    { panic(noVectors) }
func mul3AVX512(*byte)    { panic(noVectors) }
func mul4AVX512(*byte)    { panic(noVectors) }
func tmul1AVX512(*byte)   { panic(noVectors) }
func tmul2AVX512(*byte)   { panic(noVectors) }
func tmul3AVX512(*byte)   { panic(noVectors) }
func tmul4AVX512(*byte)   { panic(noVectors) }
func mulWholeAVX2(*byte)  { panic(noVectors) }
func mulPartAVX2(*byte)   { panic(noVectors) }
func tmulWholeAVX2(*byte) { panic(noVectors) }
func tmulPartAVX2(*byte)  { panic(noVectors) }

const noVectors = "mat: no vector unit"

func expAVX512(*float32, *float32, int)      { panic(noVectors) }
func tanhAVX512(*float32, *float32, int)     { panic(noVectors) }
func geluAVX512(*float32, *float32, int)     { panic(noVectors) }
func geluTanhAVX512(*float32, *float32, int) { panic(noVectors) }
func siluAVX512(*float32, *float32, int)     { panic(noVectors) }
func expAVX2(*float32, *float32, int)        { panic(noVectors) }
func tanhAVX2(*float32, *float32, int)       { panic(noVectors) }
func geluAVX2(*float32, *float32, int)       { panic(noVectors) }
func geluTanhAVX2(*float32, *float32, int)   { panic(noVectors) }
func siluAVX2(*float32, *float32, int)       { panic(noVectors) }

func rowMaxAVX512(*float32, int) float32                   { panic(noVectors) }
func rowSumAVX512(*float32, int) float32                   { panic(noVectors) }
func rowSquaresAVX512(*float32, int, float32) float32      { panic(noVectors) }
func rowExpAVX512(*float32, int, float32, float32) float32 { panic(noVectors) }
func rowMaxAVX2(*float32, int) float32                     { panic(noVectors) }
func rowSumAVX2(*float32, int) float32                     { panic(noVectors) }
func rowSquaresAVX2(*float32, int, float32) float32        { panic(noVectors) }
func rowExpAVX2(*float32, int, float32, float32) float32   { panic(noVectors) }
func rowScaleAVX512(*float32, int, float32)                { panic(noVectors) }
func rowScaleAVX2(*float32, int, float32)                  { panic(noVectors) }
func rowApplyAVX512(_ *float32, _ int, _ *float32, _, _ float32, _, _ *float32) {
	panic(noVectors)
}
func rowApplyAVX2(_ *float32, _ int, _ *float32, _, _ float32, _, _ *float32) {
	panic(noVectors)
}

func affineAVX512(*byte)       { panic(noVectors) }
func momentsAVX512(*byte)      { panic(noVectors) }
func reluBackwardAVX512(*byte) { panic(noVectors) }
func normBackwardAVX512(*byte) { panic(noVectors) }
func columnMaxAVX512(*byte)    { panic(noVectors) }
func columnMaxAtAVX512(*byte)  { panic(noVectors) }
func affineAVX2(*byte)         { panic(noVectors) }
func momentsAVX2(*byte)        { panic(noVectors) }
func reluBackwardAVX2(*byte)   { panic(noVectors) }
func normBackwardAVX2(*byte)   { panic(noVectors) }
func columnMaxAVX2(*byte)      { panic(noVectors) }
func columnMaxAtAVX2(*byte)    { panic(noVectors) }

func adamWAVX512(_, _, _, _ *float32, _ int, _ *float32) { panic(noVectors) }
func adamWAVX2(_, _, _, _ *float32, _ int, _ *float32)   { panic(noVectors) }

func keepAVX512(*float32, int, *uint64) { panic(noVectors) }
func keepAVX2(*float32, int, *uint64)   { panic(noVectors) }

func multiplyAVX512(_, _, _ *float32, _ int)     { panic(noVectors) }
func multiplyAVX2(_, _, _ *float32, _ int)       { panic(noVectors) }
func geluGradAVX512(_, _, _ *float32, _ int)     { panic(noVectors) }
func geluGradAVX2(_, _, _ *float32, _ int)       { panic(noVectors) }
func geluTanhGradAVX512(_, _, _ *float32, _ int) { panic(noVectors) }
func geluTanhGradAVX2(_, _, _ *float32, _ int)   { panic(noVectors) }

func rowDotAVX512(*float32, int, *float32) float32                  { panic(noVectors) }
func rowDotAVX2(*float32, int, *float32) float32                    { panic(noVectors) }
func rowSoftmaxGradAVX512(_ *float32, _ int, _ *float32, _ float32) { panic(noVectors) }
func rowSoftmaxGradAVX2(_ *float32, _ int, _ *float32, _ float32)   { panic(noVectors) }
func normGatherAVX512(_ *float32, _ int, _, _, _, _ *float32, _, _ float32, _ *[2]float32) {
	panic(noVectors)
}
func normGatherAVX2(_ *float32, _ int, _, _, _, _ *float32, _, _ float32, _ *[2]float32) {
	panic(noVectors)
}
func normSpreadAVX512(_ *float32, _ int, _, _, _ *float32, _, _, _, _ float32) { panic(noVectors) }
func normSpreadAVX2(_ *float32, _ int, _, _, _ *float32, _, _, _, _ float32)   { panic(noVectors) }

func detectBF16() bool { return false }

func mul1BF16(*byte)                     { panic(noVectors) }
func mul2BF16(*byte)                     { panic(noVectors) }
func mul3BF16(*byte)                     { panic(noVectors) }
func mul4BF16(*byte)                     { panic(noVectors) }
func mul1SplitAVX512(*byte)              { panic(noVectors) }
func mul2SplitAVX512(*byte)              { panic(noVectors) }
func mul3SplitAVX512(*byte)              { panic(noVectors) }
func mul4SplitAVX512(*byte)              { panic(noVectors) }
func mulWholeSplitAVX2(*byte)            { panic(noVectors) }
func mulPartSplitAVX2(*byte)             { panic(noVectors) }
func roundPairs(*uint32, *float32, int)  { panic(noVectors) }
func roundAVX512(*uint32, *float32, int) { panic(noVectors) }
func roundAVX2(*uint32, *float32, int)   { panic(noVectors) }
