package support

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"entropipe/models/safetensors"
)

// exported writes a set in a form and opens what came of it.
func exported(t interface {
	Helper()
	Fatal(args ...any)
}, s *Set, form string) *safetensors.File {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(&b, form); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.New(form, bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func numbers(t interface {
	Helper()
	Fatal(args ...any)
}, f *safetensors.File, name string) []int64 {
	t.Helper()
	tensor, ok := f.Lookup(name)
	if !ok {
		t.Fatal("no tensor " + name)
	}
	v, err := tensor.Int64s(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// keysOf are the keys that a query of a head reads, ascending.
func keysOf(s *Set, head, query int) []int32 {
	b := &s.Buckets[len(s.Buckets)-1]
	var keys []int32
	if b.Of[head] >= 0 {
		keys = b.Layouts[b.Of[head]].AppendKeys(nil, query, b.Length, s.Causal)
	} else {
		for k := range b.Length {
			if !s.Causal || k <= query {
				keys = append(keys, int32(k))
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// FlashInfer's arrays name exactly the keys that the layouts name.
func TestFlashInferReadsTheSameKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSet(t)
		if s.Mode == Anchor {
			s.Mode, s.Anchors = Static, nil
		}
		f := exported(t, s, FlashInfer)
		ptr, indices, mask := numbers(t, f, "indptr"), numbers(t, f, "indices"), numbers(t, f, "packed_mask")
		var order []int64
		if b := s.Buckets[0]; len(b.Layouts) > 0 && b.Layouts[0].Order != nil {
			order = numbers(t, f, "order")
		}
		n := s.Buckets[0].Length
		rows := Blocks(n, 16)
		for head := range s.Buckets[0].Of {
			for q := range n {
				var got []int32
				for e := ptr[head*(rows+1)+q/16]; e < ptr[head*(rows+1)+q/16+1]; e++ {
					for k := range 16 {
						at := q%16*16 + k
						if mask[int(e)*32+at/8]>>(at%8)&1 == 0 {
							continue
						}
						key := int32(indices[e])*16 + int32(k)
						if order != nil {
							key = int32(order[head*n+int(key)])
						}
						got = append(got, key)
					}
				}
				slices.Sort(got)
				if want := keysOf(s, head, q); !slices.Equal(got, want) {
					t.Fatalf("head %d, query %d reads %v, want %v", head, q, got, want)
				}
			}
		}
	})
}

// golden is a causal set of 3 blocks: a sink with the own block, and a dense
// head. Two query heads read each key head.
func golden() *Set {
	s := example()
	s.Heads, s.Layers = 4, 1
	s.Buckets[0].Layouts[0] = New(40, 16, true, func(r int) []int32 { return slices.Compact([]int32{0, int32(r)}) })
	s.Buckets[0].Length, s.Buckets[0].Of = 40, []int32{0, -1}
	return s
}

func TestExportsAreGolden(t *testing.T) {
	for _, c := range []struct {
		form, name string
		want       []int64
	}{
		{ORT, "block_row_indices", []int64{0, 1, 3, 5, 0, 1, 3, 5, 0, 1, 3, 6, 0, 1, 3, 6}},
		{ORT, "block_col_indices", []int64{0, 0, 1, 0, 2, -1, 0, 0, 1, 0, 2, -1, 0, 0, 1, 0, 1, 2, 0, 0, 1, 0, 1, 2}},
		{Flex, "kv_num_blocks", []int64{1, 1, 1, 1, 1, 1}},
		{Flex, "kv_indices", []int64{0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0}},
		{Flex, "full_kv_num_blocks", []int64{0, 1, 1, 0, 1, 2}},
		{Flex, "full_kv_indices", []int64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}},
		{FlashInfer, "indptr", []int64{0, 1, 3, 5, 5, 6, 8, 11}},
		{FlashInfer, "indices", []int64{0, 0, 1, 0, 2, 0, 0, 1, 0, 1, 2}},
	} {
		if got := numbers(t, exported(t, golden(), c.form), c.name); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %v, want %v", c.form, c.name, got, c.want)
		}
	}
}

func TestExportRefusesWhatAFormCannotSay(t *testing.T) {
	encoder := example()
	encoder.Causal = false
	masked := example()
	masked.Buckets[0].Layouts[0] = full(48, true)
	l := masked.Buckets[0].Layouts[0]
	l.Kind[1] = Masked // row 1, block 0
	l.Bits = make([]uint64, l.Words())
	anchored := example()
	anchored.Causal, anchored.Mode, anchored.Anchors = false, Anchor, &Anchors{K: 1, Data: make([]float32, 2*2*4)}
	broken := example()
	broken.Block = 17
	// A file of a few hundred kilobytes, whose table of blocks would be 32 GiB; and
	// a dense head beside it.
	long := &Set{Facts: Facts{Arch: "gpt2", Layers: 1, Heads: 1, KVHeads: 1, Dim: 4, Causal: true},
		Block: 16, Mode: Static,
		Select: Selector{Name: "window"}, Serve: Sparse, Buckets: []Bucket{{Length: 1 << 20, Of: []int32{0}}}}
	long.Buckets[0].Layouts = []*Layout{New(1<<20, 16, true, func(r int) []int32 { return []int32{int32(r)} })}
	dense := *long
	dense.Buckets = []Bucket{{Length: 1 << 20, Of: []int32{-1}}}
	for _, c := range []struct {
		set        *Set
		form, want string
	}{
		{encoder, ORT, "causal"}, {masked, ORT, "within blocks"}, {masked, Flex, "within blocks"},
		{long, Flex, "bytes, more than"}, {&dense, ORT, "bytes, more than"}, {&dense, FlashInfer, "bytes, more than"},
		{anchored, Flex, "each input"}, {example(), "csr", "csr"}, {broken, Flex, "17"},
	} {
		if err := c.set.Export(io.Discard, c.form); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.form, err, c.want)
		}
	}
}

// PyTorch's BlockMask and ONNX Runtime's operator take the arrays and mean the
// same blocks.
func TestPeersReadExports(t *testing.T) {
	program := os.Getenv("ENTROPIPE_TORCH_PYTHON")
	if program == "" {
		t.Skip("peers: ENTROPIPE_TORCH_PYTHON is not set (a Python with torch, onnx and onnxruntime)")
	}
	dir := t.TempDir()
	for _, form := range []string{ORT, Flex, FlashInfer} {
		f, err := os.Create(filepath.Join(dir, form+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		if err := golden().Export(f, form); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, program, filepath.Join("testdata", "exports.py"), dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
}
