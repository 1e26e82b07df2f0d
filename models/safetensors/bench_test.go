package safetensors

import (
	"bytes"
	"fmt"
	"testing"
)

// Reading is to be near the speed of memory: weights are gigabytes.
func BenchmarkFloat32s(b *testing.B) {
	const n = 1 << 22
	for _, dtype := range []DType{F32, F16, BF16} {
		b.Run(string(dtype), func(b *testing.B) {
			var file bytes.Buffer
			if err := Write(&file, nil, []Array{{"a", dtype, []int{n}, make([]byte, n*dtype.Size())}}); err != nil {
				b.Fatal(err)
			}
			f, err := open(file.Bytes())
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]float32, 0, n)
			b.SetBytes(int64(n * dtype.Size()))
			for b.Loop() {
				if _, err := f.Tensors()[0].Float32s(dst); err != nil {
					b.Fatal(fmt.Sprint(dtype, ": ", err))
				}
			}
		})
	}
}
