package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// ratios bound what a byte of a page can become. LZ4 adds at most 255 bytes to
// a match by a byte; a copy of snappy is 64 bytes in 2; deflate's longest match
// is 258 bytes in 2 bits; a block of zstd is at most 128 KiB in 4 bytes. Only
// brotli's are not bounded in any useful way.
var ratios = map[format.CompressionCodec]int{format.Lz4Raw: 255, format.Snappy: 32, format.Gzip: 1032, format.Zstd: 32 << 10}

// unpacker unpacks pages; it keeps the memory of readers. The zero value is
// ready.
type unpacker struct {
	src    bytes.Reader
	gzip   *gzip.Reader
	brotli *brotli.Reader
}

// zstdDecoder never writes beyond the capacity of what it appends to.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(MaxPageBytes), zstd.WithDecoderConcurrency(0))
})

// append unpacks src behind dst: size bytes, or fewer if src ends early, never
// more. It reserves size bytes at most, and of gzip and brotli little more than
// comes out of them.
func (u *unpacker) append(dst, src []byte, size int, codec format.CompressionCodec) ([]byte, error) {
	if ratio, ok := ratios[codec]; ok && size > 64+ratio*len(src) {
		return dst, fmt.Errorf("%d bytes cannot become %d", len(src), size)
	}
	if size == 0 && len(src) == 0 {
		return dst, nil
	}
	switch codec {
	case format.Lz4Raw:
		dst = reserve(dst, size)
		n, err := lz4.UncompressBlock(src, dst[len(dst):len(dst)+size])
		return dst[:len(dst)+max(0, n)], err
	case format.Snappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != size {
			return dst, fmt.Errorf("its own length is %d instead of %d: %w", n, size, cmpErr(err, snappy.ErrCorrupt))
		}
		dst = reserve(dst, size)
		plain, err := snappy.Decode(dst[len(dst):len(dst)+size], src)
		return dst[:len(dst)+len(plain)], err
	case format.Zstd:
		decoder, err := zstdDecoder()
		if err != nil {
			return dst, err
		}
		dst = reserve(dst, size)
		return decoder.DecodeAll(src, dst[:len(dst):len(dst)+size])
	case format.Gzip:
		u.src.Reset(src)
		if u.gzip == nil {
			u.gzip = new(gzip.Reader)
		}
		if err := u.gzip.Reset(&u.src); err != nil {
			return dst, err
		}
		return appendStream(dst, u.gzip, size)
	case format.Brotli:
		u.src.Reset(src)
		if u.brotli == nil {
			u.brotli = new(brotli.Reader)
		}
		if err := u.brotli.Reset(&u.src); err != nil {
			return dst, err
		}
		return appendStream(dst, u.brotli, size)
	}
	return dst, errors.New("this codec is not supported")
}

// reserve makes room for exactly n more bytes, so that what a page claims is
// never doubled.
func reserve(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// appendStream reads size bytes of r and looks that there are no more. The
// buffer grows with what has come.
func appendStream(dst []byte, r io.Reader, size int) ([]byte, error) {
	end := len(dst) + size
	for len(dst) < end {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(end-len(dst), max(4<<10, len(dst))))
		}
		n, err := r.Read(dst[len(dst):min(cap(dst), end)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
	var more [1]byte
	for {
		n, err := r.Read(more[:])
		switch {
		case n > 0:
			return dst, fmt.Errorf("there are more than the %d bytes that its header says", size)
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, err
		}
	}
}
