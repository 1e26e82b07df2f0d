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

// ratios bound the unpacked bytes of a stored byte. A byte lengthens a match of LZ4 by
// at most 255 bytes; 2 bytes of snappy copy 64; 2 bits of deflate are a match of at most
// 258 bytes; 4 bytes of zstd are a block of at most 128 KiB. Brotli has no useful bound.
var ratios = map[format.CompressionCodec]int{format.Lz4Raw: 255, format.Snappy: 32, format.Gzip: 1032,
	format.Zstd: 32 << 10}

// unpacker unpacks pages and keeps the memory of its readers. The zero value is ready to
// use.
type unpacker struct {
	src    bytes.Reader
	gzip   *gzip.Reader
	brotli *brotli.Reader
}

// zstdDecoder returns a decoder that never writes beyond the capacity of its destination.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(MaxPageBytes),
		zstd.WithDecoderConcurrency(0))
})

// append unpacks src and appends size bytes to dst, or fewer if src ends early; more
// are an error. It reserves at most size bytes, and for gzip and brotli little more than
// they unpack to.
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

// reserve makes room for exactly n more bytes. append would double the claim of a page.
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

// appendStream appends size bytes of r to dst; further bytes are an error. dst grows as
// bytes arrive.
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
