package hf

import (
	"encoding/binary"
	"math"
	"testing"

	"entropipe/models/safetensors"
)

// narrow describes a 16-bit float: how many bits its exponent and its fraction
// have.
type narrow struct {
	dtype              safetensors.DType
	exponent, fraction int
}

// value returns the value that IEEE 754's definition gives to the bits h. For
// an infinity it returns what the next number would be, had the type one more
// exponent: numbers from the middle between that and the largest number on are
// rounded to infinity.
func (n narrow) value(h uint16) float64 {
	e, m := int(h>>n.fraction)&(1<<n.exponent-1), int(h)&(1<<n.fraction-1)
	bias := 1<<(n.exponent-1) - 1
	v := math.Ldexp(float64(1<<n.fraction+m), e-bias-n.fraction)
	if e == 0 {
		v = math.Ldexp(float64(m), 1-bias-n.fraction)
	}
	if h>>15 == 1 {
		v = -v
	}
	return v
}

// infinity returns the bits of the positive infinity.
func (n narrow) infinity() uint16 { return (1<<n.exponent - 1) << n.fraction }

// Law: encode writes each float32 as the nearest number of a 16-bit type, of
// two as near the one whose last bit is 0, and refuses what would be infinite.
// The law is tried on all 65,536 numbers of each type, on the middles between
// neighbours and on the float32 values beside the middles, with both signs.
func TestEncodeRoundsToTheNearestOfEach(t *testing.T) {
	for _, n := range []narrow{{safetensors.F16, 5, 10}, {safetensors.BF16, 8, 7}} {
		for h := range n.infinity() {
			for _, sign := range []uint16{0, 0x8000} {
				low, high := n.value(sign|h), n.value(sign|(h+1))
				middle := float32(low + (high-low)/2)
				if float64(middle) != low+(high-low)/2 {
					t.Fatalf("%s: float32 does not hold the middle of %g and %g", n.dtype, low, high)
				}
				even := h + h&1
				n.check(t, float32(low), sign|h)
				n.check(t, middle, sign|even)
				n.check(t, math.Nextafter32(middle, float32(low)), sign|h)
				n.check(t, math.Nextafter32(middle, float32(math.Copysign(math.Inf(1), high))), sign|(h+1))
			}
		}
		for _, v := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32} {
			if out, err := encode([]float32{v}, n.dtype); err == nil {
				t.Errorf("%s: %g is written as %x, want an error", n.dtype, v, out)
			}
		}
	}
}

func (n narrow) check(t *testing.T, v float32, want uint16) {
	t.Helper()
	out, err := encode([]float32{v}, n.dtype)
	if want&0x7fff == n.infinity() {
		if err == nil {
			t.Fatalf("%s: %g is written as %x, want an error", n.dtype, v, out)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := binary.LittleEndian.Uint16(out); got != want {
		t.Fatalf("%s: %g (%#08x) is written as %#04x, want %#04x", n.dtype, v, math.Float32bits(v), got, want)
	}
}
