package kernel

var softLevels = [...]softLoops{
	AVX2: {
		fill: [4]softFill{softFill22AVX2, softFill23AVX2, softFill33AVX2, softFill34AVX2},
		push: [4]softPush{softPush22AVX2, softPush23AVX2, softPush33AVX2, softPush34AVX2},
		step: softStepAVX2,
	},
	AVX512: {
		fill: [4]softFill{softFill22AVX512, softFill23AVX512, softFill33AVX512, softFill34AVX512},
		push: [4]softPush{softPush22AVX512, softPush23AVX512, softPush33AVX512, softPush34AVX512},
		step: softStepAVX512,
	},
}
