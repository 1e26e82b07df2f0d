package support

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"entropipe/models/safetensors"
)

// Tensors of sparse_support.safetensors. b counts the buckets; the layouts of a
// bucket stand one after the other.
//
//	layout_of          I32 [buckets, layers, kv_heads]  index of a bucket's layout, -1 dense
//	bucket.b.row_ptr   I32 [layouts, blocks+1]          entries, counted through the layouts
//	bucket.b.col       I32 [entries]                    key blocks
//	bucket.b.kind      U8  [entries]                    0 full, 1 edge, 2 masked
//	bucket.b.bits      U8  [masked, block*block/8]      row-major, lowest bit first; absent without masked entries
//	bucket.b.order     I32 [layouts, length]            keys in the order of the columns; absent without
//	cert.mass_mean, cert.mass_p01, cert.mass_min, cert.error, cert.bound, cert.radius, cert.run_length
//	                   F32 [layers, heads]              all or none
//	anchors            F32 [layers, kv_heads, k, d]     mode anchor
//
// A bucket of dense heads alone has layout_of only.

var certNames = [7]string{"mass_mean", "mass_p01", "mass_min", "error", "bound", "radius", "run_length"}

func bucketName(b int, part string) string { return fmt.Sprintf("bucket.%d.%s", b, part) }

// arrays returns the tensors of the set, which must be valid.
func (s *Set) arrays() []safetensors.Array {
	var of []int32
	var arrays []safetensors.Array
	add := func(name string, data any, shape ...int) {
		arrays = append(arrays, safetensors.Array{Name: name, Shape: shape, Data: data})
	}
	for b := range s.Buckets {
		bucket := &s.Buckets[b]
		of = append(of, bucket.Of...)
		n, blocks := len(bucket.Layouts), Blocks(bucket.Length, s.Block)
		if n == 0 {
			continue
		}
		var rowPtr, col, order []int32
		var kind, bits []uint8
		for _, l := range bucket.Layouts {
			for _, p := range l.RowPtr {
				rowPtr = append(rowPtr, int32(len(col))+p)
			}
			col, kind, order = append(col, l.Col...), append(kind, l.Kind...), append(order, l.Order...)
			for _, w := range l.Bits {
				bits = binary.LittleEndian.AppendUint64(bits, w)
			}
		}
		add(bucketName(b, "row_ptr"), rowPtr, n, blocks+1)
		add(bucketName(b, "col"), col, len(col))
		add(bucketName(b, "kind"), kind, len(kind))
		if size := s.Block * s.Block / 8; len(bits) > 0 {
			add(bucketName(b, "bits"), bits, len(bits)/size, size)
		}
		if order != nil {
			add(bucketName(b, "order"), order, n, bucket.Length)
		}
	}
	add("layout_of", of, len(s.Buckets), s.Layers, s.KVHeads)
	for i, name := range certNames {
		if s.Certs == nil {
			break
		}
		values := make([]float32, len(s.Certs))
		for j := range s.Certs {
			values[j] = s.Certs[j].numbers()[i]
		}
		add("cert."+name, values, s.Layers, s.Heads)
	}
	if a := s.Anchors; a != nil {
		add("anchors", a.Data, s.Layers, s.KVHeads, a.K, s.Dim)
	}
	return arrays
}

// reader reads tensors from a file and records which it has read.
type reader struct {
	file *safetensors.File
	set  *Set
	seen map[string]bool
}

func (r *reader) read(lengths []int) error {
	s := r.set
	of, err := r.ints("layout_of", len(lengths), s.Layers, s.KVHeads)
	if err != nil {
		return err
	}
	for b, length := range lengths {
		if length <= 0 || length > maxLength {
			return fmt.Errorf("the length of a bucket is %d but must be 1 to %d", length, maxLength)
		}
		bucket := Bucket{Length: length, Of: of[b*s.Layers*s.KVHeads:][:s.Layers*s.KVHeads]}
		if err := r.readBucket(b, &bucket); err != nil {
			return err
		}
		s.Buckets = append(s.Buckets, bucket)
	}
	if err := r.readCerts(); err != nil {
		return err
	}
	if t, ok := r.file.Lookup("anchors"); ok {
		if len(t.Shape) != 4 || t.Shape[2] <= 0 || t.Shape[2] > maxAnchors {
			return fmt.Errorf("anchors: the shape %v does not fit", t.Shape)
		}
		a := &Anchors{K: t.Shape[2]}
		if a.Data, err = r.floats("anchors", s.Layers, s.KVHeads, a.K, s.Dim); err != nil {
			return err
		}
		s.Anchors = a
	}
	for _, t := range r.file.Tensors() {
		if !r.seen[t.Name] {
			return fmt.Errorf("tensor %s is left over", t.Name)
		}
	}
	if m := r.file.Metadata(); len(m) != 1 || m["format"] != Format {
		return fmt.Errorf("its metadata are %v but must be the format %s alone", m, Format)
	}
	return nil
}

