package ingest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

// Codec numbers in a batch's attributes.
const (
	codecGzip   = 1
	codecSnappy = 2
	codecLZ4    = 3
	codecZstd   = 4
)

// maxWindow bounds what a zstd frame may ask for as its history, which it does
// in its first bytes.
const maxWindow = 64 << 20

// codecs decompresses batches; it keeps what is costly to make. The zero value
// is ready.
type codecs struct {
	zstd *zstd.Decoder
	buf  *bufio.Reader
}

// open gives use what b inflates to. An error of the data is errCorrupt, and so
// is a panic: the bytes came over a network.
func (c *codecs) open(codec int8, b []byte, use func(*bufio.Reader) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.zstd, err = nil, corrupt("its decompressor fails: %v", p)
		}
	}()
	r, err := c.reader(codec, b)
	if err != nil {
		return err
	}
	if c.buf == nil {
		c.buf = bufio.NewReaderSize(nil, 32<<10)
	}
	c.buf.Reset(inflated{r})
	err = use(c.buf)
	c.buf.Reset(nil)
	if closer, ok := r.(io.Closer); ok {
		closer.Close()
	}
	return err
}

// inflated marks the errors of a decompressor.
type inflated struct{ io.Reader }

func (i inflated) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return n, err
}

func (c *codecs) reader(codec int8, b []byte) (io.Reader, error) {
	switch codec {
	case codecGzip, codecLZ4:
		return compress.Compression(codec).Codec().NewReader(bytes.NewReader(b)), nil
	case codecSnappy:
		return &snappyReader{in: b}, nil
	case codecZstd:
		return c.zstdReader(b)
	}
	return nil, corrupt("codec %d is not known", codec)
}

// zstdReader does not use kafka-go's decoder, which grants any window.
func (c *codecs) zstdReader(b []byte) (io.Reader, error) {
	if c.zstd != nil {
		return readerOnly{c.zstd}, c.zstd.Reset(bytes.NewReader(b))
	}
	d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	c.zstd = d
	return readerOnly{d}, nil
}

type readerOnly struct{ io.Reader }

// snappyReader reads one snappy block or, as Java's clients write, a sequence
// of them: a header of 16 bytes, and before each block its length. kafka-go's
// reader allocates what these lengths ask for; here no block may inflate
// beyond what snappy can.
type snappyReader struct {
	in    []byte
	out   []byte // inflated, not read yet
	buf   []byte
	began bool
	xer   bool
}

const xerialMagic = "\x82SNAPPY\x00"

func (s *snappyReader) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		block, err := s.next()
		if err != nil {
			return 0, err
		}
		n, err := snappy.DecodedLen(block)
		if err != nil || n > 64*len(block)+64 {
			return 0, corrupt("a snappy block of %d bytes claims %d (%v)", len(block), n, err)
		}
		if s.buf, err = snappy.Decode(s.buf[:cap(s.buf)], block); err != nil {
			return 0, err
		}
		s.out = s.buf
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

func (s *snappyReader) next() (block []byte, err error) {
	if !s.began {
		s.began = true
		if s.xer = len(s.in) >= 16 && string(s.in[:8]) == xerialMagic; s.xer {
			s.in = s.in[16:]
		}
	}
	switch {
	case len(s.in) == 0:
		return nil, io.EOF
	case !s.xer:
		block, s.in = s.in, nil
		return block, nil
	case len(s.in) < 4:
		return nil, io.ErrUnexpectedEOF
	}
	n := int64(binary.BigEndian.Uint32(s.in))
	if s.in = s.in[4:]; n > int64(len(s.in)) {
		return nil, io.ErrUnexpectedEOF
	}
	block, s.in = s.in[:n], s.in[n:]
	return block, nil
}
