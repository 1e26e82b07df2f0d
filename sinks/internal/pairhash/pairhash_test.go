package pairhash

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// atEveryLevel runs a test without and, where the CPU has them, with the SHA extensions.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	has := paired
	defer func() { paired = has }()
	for _, level := range []bool{false, true} {
		t.Run(fmt.Sprintf("paired=%t", level), func(t *testing.T) {
			if level && !has {
				t.Skip("the CPU has no SHA extensions")
			}
			paired = level
			f(t)
		})
	}
}

func sumOf(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

// The extensions are used where the CPU has them: this Go's crypto/sha256 encodes its state as this
// package knows it.
func TestExtensionsAreUsed(t *testing.T) {
	if paired != hasSHA() {
		t.Errorf("paired %t, and the CPU has the extensions: %t", paired, hasSHA())
	}
}

// Law: however two messages come in pieces, alone and in pairs, each sum is that of crypto/sha256,
// also in between.
func TestSumsAreThoseOfTheLibrary(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			rng := rand.NewChaCha8([32]byte{byte(rapid.IntRange(0, 255).Draw(t, "seed"))})
			room := make([]byte, 1<<17)
			rng.Read(room)
			cut := func(name string) []byte {
				length := rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(900, 1300), rapid.IntRange(0, 40_000))
				n := length.Draw(t, name)
				from := rapid.IntRange(0, len(room)-n).Draw(t, name+" from")
				return room[from : from+n]
			}
			digests, messages := [3]*Digest{New(), New(), New()}, [3][]byte{}
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				i := rapid.IntRange(0, 2).Draw(t, "digest")
				switch p := cut("piece"); rapid.IntRange(0, 7).Draw(t, "way") {
				case 0:
					digests[i].Reset()
					messages[i] = nil
				case 1:
					digests[i].Write(p)
					messages[i] = append(messages[i], p...)
				default:
					j, q := (i+rapid.IntRange(1, 2).Draw(t, "other"))%3, cut("other piece")
					WriteBoth(digests[i], p, digests[j], q)
					messages[i], messages[j] = append(messages[i], p...), append(messages[j], q...)
				}
				for i, d := range digests {
					if d.Bytes() != int64(len(messages[i])) || d.Hex() != sumOf(messages[i]) {
						t.Fatalf("digest %d of %d bytes: %d, %s, want %s", i, len(messages[i]), d.Bytes(), d.Hex(),
							sumOf(messages[i]))
					}
				}
			}
		})
	})
}

// Every length around the first blocks, in both places, behind messages of every length modulo a
// block.
func TestEveryLengthOfAPair(t *testing.T) {
	room := make([]byte, 4096)
	rand.NewChaCha8([32]byte{1}).Read(room)
	atEveryLevel(t, func(t *testing.T) {
		for before := range blockBytes {
			for n := worthwhile - 2; n < worthwhile+2*blockBytes; n++ {
				a, b := New(), New()
				a.Write(room[:before])
				b.Write(room[:blockBytes-before])
				p, q := room[before:before+n], room[7:7+2*worthwhile-before]
				WriteBoth(a, p, b, q)
				if got, want := a.Hex(), sumOf(room[:before+n]); got != want {
					t.Fatalf("%d bytes behind %d: %s, want %s", n, before, got, want)
				}
				want := sumOf(append(append([]byte{}, room[:blockBytes-before]...), q...))
				if got := b.Hex(); got != want {
					t.Fatalf("%d bytes behind %d: %s, want %s", len(q), blockBytes-before, got, want)
				}
			}
		}
	})
}

// Vectors of FIPS 180-4 and its examples.
func TestVectors(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		million := make([]byte, 1_000_000)
		for i := range million {
			million[i] = 'a'
		}
		a, b := New(), New()
		WriteBoth(a, million, b, []byte("abc"))
		if got, want := a.Hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"; got != want {
			t.Errorf("a million a: %s, want %s", got, want)
		}
		if got, want := b.Hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
			t.Errorf("abc: %s, want %s", got, want)
		}
		a.Reset()
		b.Reset()
		WriteBoth(a, million[:500_000], b, million)
		WriteBoth(b, nil, a, million[500_000:])
		if a.Hex() != b.Hex() || a.Hex()[:8] != "cdc76e5c" {
			t.Errorf("a million a: %s and %s", a.Hex(), b.Hex())
		}
	})
}

func BenchmarkWriteBoth(b *testing.B) {
	has := paired
	defer func() { paired = has }()
	for _, size := range []int{1 << 10, 8 << 10, 256 << 10} {
		for _, level := range []bool{false, true} {
			b.Run(fmt.Sprintf("bytes=2x%d/paired=%t", size, level), func(b *testing.B) {
				if paired = level; level && !has {
					b.Skip("the CPU has no SHA extensions")
				}
				p := make([]byte, size)
				one, two := New(), New()
				b.SetBytes(int64(2 * size))
				b.ReportAllocs()
				for b.Loop() {
					WriteBoth(one, p, two, p)
				}
			})
		}
	}
}
