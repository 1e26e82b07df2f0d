package freeze

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/models/safetensors"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/support"
)

// npy makes a file of bytes with a shape.
func npy(kind, shape string, body []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, shape)
	data := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	header += strings.Repeat(" ", 63-(len(header)+10)%64) + "\n"
	binary.LittleEndian.PutUint16(data[8:], uint16(len(header)))
	return append(append(data, header...), body...)
}

func TestArraysOfEveryKindAreRead(t *testing.T) {
	for _, c := range []struct {
		kind, shape string
		body        []byte
		want        []float64
		dims        []int
	}{
		{"|b1", "2, 1", []byte{0, 1}, []float64{0, 1}, []int{2, 1}},
		{"|i1", "2,", []byte{0xff, 1}, []float64{-1, 1}, []int{2}},
		{"<u2", "1, 1", []byte{1, 2}, []float64{513}, []int{1, 1}},
		{"<i8", "1", []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []float64{-2}, []int{1}},
		{"<f4", "1", binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5)), []float64{1.5}, []int{1}},
		{"<f8", "1", binary.LittleEndian.AppendUint64(nil, math.Float64bits(-2.5)), []float64{-2.5}, []int{1}},
	} {
		shape, values, err := parseNPY(npy(c.kind, c.shape, c.body))
		if err != nil || !slices.Equal(values, c.want) || !slices.Equal(shape, c.dims) {
			t.Errorf("%s (%s): %v %v, %v", c.kind, c.shape, shape, values, err)
		}
	}
	for name, data := range map[string][]byte{
		"empty":     nil,
		"cut":       npy("<f4", "1", nil)[:20],
		"short":     npy("<f4", "2", make([]byte, 4)),
		"long":      npy("<f4", "1", make([]byte, 8)),
		"ragged":    npy("<f4", "1", make([]byte, 5)),
		"big order": npy(">f4", "1", make([]byte, 4)),
		"half":      npy("<f2", "1", make([]byte, 2)),
		"zero":      npy("<f4", "0", nil),
		"overflow":  npy("<f4", "9223372036854775807, 9223372036854775807", make([]byte, 4)),
	} {
		if shape, _, err := parseNPY(data); err == nil {
			t.Errorf("%s: read as %v", name, shape)
		}
	}
}

// Pixels are what a model can compute with; anything else names the file.
func TestPixelsAreFinite(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string // part of the error
	}{
		{[]float64{0, -1.5, math.MaxFloat32}, ""},
		{[]float64{0, math.NaN(), 0}, "number 1 is NaN"},
		{[]float64{0, 0, math.Inf(-1)}, "number 2 is -Inf"},
		{[]float64{1e39, 0, 0}, "number 0 is 1e+39"},
	} {
		var body []byte
		for _, v := range c.values {
			body = binary.LittleEndian.AppendUint64(body, math.Float64bits(v))
		}
		path := filepath.Join(t.TempDir(), "pixels.npy")
		if err := os.WriteFile(path, npy("<f8", "3,", body), 0o666); err != nil {
			t.Fatal(err)
		}
		_, pixels, err := ReadPixels(path)
		switch {
		case c.want == "" && (err != nil || len(pixels) != 3 || float64(pixels[1]) != c.values[1]):
			t.Errorf("%v: %v, %v", c.values, pixels, err)
		case c.want != "" && (err == nil || err.Error() != path+": "+c.want):
			t.Errorf("%v: got %v, want %q", c.values, err, c.want)
		}
	}
}

