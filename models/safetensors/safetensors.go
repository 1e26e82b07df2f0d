// Package safetensors reads and writes files of named tensors: 8 bytes of length, a
// JSON header, and the values, one tensor after the other.
//
// Files are not trusted. A header must fit the file and 100 MB, follow the plain
// grammar, and have no duplicate names. The tensors' bytes must cover the data without
// gap or overlap, each tensor as many as its shape and type need. No memory is
// allocated by a length that has not been compared with the file's size. Every error
// names the file.
//
// Opening a file reads the header alone. The values of a tensor are read on request,
// in pieces, so a large file is in memory at most once.
//
// The format: https://github.com/huggingface/safetensors.
package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"entropipe/models/plainfile"
)

// maxHeader is the largest length of a header that the format allows, in bytes.
const maxHeader = 100_000_000

// DType is a type of values, named as in the format.
type DType string

// The types whose values are whole bytes.
const (
	BOOL       DType = "BOOL"
	U8         DType = "U8"
	I8         DType = "I8"
	F8E5M2     DType = "F8_E5M2"
	F8E4M3     DType = "F8_E4M3"
	F8E8M0     DType = "F8_E8M0"
	F8E4M3FNUZ DType = "F8_E4M3FNUZ"
	F8E5M2FNUZ DType = "F8_E5M2FNUZ"
	U16        DType = "U16"
	I16        DType = "I16"
	F16        DType = "F16"
	BF16       DType = "BF16"
	U32        DType = "U32"
	I32        DType = "I32"
	F32        DType = "F32"
	U64        DType = "U64"
	I64        DType = "I64"
	F64        DType = "F64"
	C64        DType = "C64" // two F32
)

// Size returns the number of bytes of one value, 0 for an unknown type.
func (d DType) Size() int {
	switch d {
	case BOOL, U8, I8, F8E5M2, F8E4M3, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ:
		return 1
	case U16, I16, F16, BF16:
		return 2
	case U32, I32, F32:
		return 4
	case U64, I64, F64, C64:
		return 8
	}
	return 0
}

// Tensor is one tensor of an open File: its description, and access to its values
// while the file is open. Tensors may be copied and read concurrently.
type Tensor struct {
	Name  string
	DType DType
	Shape []int // read-only; empty for a single value

	start, size int64 // in the file
	file        *File
}

// Len returns the number of values.
func (t Tensor) Len() int { return int(t.size) / t.DType.Size() }

// File is an open file with a valid header. It is safe for concurrent use.
type File struct {
	name     string
	r        io.ReaderAt
	size     int64
	close    func() error
	metadata map[string]string
	tensors  []Tensor              // by place
	byName   func() map[string]int // made when it is first asked for
}

// Open opens a regular file and reads its header. The caller closes the File after
// the last read of a tensor.
func Open(path string) (*File, error) {
	r, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := r.Stat()
	if err != nil {
		r.Close()
		return nil, err
	}
	f, err := New(path, r, info.Size())
	if err != nil {
		r.Close()
		return nil, err
	}
	f.close = r.Close
	return f, nil
}

// New returns a File for the size bytes that r holds, and reads the header. Errors
// begin with name. Closing the File does not close r.
func New(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{name: name, r: r, size: size, close: func() error { return nil }}
	header, err := readHeader(r, size)
	if err == nil {
		f.metadata, f.tensors, err = parseHeader(header, size-8-int64(len(header)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range f.tensors {
		f.tensors[i].start += 8 + int64(len(header))
		f.tensors[i].file = f
	}
	f.byName = sync.OnceValue(func() map[string]int {
		places := make(map[string]int, len(f.tensors))
		for i, t := range f.tensors {
			places[t.Name] = i
		}
		return places
	})
	return f, nil
}

func readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	var length [8]byte
	if size < 8 {
		return nil, fmt.Errorf("%d bytes are no safetensors file, which begins with 8 bytes of length", size)
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, err
	}
	if string(length[:]) == "version " {
		return nil, errors.New("begins like a pointer of Git LFS, which stands for a file that was not fetched: git " +
			"lfs pull fetches it")
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, fmt.Errorf("its header claims %d bytes, more than the %d that the format allows", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("its header claims %d bytes, and the file has %d after the length: truncated", n, size-8)
	}
	header := make([]byte, n)
	if _, err := r.ReadAt(header, 8); err != nil && !(err == io.EOF && int64(n) == size-8) {
		return nil, err
	}
	return header, nil
}

// Close closes the file. Its tensors must not be read afterwards.
func (f *File) Close() error { return f.close() }

// Metadata returns the file's metadata, which the caller must not change.
func (f *File) Metadata() map[string]string { return f.metadata }

// Tensors returns the tensors in the order of their bytes. The caller must not change
// the slice.
func (f *File) Tensors() []Tensor { return f.tensors }

// Lookup returns the tensor with the name, and false if there is none.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.byName()[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Bytes returns a reader of the values as stored in the file, little-endian.
func (t Tensor) Bytes() *io.SectionReader {
	return io.NewSectionReader(t.file.r, t.start, t.size)
}
