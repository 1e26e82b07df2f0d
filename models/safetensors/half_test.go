package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// Law: each of the 65,536 values of F16 and of BF16 is widened to the value of
// IEEE 754's definition, with its sign.
func TestEveryHalfIsWidened(t *testing.T) {
	for _, c := range []struct {
		dtype              DType
		exponent, fraction int // bits
	}{{F16, 5, 10}, {BF16, 8, 7}} {
		var all []byte
		for h := range 1 << 16 {
			all = binary.LittleEndian.AppendUint16(all, uint16(h))
		}
		var file bytes.Buffer
		if err := Write(&file, nil, []Array{{"all", c.dtype, []int{1 << 16}, all}}); err != nil {
			t.Fatal(err)
		}
		f, err := New("halves", bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		tensor, _ := f.Lookup("all")
		got, err := tensor.Float32s(nil)
		if err != nil {
			t.Fatal(err)
		}
		for h, v := range got {
			e, m := h>>c.fraction&(1<<c.exponent-1), h&(1<<c.fraction-1)
			bias := 1<<(c.exponent-1) - 1
			want := math.Ldexp(float64(1<<c.fraction+m), e-bias-c.fraction)
			switch {
			case e == 0: // zero and the subnormal values
				want = math.Ldexp(float64(m), 1-bias-c.fraction)
			case e == 1<<c.exponent-1 && m == 0:
				want = math.Inf(1)
			case e == 1<<c.exponent-1:
				want = math.NaN()
			}
			if h>>15 == 1 {
				want = -want
			}
			if math.Float64bits(float64(v)) != math.Float64bits(want) && !(math.IsNaN(float64(v)) && math.IsNaN(want)) {
				t.Fatalf("%s %#04x is widened to %g, want %g", c.dtype, h, v, want)
			}
		}
	}
}
