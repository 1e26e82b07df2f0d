package schemas

import (
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// The sum of a whole follows from the sums of its parts, whatever their
// lengths; the same for one part that was summed inside another.
func TestShiftCRCJoinsSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "a")
		b := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "b")
		sumA, sumB := crc32.Checksum(a, castagnoli), crc32.Checksum(b, castagnoli)
		whole := crc32.Update(sumA, castagnoli, b)
		if got := ShiftCRC(sumA, len(b)) ^ sumB; got != whole {
			t.Fatalf("%d and %d bytes: %08x, want %08x", len(a), len(b), got, whole)
		}
	})
}

// Long shifts agree with short ones that are put together: 2^k bytes twice are
// 2^(k+1) bytes.
func TestShiftCRCOfManyBytes(t *testing.T) {
	for k := range 61 {
		const sum = 0xdeadbeef
		if got, want := ShiftCRC(sum, 2<<k), ShiftCRC(ShiftCRC(sum, 1<<k), 1<<k); got != want {
			t.Errorf("2^%d bytes: %08x, want %08x", k+1, got, want)
		}
	}
	if got := ShiftCRC(1, 0); got != 1 {
		t.Errorf("a shift by nothing gives %08x", got)
	}
}

// What a record is does not depend on who summed its value up.
func TestIDOfASummedValue(t *testing.T) {
	m := Message{Offset: 7, Key: []byte("drive"), Value: make([]byte, 1<<20+3)}
	for i := range m.Value {
		m.Value[i] = byte(i * i >> 3)
	}
	want := m.ID()
	m.ValueSum, m.Summed = crc32.Checksum(m.Value, castagnoli), true
	if got := m.ID(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if m.ValueSum++; m.ID() == want {
		t.Error("the sum that the source knows is not used")
	}
}

func BenchmarkShiftCRC(b *testing.B) {
	sum := uint32(1)
	for b.Loop() {
		sum = ShiftCRC(sum, 1975983)
	}
}
