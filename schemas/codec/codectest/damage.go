package codectest

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"entropipe/schemas/codec"
)

// Decode is what every format with one cloud a value exports.
type Decode func(c *codec.Cloud, value []byte, limit int64) error

// Check decodes value and fails t unless the result is one that Decode may have: a
// *codec.Error with a place within value, or columns of one length; and not more memory
// than a few times limit and the bytes of value. Check returns the error of decode.
func Check(t testing.TB, decode Decode, value []byte, limit int64) error {
	t.Helper()
	var before, after runtime.MemStats
	var c codec.Cloud
	runtime.ReadMemStats(&before)
	err := decode(&c, value, limit)
	runtime.ReadMemStats(&after)
	if got, most := int64(after.TotalAlloc-before.TotalAlloc), 2*limit+64*int64(len(value))+1<<20; got > most {
		t.Errorf("%d bytes were allocated for a value of %d bytes and a limit of %d; want at most %d", got, len(value),
			limit, most)
	}
	if err != nil {
		var e *codec.Error
		if !errors.As(err, &e) || e.Reason == "" || e.Detail == "" || e.At > int64(len(value)) {
			t.Errorf("the error for %d bytes is %#v", len(value), err)
		}
		return err
	}
	n := c.Len()
	for _, column := range c.Extra.Int32s() {
		checkLength(t, "int32", len(*column), *column == nil, n)
	}
	checkLength(t, "intensity", len(c.Intensity), c.Intensity == nil, n)
	checkLength(t, "elongation", len(c.Elongation), c.Elongation == nil, n)
	checkLength(t, "t_offset_ns", len(c.TOffsetNs), c.TOffsetNs == nil, n)
	if c.Double {
		checkLength(t, "y", len(c.Cloud64.Y), false, n)
		checkLength(t, "z", len(c.Cloud64.Z), c.Cloud64.Z == nil, n)
	} else {
		checkLength(t, "y", len(c.Cloud32.Y), false, n)
		checkLength(t, "z", len(c.Cloud32.Z), c.Cloud32.Z == nil, n)
	}
	return nil
}

func checkLength(t testing.TB, name string, got int, absent bool, want int) {
	t.Helper()
	if !absent && got != want {
		t.Errorf("column %s has %d values of %d points", name, got, want)
	}
}

// Flips checks decode with every bit of value inverted, one at a time, then with runs of
// random bytes in its place. The same value gives the same damage.
func Flips(t testing.TB, decode Decode, value []byte, limit int64) {
	t.Helper()
	damaged := append([]byte(nil), value...)
	for bit := range 8 * len(value) {
		damaged[bit/8] ^= 1 << (bit % 8)
		Check(t, decode, damaged, limit)
		damaged[bit/8] = value[bit/8]
	}
	random := rand.New(rand.NewPCG(1, uint64(len(value))))
	for range 1000 {
		at := random.IntN(len(value))
		for i := at; i < min(at+random.IntN(16)+1, len(value)); i++ {
			damaged[i] = byte(random.Uint32())
		}
		Check(t, decode, damaged, limit)
		copy(damaged, value)
	}
}