func (r *reader) readBucket(b int, bucket *Bucket) error {
	t, ok := r.file.Lookup(bucketName(b, "row_ptr"))
	if !ok {
		return nil // all heads are dense, or else Validate finds the missing layout
	}
	s, blocks := r.set, Blocks(bucket.Length, r.set.Block)
	if len(t.Shape) != 2 || t.Shape[0] <= 0 || t.Shape[0] > len(bucket.Of) {
		return fmt.Errorf("%s: the shape %v does not fit", t.Name, t.Shape)
	}
	n := t.Shape[0]
	rowPtr, err := r.ints(t.Name, n, blocks+1)
	if err != nil {
		return err
	}
	entries := r.length(bucketName(b, "col"))
	col, err := r.ints(bucketName(b, "col"), entries)
	if err != nil {
		return err
	}
	kind, err := r.bytes(bucketName(b, "kind"), entries)
	if err != nil {
		return err
	}
	var bits []uint8
	if masked := count(kind, Masked); masked > 0 {
		if bits, err = r.bytes(bucketName(b, "bits"), masked, s.Block*s.Block/8); err != nil {
			return err
		}
	}
	var order []int32
	if _, ok := r.file.Lookup(bucketName(b, "order")); ok {
		if order, err = r.ints(bucketName(b, "order"), n, bucket.Length); err != nil {
			return err
		}
	}
	return bucket.cut(s.Block, blocks, rowPtr, col, kind, bits, order)
}

// cut makes the layouts of a bucket from its tensors.
func (b *Bucket) cut(block, blocks int, rowPtr, col []int32, kind, bits []uint8, order []int32) error {
	at, word := int32(0), block*block/8
	for i := range len(rowPtr) / (blocks + 1) {
		ptr := rowPtr[i*(blocks+1):][:blocks+1]
		end := ptr[blocks]
		if ptr[0] != at || end < at || int(end) > len(col) {
			return fmt.Errorf("row pointers of layout %d run from %d to %d but must run from %d on, within %d entries",
				i, ptr[0], end, at, len(col))
		}
		l := &Layout{Block: block, Rows: blocks, Cols: blocks, Col: col[at:end:end], Kind: kind[at:end:end],
			RowPtr: slices.Clone(ptr)}
		for j := range l.RowPtr {
			l.RowPtr[j] -= at
		}
		for range count(l.Kind, Masked) {
			for w := range word / 8 {
				l.Bits = append(l.Bits, binary.LittleEndian.Uint64(bits[w*8:]))
			}
			bits = bits[word:]
		}
		if order != nil {
			l.Order = order[i*b.Length:][:b.Length:b.Length]
		}
		b.Layouts = append(b.Layouts, l)
		at = end
	}
	if int(at) != len(col) {
		return fmt.Errorf("there are %d entries, and row pointers for %d", len(col), at)
	}
	return nil
}

func (r *reader) readCerts() error {
	s := r.set
	if _, ok := r.file.Lookup("cert." + certNames[0]); !ok {
		return nil
	}
	var columns [7][]float32
	for i, name := range certNames {
		var err error
		if columns[i], err = r.floats("cert."+name, s.Layers, s.Heads); err != nil {
			return err
		}
	}
	s.Certs = make([]Cert, s.Layers*s.Heads)
	for i := range s.Certs {
		s.Certs[i] = Cert{columns[0][i], columns[1][i], columns[2][i], columns[3][i], columns[4][i],
			columns[5][i], columns[6][i]}
	}
	return nil
}

// length returns the number of values of a tensor, or 0 if it is absent.
func (r *reader) length(name string) int {
	t, ok := r.file.Lookup(name)
	if !ok {
		return 0
	}
	return t.Len()
}

// take returns a tensor. It is an error if the tensor is missing or has another
// type or shape.
func (r *reader) take(name string, dtype safetensors.DType, shape []int) (safetensors.Tensor, error) {
	t, ok := r.file.Lookup(name)
	switch {
	case !ok:
		return t, fmt.Errorf("tensor %s is missing", name)
	case t.DType != dtype || !slices.Equal(t.Shape, shape):
		return t, fmt.Errorf("tensor %s is %s %v but must be %s %v", name, t.DType, t.Shape, dtype, shape)
	}
	r.seen[name] = true
	return t, nil
}

func (r *reader) bytes(name string, shape ...int) ([]uint8, error) {
	t, err := r.take(name, safetensors.U8, shape)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(t.Bytes())
}

func (r *reader) ints(name string, shape ...int) ([]int32, error) {
	t, err := r.take(name, safetensors.I32, shape)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(t.Bytes())
	values := make([]int32, len(data)/4)
	for i := range values {
		values[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values, err
}

func (r *reader) floats(name string, shape ...int) ([]float32, error) {
	t, err := r.take(name, safetensors.F32, shape)
	if err != nil {
		return nil, err
	}
	return t.Float32s(nil)
}

// SHA256 is the identity of the mask as it is applied, in hexadecimal: of the
// model's facts, the layout of every head in every bucket, the pattern beyond
// and the anchors with their sparsity; not of certificates, metrics, or who chose the mask. So two
// programs that freeze the same mask name it alike, and rows served with either
// are equal.
func (s *Set) SHA256() (string, error) {
	h := sha256.New()
	head, err := json.Marshal([]any{Format, s.Facts, s.Block, s.Mode, s.Beyond})
	if err != nil {
		return "", err
	}
	h.Write(head)
	put := func(values []int32) {
		var data []byte
		data = binary.LittleEndian.AppendUint32(data, uint32(len(values)))
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, uint32(v))
		}
		h.Write(data)
	}
	for i := range s.Buckets {
		b := &s.Buckets[i]
		put([]int32{int32(b.Length)})
		for _, of := range b.Of {
			if of < 0 {
				put(nil)
				continue
			}
			l := b.Layouts[of]
			put(l.RowPtr)
			put(l.Col)
			h.Write(l.Kind)
			for _, w := range l.Bits {
				h.Write(binary.LittleEndian.AppendUint64(nil, w))
			}
			put(l.Order)
		}
	}
	if s.Anchors != nil {
		for _, x := range s.Anchors.Data {
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
		// Without layouts, the sparsity decides how many blocks a row reads.
		h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(s.Select.Sparsity)))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
