package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
)

// packBrotli packs plain with a quality and a window of 2^window bytes.
func packBrotli(t testing.TB, plain []byte, quality, window int) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := brotli.NewWriterOptions(&packed, brotli.WriterOptions{Quality: quality, LGWin: window})
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// brotliInputs are bytes of many kinds. Of the floats, none needs the library.
func brotliInputs() map[string][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	noise, image, smooth, few := make([]byte, 300_000), []byte(nil), []byte(nil), make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for i := range few {
		few[i] = "abc"[random.IntN(3)]
	}
	distance := 30.0
	for i := range 60_000 {
		distance += random.NormFloat64() / 50
		pixel := []float32{-1, 0, 0, -1}
		if i/500%4 != 0 && random.IntN(8) > 0 {
			pixel = []float32{float32(math.Round(128*distance) / 128), float32(random.IntN(64)) / 64, 0, -1}
		}
		for _, v := range pixel {
			image = binary.LittleEndian.AppendUint32(image, math.Float32bits(v))
		}
		smooth = binary.LittleEndian.AppendUint32(smooth, math.Float32bits(float32(math.Sin(float64(i)/1000))))
	}
	return map[string][]byte{"empty": nil, "one": {7}, "zeros": make([]byte, 1<<20), "noise": noise, "image": image,
		"smooth": smooth, "few": few,
		"text": []byte(strings.Repeat("The quick brown fox jumps over the lazy dog, and time passed. ", 500)),
		"runs": bytes.Repeat(append(bytes.Repeat([]byte{1}, 300), noise[:17]...), 400)}
}

// Every stream is unpacked to what was packed, by the library or without it; range images
// never need the library.
func TestBrotliUnpacksWhatWasPacked(t *testing.T) {
	var u unbrotli
	for name, plain := range brotliInputs() {
		for _, quality := range []int{0, 1, 2, 3, 5, 8, 9} {
			for _, window := range []int{0, 10, 24} {
				packed := packBrotli(t, plain, quality, window)
				got, ok := u.append([]byte("before"), packed, len(plain))
				if !ok {
					if name == "image" || name == "zeros" || name == "noise" || name == "runs" {
						t.Errorf("%s, quality %d, window %d: left to the library", name, quality, window)
					}
					if string(got) != "before" {
						t.Errorf("%s, quality %d, window %d: refused, and the memory has %d bytes",
							name, quality, window,
							len(got))
					}
					continue
				}
				if string(got) != "before"+string(plain) {
					t.Fatalf("%s, quality %d, window %d: other bytes", name, quality, window)
				}
			}
		}
	}
}

// Damaged streams give what the library gives, or are left to it.
func TestBrotliOfDamagedStreams(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var u unbrotli
	taken := 0
	for _, plain := range brotliInputs() {
		plain = plain[:min(len(plain), 20_000)]
		for _, quality := range []int{1, 3, 6, 9} {
			packed := packBrotli(t, plain, quality, 0)
			for round := range 300 {
				bad := bytes.Clone(packed)
				switch {
				case round%3 == 0:
					bad = bad[:random.IntN(len(bad)+1)]
				case round%3 == 1:
					bad = append(bad, byte(random.Uint32()))
				default:
					bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
				}
				if sameAsLibrary(t, &u, bad, len(plain)) {
					taken++
				}
			}
		}
	}
	if taken < 100 {
		t.Errorf("%d damaged streams were unpacked: too few to compare", taken)
	}
}

// sameAsLibrary fails if u unpacks src to something else than the library. It reports
// whether u unpacks it.
func sameAsLibrary(t testing.TB, u *unbrotli, src []byte, size int) bool {
	t.Helper()
	got, ok := u.append(nil, src, size)
	if !ok {
		return false
	}
	want, err := appendStream(nil, brotli.NewReader(bytes.NewReader(src)), size)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%x: %d bytes, the library has %d (%v)", src[:min(len(src), 200)], len(got), len(want), err)
	}
	return true
}

// A stream that claims more than it holds takes at most a few times what it holds.
func TestBrotliReservesWhatItUnpacks(t *testing.T) {
	packed := packBrotli(t, make([]byte, 10_000), 5, 0)
	for cut := range packed {
		got, ok := new(unbrotli).append(nil, packed[:cut], 1<<30)
		if ok || cap(got) > 1<<16 {
			t.Errorf("the first %d bytes: %v, %d bytes reserved", cut, ok, cap(got))
		}
	}
}

func FuzzBrotli(f *testing.F) {
	for _, plain := range brotliInputs() {
		for _, quality := range []int{1, 5, 9} {
			plain = plain[:min(len(plain), 4000)]
			f.Add(packBrotli(f, plain, quality, 0), len(plain))
		}
	}
	var u unbrotli
	f.Fuzz(func(t *testing.T, src []byte, size int) { sameAsLibrary(t, &u, src, min(max(size, 0), 1<<20)) })
}

func BenchmarkBrotli(b *testing.B) {
	plain := brotliInputs()["image"]
	for _, quality := range []int{3, 5, 8} {
		packed := packBrotli(b, plain, quality, 0)
		var u unbrotli
		var dst []byte
		b.Run(fmt.Sprintf("quality=%d/ours", quality), func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			for b.Loop() {
				dst, _ = u.append(dst[:0], packed, len(plain))
			}
		})
		b.Run(fmt.Sprintf("quality=%d/library", quality), func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			r, src := new(brotli.Reader), bytes.NewReader(nil)
			for b.Loop() {
				src.Reset(packed)
				r.Reset(src)
				dst, _ = appendStream(dst[:0], r, len(plain))
			}
		})
	}
}
