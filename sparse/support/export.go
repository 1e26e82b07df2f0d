package support

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"entropipe/models/safetensors"
)

// Forms of masks of other programs.
const (
	ORT        = "ort"        // ONNX Runtime, operator SparseAttention
	Flex       = "flex"       // PyTorch, torch.nn.attention.flex_attention.BlockMask
	FlashInfer = "flashinfer" // FlashInfer, block sparse rows
)

// maxExported bounds the bytes of an exported mask.
const maxExported int64 = 4 << 30

// Export writes the layouts of the longest bucket as tensors of another program,
// to one safetensors file. Its metadata hold the form, the block, the length and
// causality. The tensors cover all heads of all layers; a dense head reads every
// block.
//
//	ort         block_row_indices I32 [layers, heads, rows+1], block_col_indices I32 [layers, heads, most entries],
//	            padded with -1: the operator's two inputs, a layer at a time
//	flex        kv_num_blocks I32 [layers, kv_heads, rows], kv_indices I32 [layers, kv_heads, rows, columns]: blocks
//	            that positions cut; full_kv_num_blocks, full_kv_indices: all other blocks. Unused indices are 0
//	flashinfer  indptr I32 [layers, kv_heads, rows+1] into indices I32 [entries],
//	            packed_mask U8 [entries, block*block/8],
//	            lowest bit first, which combines positions and bits
//
// If layouts have an Order, there is a tensor order I32 [layers, kv_heads, length],
// too: keys and values must be permuted by it. Export returns an error if the form
// cannot express the set: ort has no orders, encoders and masked blocks; flex has no
// masked blocks; no form has sets of mode Anchor.
func (s *Set) Export(w io.Writer, form string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Mode == Anchor {
		return errors.New("the set chooses blocks for each input: it has no fixed mask to export")
	}
	x := &exporter{set: s, bucket: &s.Buckets[len(s.Buckets)-1]}
	if size := x.size(form); size > maxExported {
		return fmt.Errorf("the exported file would have %d bytes, more than %d", size, maxExported)
	}
	for i := range x.bucket.Of {
		x.layouts = append(x.layouts, x.layout(i))
	}
	var arrays []safetensors.Array
	var err error
	switch form {
	case ORT:
		arrays, err = x.ort()
	case Flex:
		arrays, err = x.flex()
	case FlashInfer:
		arrays, err = x.flashInfer()
	default:
		err = fmt.Errorf("form is %q but must be %s, %s or %s", form, ORT, Flex, FlashInfer)
	}
	if err != nil {
		return err
	}
	if x.ordered() {
		arrays = append(arrays, x.orders())
	}
	return safetensors.Write(w, map[string]string{
		"format": form, "block": strconv.Itoa(s.Block), "length": strconv.Itoa(x.bucket.Length),
		"causal": strconv.FormatBool(s.Causal),
	}, arrays)
}

// exporter holds a layout for every head of one bucket.
type exporter struct {
	set     *Set
	bucket  *Bucket
	layouts []*Layout
}

// size estimates the bytes of a form, including layouts of dense heads, so that a
// small file cannot make Export allocate too much memory.
func (x *exporter) size(form string) int64 {
	s, blocks := x.set, int64(Blocks(x.bucket.Length, x.set.Block))
	all, entries, most := blocks*blocks, int64(0), int64(0)
	if s.Causal {
		all = blocks * (blocks + 1) / 2
	}
	for _, of := range x.bucket.Of {
		n := all
		if of >= 0 {
			n = int64(len(x.bucket.Layouts[of].Col))
		}
		entries, most = entries+n, max(most, n)
	}
	switch form {
	case ORT:
		return 5*entries + 4*int64(s.Layers*s.Heads)*most
	case Flex:
		return 5*entries + 8*int64(len(x.bucket.Of))*blocks*blocks
	}
	return entries * int64(9+s.Block*s.Block/8)
}

// layout returns the layout of a head; the layout of a dense head has every block.
func (x *exporter) layout(head int) *Layout {
	if of := x.bucket.Of[head]; of >= 0 {
		return x.bucket.Layouts[of]
	}
	blocks := Blocks(x.bucket.Length, x.set.Block)
	return New(x.bucket.Length, x.set.Block, x.set.Causal, func(r int) (cols []int32) {
		for c := range blocks {
			if !x.set.Causal || c <= r {
				cols = append(cols, int32(c))
			}
		}
		return cols
	})
}

func (x *exporter) ordered() bool {
	return len(x.bucket.Layouts) > 0 && x.bucket.Layouts[0].Order != nil
}

