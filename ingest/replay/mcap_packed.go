package replay

import (
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
)

// unpackStream returns the content of a file: the file itself, or the stream that it unpacks to
// if its first bytes are those of gzip or Zstandard. close ends the stream; the file stays open.
// Memory for a stream is that of its window, at most 128 MiB.
func unpackStream(f filesys.File) (content io.Reader, close func(), err error) {
	var head [16]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch codec.Name(head[:n]) {
	case "a gzip file":
		r, err := gzip.NewReader(f)
		if err != nil {
			return nil, nil, err
		}
		return r, func() { r.Close() }, nil
	case "a Zstandard file":
		r, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	return f, func() {}, nil
}
