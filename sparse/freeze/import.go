package freeze

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"entropipe/models/safetensors"
	"entropipe/sparse/support"
)

// Mask is a mask of another program or of another run: either a set or blocks.
type Mask struct {
	name   string
	set    *support.Set
	shape  []int  // [layers][heads][rows][columns], without layers or heads if all are equal
	blocks []bool // true if the block is read
}

// ReadMask reads a mask. path is one of these:
//
//   - A folder of a set.
//   - A .npy file with numbers [layers, heads, rows, columns] that are not zero where
//     a block is read. The first one or two dimensions may be missing if all layers or
//     heads are equal.
//   - A .safetensors file with block rows as in FlashInfer, indptr [layers, heads,
//     rows+1] into indices; or with the open gates of a training (gates.safetensors of
//     package train).
//
// Errors name the file.
func ReadMask(path string) (*Mask, error) {
	m := &Mask{name: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.IsDir():
		m.set, err = support.Read(path)
	case strings.EqualFold(filepath.Ext(path), ".npy"):
		err = m.readArray(path)
	case strings.EqualFold(filepath.Ext(path), ".safetensors"):
		err = m.readRows(path)
	default:
		err = fmt.Errorf("%s is neither a folder of a mask nor a .npy or .safetensors file", path)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Mask) readArray(path string) error {
	shape, values, err := readNPY(path)
	if err != nil {
		return err
	}
	if len(shape) < 2 || len(shape) > 4 {
		return fmt.Errorf("%s: its shape is %v but must be [layers, heads, rows, columns], or the last two or three",
			path, shape)
	}
	m.shape, m.blocks = shape, make([]bool, len(values))
	for i, v := range values {
		m.blocks[i] = v != 0
	}
	return nil
}

// maxImported bounds the number of blocks of an imported mask.
const maxImported = 1 << 28

func (m *Mask) readRows(path string) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if open, ok := f.Lookup("open"); ok {
		return m.readGates(path, open)
	}
	ptr, ok := f.Lookup("indptr")
	idx, ok2 := f.Lookup("indices")
	if !ok || !ok2 || len(ptr.Shape) != 3 || len(idx.Shape) != 1 {
		return fmt.Errorf("%s: it has neither tensors indptr [layers, heads, rows+1] and indices [entries], "+
			"nor open [layers, heads, rows, columns] of a training that closed blocks", path)
	}
	indptr, err := ptr.Int64s(nil)
	if err != nil {
		return err
	}
	indices, err := idx.Int64s(nil)
	if err != nil {
		return err
	}
	rows := ptr.Shape[2] - 1
	if rows < 1 || len(indptr)*rows > maxImported {
		return fmt.Errorf("%s: %d rows of blocks in each of %d heads are out of range",
			path, rows, ptr.Shape[0]*ptr.Shape[1])
	}
	m.shape = []int{ptr.Shape[0], ptr.Shape[1], rows, rows}
	m.blocks = make([]bool, ptr.Shape[0]*ptr.Shape[1]*rows*rows)
	for h := range ptr.Shape[0] * ptr.Shape[1] {
		for r := range rows {
			lo, hi := indptr[h*(rows+1)+r], indptr[h*(rows+1)+r+1]
			if lo < 0 || hi < lo || hi > int64(len(indices)) {
				return fmt.Errorf("%s: head %d, row %d: entries %d to %d are not within %d",
					path, h, r, lo, hi, len(indices))
			}
			for _, c := range indices[lo:hi] {
				if c < 0 || c >= int64(rows) {
					return fmt.Errorf("%s: head %d, row %d: block %d does not exist: there are %d", path, h, r, c, rows)
				}
				m.blocks[(h*rows+r)*rows+int(c)] = true
			}
		}
	}
	return nil
}

