package evex

import (
	"fmt"
	"testing"
)

// What GNU as writes for them, checked against LLVM's.
func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name      string
		a, b, dst int
		want      string
	}{
		{"VDPBF16PS", 0, 0, 0, "62 f2 7e 48 52 c0"},
		{"VDPBF16PS", 31, 31, 31, "62 02 06 40 52 ff"},
		{"VDPBF16PS", 7, 8, 15, "62 72 3e 48 52 ff"},
		{"VDPBF16PS", 16, 0, 1, "62 b2 7e 48 52 c8"},
		{"VDPBF16PS", 1, 16, 0, "62 f2 7e 40 52 c1"},
		{"VDPBF16PS", 0, 1, 16, "62 e2 76 48 52 c0"},
		{"VDPBF16PS", 8, 23, 24, "62 42 46 40 52 c0"},
		{"VDPBF16PS", 29, 5, 18, "62 82 56 48 52 d5"},
		{"VDPBF16PS", 15, 30, 9, "62 52 0e 40 52 cf"},
		{"VCVTNE2PS2BF16", 0, 0, 0, "62 f2 7f 48 72 c0"},
		{"VCVTNE2PS2BF16", 31, 31, 31, "62 02 07 40 72 ff"},
		{"VCVTNE2PS2BF16", 7, 8, 15, "62 72 3f 48 72 ff"},
		{"VCVTNE2PS2BF16", 16, 0, 1, "62 b2 7f 48 72 c8"},
		{"VCVTNE2PS2BF16", 1, 16, 0, "62 f2 7f 40 72 c1"},
		{"VCVTNE2PS2BF16", 0, 1, 16, "62 e2 77 48 72 c0"},
		{"VCVTNE2PS2BF16", 8, 23, 24, "62 42 47 40 72 c0"},
		{"VCVTNE2PS2BF16", 29, 5, 18, "62 82 57 48 72 d5"},
		{"VCVTNE2PS2BF16", 15, 30, 9, "62 52 0f 40 72 cf"},
	} {
		if got := fmt.Sprintf("% x", Encode(c.name, c.a, c.b, c.dst)); got != c.want {
			t.Errorf("%s Z%d, Z%d, Z%d: %s, want %s", c.name, c.a, c.b, c.dst, got, c.want)
		}
	}
}

// Every operation in a text becomes bytes, and nothing else changes.
func TestBytes(t *testing.T) {
	in := "\tVMOVUPS   (AX), Z1\n\tVDPBF16PS Z29, Z5, Z18\n\tVCVTNE2PS2BF16 Z0, Z1, Z16 \n\tRET\n"
	want := "\tVMOVUPS   (AX), Z1\n\tLONG $0x48568262; WORD $0xd552 // VDPBF16PS Z29, Z5, Z18\n" +
		"\tVCVTNE2PS2BF16 Z0, Z1, " +
		"Z16 \n\tRET\n"
	if got := string(Bytes([]byte(in))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