func FuzzNPY(f *testing.F) {
	f.Add(npy("<f4", "2, 1", make([]byte, 8)))
	f.Add(npy("|b1", "3,", []byte{1, 0, 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		shape, values, err := parseNPY(data)
		if err != nil {
			return
		}
		n := 1
		for _, d := range shape {
			n *= d
		}
		if n != len(values) || len(values) > len(data) {
			t.Fatalf("shape %v of %d values from %d bytes", shape, len(values), len(data))
		}
	})
}

// Blocks of every number of dimensions become the layouts that they draw.
func TestArraysBecomeLayouts(t *testing.T) {
	const blocks = 6
	draw := func(heads int) []byte { // head h reads the diagonal and block h
		var body []byte
		for h := range heads {
			for r := range blocks {
				for c := range blocks {
					body = append(body, map[bool]byte{true: 1}[c == r || c == h])
				}
			}
		}
		return body
	}
	m := load(t, hftest.LLaMA) // 2 layers, 4 heads, 2 of keys
	for _, c := range []struct {
		shape string
		heads int
		want  [][]int32 // columns of row 5 of each key head in layer 0
	}{
		{"6, 6", 1, [][]int32{{0, 5}, {0, 5}}},
		{"2, 6, 6", 2, [][]int32{{0, 5}, {1, 5}}},
		{"1, 2, 6, 6", 2, [][]int32{{0, 5}, {1, 5}}},
		{"1, 4, 6, 6", 4, [][]int32{{0, 1, 5}, {2, 3, 5}}},
		{"2, 2, 6, 6", 4, [][]int32{{0, 5}, {1, 5}}},
	} {
		t.Run(c.shape, func(t *testing.T) {
			body := draw(c.heads)
			for i := range body { // a causal mask has nothing above the diagonal
				if r, k := i/blocks%blocks, i%blocks; k > r {
					body[i] = 0
				}
			}
			path := filepath.Join(t.TempDir(), "m.npy")
			if err := os.WriteFile(path, npy("|u1", c.shape, body), 0o666); err != nil {
				t.Fatal(err)
			}
			mask, err := ReadMask(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Freeze(t.Context(), m, sequences(4, 96),
				Options{Select: Imported, Import: mask, Block: 16, Buckets: []int{96}})
			if err != nil {
				t.Fatal(err)
			}
			for head, want := range c.want {
				if got, _ := s.Buckets[0].Layouts[s.Buckets[0].Of[head]].Row(5); !slices.Equal(got, want) {
					t.Errorf("head %d: %v, want %v", head, got, want)
				}
			}
		})
	}
}

// A mask that is exported as FlashInfer's rows and imported again has the same
// identity: every head of every layer comes back to its place.
func TestRowsOfBlocksComeBack(t *testing.T) {
	m, in := load(t, hftest.LLaMA), sequences(4, 96)
	o := Options{Select: BigBird, Sparsity: 0.5, Block: 16, Buckets: []int{96}, Seed: 3}
	made, err := Freeze(t.Context(), m, in, o)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(made.Buckets[0].Layouts); n < 3 {
		t.Fatalf("%d layouts are too few to be told apart", n)
	}
	path := filepath.Join(t.TempDir(), "rows.safetensors")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(made.Export(f, support.FlashInfer), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Select = Imported
	if o.Import, err = ReadMask(path); err != nil {
		t.Fatal(err)
	}
	again, err := Freeze(t.Context(), m, in, o)
	if err != nil {
		t.Fatal(err)
	}
	a, err := made.SHA256()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := again.SHA256(); err != nil || a != b {
		t.Errorf("%s came back as %s (%v)", a, b, err)
	}
}

func TestMasksThatDoNotFitAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rows := filepath.Join(dir, "rows.safetensors")
	err := safetensors.WriteFile(rows, nil, []safetensors.Array{
		{Name: "indptr", Shape: []int{1, 1, 2}, Data: []int32{0, 9}},
		{Name: "indices", Shape: []int{1}, Data: []int32{0}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "absent"), dir, file("a.txt", nil), file("a.npy", nil),
		file("b.npy", npy("|b1", "2", make([]byte, 2))), rows,
		file("a.safetensors", make([]byte, 8))} {
		if _, err := ReadMask(path); err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: %v", path, err)
		}
	}
	m := load(t, hftest.BERT)
	for name, data := range map[string][]byte{
		"other length": npy("|b1", "5, 5", slices.Repeat([]byte{1}, 25)),
		"other heads":  npy("|b1", "3, 6, 6", slices.Repeat([]byte{1}, 108)),
		"other layers": npy("|b1", "3, 4, 6, 6", slices.Repeat([]byte{1}, 432)),
		"not square":   npy("|b1", "6, 5", slices.Repeat([]byte{1}, 30)),
		"nor so":       npy("|b1", "5, 6", slices.Repeat([]byte{1}, 30)),
		"empty row":    npy("|b1", "6, 6", make([]byte, 36)),
	} {
		mask, err := ReadMask(file("m.npy", data))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Freeze(t.Context(), m, sequences(4, 96),
			Options{Select: Imported, Import: mask, Block: 16, Buckets: []int{96}})
		if err == nil || !strings.Contains(err.Error(), "m.npy") {
			t.Errorf("%s: %v", name, err)
		}
	}
	other, err := Freeze(t.Context(), load(t, hftest.GPT2), sequences(4, 96),
		Options{Select: Window, Sparsity: 0.5, Block: 16, Buckets: []int{96}})
	if err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(dir, "set")
	if err := other.Write(set); err != nil {
		t.Fatal(err)
	}
	mask, err := ReadMask(set)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Freeze(t.Context(), m, sequences(4, 96),
		Options{Select: Imported, Import: mask, Block: 16, Buckets: []int{96}})
	if err == nil || !strings.Contains(err.Error(), "causal") {
		t.Errorf("a causal set for an encoder: %v", err)
	}
	if s, err := support.Read(set); err != nil || s.Select.Name != Window {
		t.Errorf("%+v, %v", s, err)
	}
}

// Anchors of the same weights are judged again as they were, with a window of
// their own budget; those of other weights are refused.
func TestAnchorsAreImportedForTheirOwnWeights(t *testing.T) {
	m, in := load(t, hftest.BERT), sequences(4, 96)
	made, err := Freeze(t.Context(), m, in, Options{Select: Affinity, Mode: support.Anchor, Sparsity: 0.5, Block: 16,
		Buckets: []int{96}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := made.Write(dir); err != nil {
		t.Fatal(err)
	}
	mask, err := ReadMask(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Select: Imported, Import: mask, Sparsity: 0.9, Block: 16, Buckets: []int{96}}
	again, err := Freeze(t.Context(), m, in, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made.Quality, again.Quality); diff != "" || again.Select.Sparsity != 0.5 {
		t.Errorf("sparsity %v, %s", again.Select.Sparsity, diff)
	}
	a, _ := made.SHA256()
	if b, _ := again.SHA256(); a != b {
		t.Errorf("identity %s, and imported %s", a, b)
	}
	mask.set.Weights = strings.Repeat("0", 64)
	if _, err := Freeze(t.Context(), m, in, o); err == nil || !strings.Contains(err.Error(), "another model's keys") {
		t.Errorf("anchors of other weights: %v", err)
	}
}
