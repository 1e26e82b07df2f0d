package schemas

import (
	"bytes"
	"fmt"
	"io"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// inflater decompresses buffers into memory that it reuses. A buffer's length
// is known beforehand and has been checked: not a byte more is written, so
// that a bomb is an error after as many bytes as it was allowed.
type inflater struct {
	slots [][]byte // one a buffer of the message, kept for the next message
	used  int
	zstd  *zstd.Decoder
	lz4   *lz4.Reader
	src   bytes.Reader
}

// slot returns n bytes, aligned for any number, that are valid until reset.
func (f *inflater) slot(n int) []byte {
	if f.used == len(f.slots) {
		f.slots = append(f.slots, nil)
	}
	s := &f.slots[f.used]
	f.used++
	*s = aligned(resize(*s, n))
	return *s
}

// reset takes all slots back, and frees them if they are out of proportion to
// what the last message needed.
func (f *inflater) reset() {
	held, needed := 0, 0
	for i, s := range f.slots {
		held += cap(s)
		if i < f.used {
			needed += len(s)
		}
	}
	if len(f.slots) > 64 || held > 16<<20 && held/8 > needed {
		f.slots = nil
	}
	f.used = 0
}

// inflate decompresses src, which must come to exactly n bytes.
func (f *inflater) inflate(codec int8, src []byte, n int) ([]byte, error) {
	dst := f.slot(n)
	if codec == codecLZ4 {
		return dst, f.inflateLZ4(dst, src)
	}
	return dst, f.inflateZstd(dst, src)
}

func (f *inflater) inflateLZ4(dst, src []byte) error {
	if f.lz4 == nil {
		f.lz4 = lz4.NewReader(nil)
	}
	f.src.Reset(src)
	f.lz4.Reset(&f.src)
	if n, err := io.ReadFull(f.lz4, dst); err != nil {
		return fmt.Errorf("lz4: %d bytes of %d: %w", n, len(dst), err)
	}
	var more [1]byte // reads the end of the frame, with its checksum
	if n, err := io.ReadFull(f.lz4, more[:]); n > 0 || err != io.EOF {
		if n > 0 {
			return fmt.Errorf("lz4: more than the declared %d bytes", len(dst))
		}
		return fmt.Errorf("lz4: end of the frame: %w", err)
	}
	return nil
}

func (f *inflater) inflateZstd(dst, src []byte) error {
	if f.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return err
		}
		f.zstd = d
	}
	out, err := f.zstd.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return err // it names zstd, or the fault
	}
	if len(out) != len(dst) {
		return fmt.Errorf("zstd: %d bytes instead of %d", len(out), len(dst))
	}
	return nil
}

// resize returns a slice of n values, in s where there is room, and never nil: a
// column without a value is still a column. What they hold is undefined. Memory far beyond the need
// is given back: one huge message must not stay with a worker for ever.
func resize[T any](s []T, n int) []T {
	var v T
	keep := 8 << 20 / int(unsafe.Sizeof(v)) // and 8 times the need
	if s != nil && cap(s) >= n && (cap(s) < keep || cap(s)/8 < n) {
		return s[:n]
	}
	return make([]T, n)
}

// aligned returns b, or as many bytes elsewhere, at an address that is a
// multiple of 8. Only small slices are not there already.
func aligned(b []byte) []byte {
	if isAligned(b, 8) {
		return b
	}
	return bytesOf(make([]int64, len(b)/8+1))[:len(b)]
}

// isAligned tells whether the address of b is a multiple of n.
func isAligned(b []byte, n uintptr) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%n == 0
}
