package mat

import "golang.org/x/sys/cpu"

func detect() Level {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA:
		return Portable
	case !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL:
		return AVX2
	}
	return AVX512
}

func detectBF16() bool { return cpu.X86.HasAVX512BF16 }