func (m *Mask) readGates(path string, open safetensors.Tensor) error {
	if open.DType != safetensors.BOOL || len(open.Shape) != 4 || open.Len() > maxImported {
		return fmt.Errorf("%s: open is %s of shape %v but must be BOOL [layers, heads, rows, columns]",
			path, open.DType, open.Shape)
	}
	data, err := io.ReadAll(open.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.shape, m.blocks = open.Shape, make([]bool, len(data))
	for i, b := range data {
		m.blocks[i] = b != 0
	}
	return nil
}

// imported returns the set of this model for the imported mask. It adds no blocks to
// the mask: a row without a block is an error.
func (f *run) imported() (*support.Set, error) {
	m := f.o.Import
	s := f.newSet()
	var err error
	if m.set != nil {
		err = f.adopt(s, m.set)
	} else {
		err = f.spread(s, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	return s, nil
}

// adopt copies the layouts of another set, which may belong to other weights, or its
// anchors, which must belong to the same weights.
func (f *run) adopt(s, from *support.Set) error {
	switch {
	case from.Mode == support.Anchor && from.Facts != s.Facts:
		return errors.New("it routes by anchors, which are another model's keys")
	case from.Layers != s.Layers || from.KVHeads != s.KVHeads || from.Causal != s.Causal || from.Block != s.Block:
		return fmt.Errorf("it has %d layers of %d heads and blocks of %d, causal: %v, but must have %d, %d, %d, %v",
			from.Layers, from.KVHeads, from.Block, from.Causal, s.Layers, s.KVHeads, s.Block, s.Causal)
	}
	for i := range s.Buckets {
		j := slices.IndexFunc(from.Buckets, func(b support.Bucket) bool { return b.Length == s.Buckets[i].Length })
		if j < 0 {
			return fmt.Errorf("it has no bucket of %d", s.Buckets[i].Length)
		}
		s.Buckets[i] = from.Buckets[j]
	}
	s.Mode, s.Anchors = from.Mode, from.Anchors
	s.Select.Sparsity = from.Select.Sparsity
	f.o.Sparsity = from.Select.Sparsity // windowLike uses it for sets of mode Anchor
	return nil
}

// spread makes the layouts of s from the blocks of m.
func (f *run) spread(s *support.Set, m *Mask) error {
	if len(s.Buckets) != 1 {
		return errors.New("it is for one length: give one bucket")
	}
	b := &s.Buckets[0]
	blocks := support.Blocks(b.Length, s.Block)
	layers, heads := 1, 1
	rest := m.shape[:len(m.shape)-2]
	if len(rest) == 2 {
		layers = rest[0]
	}
	if len(rest) > 0 {
		heads = rest[len(rest)-1]
	}
	if m.shape[len(rest)] != blocks || m.shape[len(rest)+1] != blocks || layers != 1 && layers != s.Layers ||
		heads != 1 && heads != s.KVHeads && heads != s.Heads {
		return fmt.Errorf("its shape is %v but must be [%d, %d, %d, %d] for a length of %d",
			m.shape, s.Layers, s.KVHeads, blocks, blocks, b.Length)
	}
	for i := range b.Of {
		layer, kv := i/s.KVHeads%layers, i%s.KVHeads
		lo, hi := 0, 1 // heads lo to hi-1 of the mask read the keys of head kv
		if heads > 1 {
			lo, hi = kv*heads/s.KVHeads, (kv+1)*heads/s.KVHeads
		}
		put(b, i, support.New(b.Length, s.Block, s.Causal, func(r int) (cols []int32) {
			for c := range blocks {
				for h := lo; h < hi; h++ {
					if m.blocks[((layer*heads+h)*blocks+r)*blocks+c] {
						cols = append(cols, int32(c))
						break
					}
				}
			}
			return cols
		}))
	}
	sum := 0.0
	for _, of := range b.Of {
		sum += b.Layouts[of].Sparsity(s.Causal)
	}
	s.Select.Sparsity = max(sum/float64(len(b.Of)), 0)
	return nil
}