func (x *exporter) masked() bool {
	for _, l := range x.layouts {
		if len(l.Bits) > 0 {
			return true
		}
	}
	return false
}

func (x *exporter) orders() safetensors.Array {
	var all []int32
	for _, l := range x.layouts {
		order := l.Order
		for k := 0; order == nil && k < x.bucket.Length; k++ { // a dense head has no order
			all = append(all, int32(k))
		}
		all = append(all, order...)
	}
	return safetensors.Array{Name: "order", Shape: []int{x.set.Layers, x.set.KVHeads, x.bucket.Length}, Data: all}
}

func (x *exporter) ort() ([]safetensors.Array, error) {
	s := x.set
	if !s.Causal || x.ordered() || x.masked() {
		return nil, errors.New("SparseAttention is causal, and supports neither orders of keys nor masks within blocks")
	}
	most := 0
	for _, l := range x.layouts {
		most = max(most, len(l.Col))
	}
	var rows, cols []int32
	for layer := range s.Layers {
		for h := range s.Heads { // the operator has a layout for each query head
			l := x.layouts[layer*s.KVHeads+h*s.KVHeads/s.Heads]
			rows, cols = append(rows, l.RowPtr...), append(cols, l.Col...)
			for range most - len(l.Col) {
				cols = append(cols, -1)
			}
		}
	}
	return []safetensors.Array{
		{Name: "block_row_indices", Shape: []int{s.Layers, s.Heads, x.layouts[0].Rows + 1}, Data: rows},
		{Name: "block_col_indices", Shape: []int{s.Layers, s.Heads, most}, Data: cols},
	}, nil
}

func (x *exporter) flex() ([]safetensors.Array, error) {
	s := x.set
	if x.masked() {
		return nil, errors.New("a BlockMask has no masks within blocks: positions alone cut them")
	}
	blocks := x.layouts[0].Cols
	var numbers, indices [2][]int32 // blocks that positions cut, full blocks
	for _, l := range x.layouts {
		for r := range l.Rows {
			cols, kinds := l.Row(r)
			var of [2][]int32
			for i, c := range cols {
				full := 0
				if kinds[i] == Full {
					full = 1
				}
				of[full] = append(of[full], c)
			}
			for i, c := range of {
				numbers[i] = append(numbers[i], int32(len(c)))
				indices[i] = append(append(indices[i], c...), make([]int32, blocks-len(c))...)
			}
		}
	}
	heads := []int{s.Layers, s.KVHeads, blocks}
	table := append(heads[:3:3], blocks)
	return []safetensors.Array{
		{Name: "kv_num_blocks", Shape: heads, Data: numbers[0]}, {Name: "kv_indices", Shape: table, Data: indices[0]},
		{Name: "full_kv_num_blocks", Shape: heads, Data: numbers[1]},
		{Name: "full_kv_indices", Shape: table, Data: indices[1]},
	}, nil
}

func (x *exporter) flashInfer() ([]safetensors.Array, error) {
	s, size := x.set, x.set.Block*x.set.Block
	var ptr, indices []int32
	var mask []uint8
	for _, l := range x.layouts {
		for _, p := range l.RowPtr {
			ptr = append(ptr, int32(len(indices))+p)
		}
		masked := 0
		for r := range l.Rows {
			cols, kinds := l.Row(r)
			for i, c := range cols {
				var bits []uint64
				if kinds[i] == Masked {
					bits = l.Bits[masked*l.Words():][:l.Words()]
					masked++
				}
				mask = x.appendBits(mask, l, r, int(c), bits)
			}
		}
		indices = append(indices, l.Col...)
	}
	return []safetensors.Array{
		{Name: "indptr", Shape: []int{s.Layers, s.KVHeads, x.layouts[0].Rows + 1}, Data: ptr},
		{Name: "indices", Shape: []int{len(indices)}, Data: indices},
		{Name: "packed_mask", Shape: []int{len(indices), size / 8}, Data: mask},
	}, nil
}

// appendBits appends a bit for each query and key of a block, 1 if the query reads
// the key. Queries and keys beyond the sequence have 0.
func (x *exporter) appendBits(dst []uint8, l *Layout, r, c int, bits []uint64) []uint8 {
	words := make([]uint64, l.Words())
	for q := range l.Block {
		for k := range l.Block {
			query, key := r*l.Block+q, c*l.Block+k
			at := q*l.Block + k
			if query < x.bucket.Length && key < x.bucket.Length && (!x.set.Causal || key <= query) &&
				(bits == nil || l.bit(bits, q, k)) {
				words[at/64] |= 1 << (at % 64)
			}
		}
	}
	for _, w := range words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}
