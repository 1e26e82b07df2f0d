package exact_test

import (
	"encoding/binary"
	"math"
	"testing"
)

func FuzzOrient2D(f *testing.F) {
	f.Add(encode(0, 0, 1, 1, 2, 2))
	f.Add(encode(1e308, -1e308, -1e308, 5e-324, 0.1, 0.3))
	predicates[0].fuzz(f)
}

func FuzzInCircle(f *testing.F) {
	f.Add(encode(0, 0, 1, 0, 1, 1, 0, 1))
	f.Add(encode(1e-160, 0, 1e160, 0.1, 3, -7, 5e-324, 1))
	predicates[1].fuzz(f)
}

func FuzzOrient3D(f *testing.F) {
	f.Add(encode(0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 2))
	f.Add(encode(.1, .2, .3, .2, .4, .6, 1e7, 1, 0, 5e-324, 1e308, -1e308))
	predicates[2].fuzz(f)
}

func FuzzInSphere(f *testing.F) {
	f.Add(encode(0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1))
	f.Add(encode(.1, .2, .3, .2, .4, .6, 1e7, 1, 0, 5e-324, 1e160, -1e160, 3, 1e-160, 9))
	predicates[3].fuzz(f)
}

func (q predicate) fuzz(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		if p := decode(b, q.size()); p != nil {
			if got, want := q.sign(p), q.rational(p); got != want {
				t.Errorf("%s(%v) = %d, want %d", q.name, p, got, want)
			}
		}
	})
}

func encode(v ...float64) (b []byte) {
	for _, w := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(w))
	}
	return b
}

// decode reads n finite numbers, nil if there are fewer.
func decode(b []byte, n int) []float64 {
	p := make([]float64, n)
	for i := range p {
		if len(b) < 8 {
			return nil
		}
		p[i], b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
		if p[i]-p[i] != 0 {
			return nil
		}
	}
	return p
}
