package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"entropipe/ingest/filesys"
	"entropipe/schemas/codec"
)

// fileReader reads whole files, one after the other, into the same memory.
type fileReader struct {
	raw      []byte // the file as it is
	unpacked []byte
	gzip     *gzip.Reader
	zstd     *zstd.Decoder
}

// read returns the content of a regular file of at most most bytes, which is valid until
// the next call. A file in gzip or Zstandard is unpacked, to at most most bytes: its name
// says so, or its first bytes do and is does not accept them. is may be nil.
func (r *fileReader) read(path string, most int64, is func(head []byte) bool) ([]byte, error) {
	if err := r.load(path, most); err != nil {
		return nil, err
	}
	named := unpackedName(path) != path
	switch packed := codec.Name(r.raw); {
	case !named && (is == nil || is(r.raw)):
	case packed == "a gzip file":
		return r.unpackGzip(path, most)
	case packed == "a Zstandard file":
		return r.unpackZstd(path, most)
	case named && len(r.raw) > 0 && (is == nil || !is(r.raw)):
		return nil, &BadInputError{File: path, Detail: "the name ends with " + path[len(unpackedName(path)):] +
			", but the file is not compressed"}
	}
	return r.raw, nil
}

// load reads the file as it is.
func (r *fileReader) load(path string, most int64) error {
	// Asked before opening: opening a pipe would wait for its writer.
	info, err := filesys.Stat(path)
	if err != nil {
		return badFile(path, err)
	}
	if !info.Mode().IsRegular() {
		return &BadInputError{File: path, Detail: "not a regular file"}
	}
	if info.Size() > most {
		return &BadInputError{File: path, Detail: fmt.Sprintf("%d bytes are more than --max-frame-bytes allows (%d)",
			info.Size(), most)}
	}
	f, err := openPlain(path)
	if err != nil {
		return badFile(path, err)
	}
	defer f.Close()
	r.raw = resize(r.raw, int(info.Size()))
	if _, err := io.ReadFull(f, r.raw); err != nil {
		return badFile(path, err)
	}
	return nil
}

func (r *fileReader) unpackGzip(path string, most int64) ([]byte, error) {
	var err error
	if r.gzip == nil {
		r.gzip, err = gzip.NewReader(bytes.NewReader(r.raw))
	} else {
		err = r.gzip.Reset(bytes.NewReader(r.raw))
	}
	if err != nil {
		return nil, damaged(path, "gzip", err)
	}
	return r.drain(r.gzip, path, "gzip", most)
}

func (r *fileReader) unpackZstd(path string, most int64) ([]byte, error) {
	var err error
	if r.zstd == nil {
		r.zstd, err = zstd.NewReader(bytes.NewReader(r.raw), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(uint64(max(most, 1<<20))))
	} else {
		err = r.zstd.Reset(bytes.NewReader(r.raw))
	}
	if err != nil {
		return nil, damaged(path, "Zstandard", err)
	}
	return r.drain(r.zstd, path, "Zstandard", most)
}

// drain reads from, which unpacks, to its end.
func (r *fileReader) drain(from io.Reader, path, form string, most int64) ([]byte, error) {
	into := bytes.NewBuffer(r.unpacked[:0])
	_, err := into.ReadFrom(io.LimitReader(from, most+1))
	switch r.unpacked = into.Bytes(); {
	case err != nil:
		return nil, damaged(path, form, err)
	case int64(len(r.unpacked)) > most:
		return nil, &BadInputError{File: path, Detail: fmt.Sprintf("unpacked, the file has more bytes than "+
			"--max-frame-bytes allows (%d)", most)}
	}
	return r.unpacked, nil
}

func damaged(path, form string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &BadInputError{File: path, Detail: "the " + form + " data end early"}
	}
	return &BadInputError{File: path, Detail: "damaged " + form + ": " + strings.TrimPrefix(err.Error(), "gzip: ")}
}

// close frees the memory of the decompressors.
func (r *fileReader) close() error {
	if r.zstd != nil {
		r.zstd.Close()
	}
	*r = fileReader{}
	return nil
}
