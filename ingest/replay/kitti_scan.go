package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"entropipe/algos/geom"
	"entropipe/ingest/filesys"
)

// pointBytes is the size of a point in a .bin: x, y, z, reflectance as
// little-endian float32.
const pointBytes = 16

// scanReader reads one scan after the other into the same memory.
type scanReader struct {
	raw    []byte
	column [4][]float32
	lossy  bool // a coordinate of a text was rounded in a digit that the text has
}

// read fills it with the scan of a .bin or .txt file, perhaps compressed, of at most
// max bytes. A file without a byte is a frame without a point.
func (r *scanReader) read(it *Item, path string, max int64) error {
	if err := r.load(path, max); err != nil {
		return err
	}
	r.lossy = false
	decode := r.decodeBin
	if strings.HasSuffix(unpackedName(path), ".txt") {
		decode = r.decodeText
	}
	if err := decode(path); err != nil {
		return err
	}
	it.Cloud.Cloud32 = geom.Cloud[float32]{X: r.column[0], Y: r.column[1], Z: r.column[2]}
	it.Cloud.Intensity = r.column[3]
	return nil
}

// load reads the file into r.raw.
func (r *scanReader) load(path string, max int64) error {
	// Asked before opening: opening a pipe would wait for its writer.
	info, err := filesys.Stat(path)
	if err != nil {
		return badFile(path, err)
	}
	if !info.Mode().IsRegular() {
		return &BadInputError{File: path, Detail: "not a regular file"}
	}
	if info.Size() > max {
		return &BadInputError{File: path, Detail: fmt.Sprintf("%d bytes are more than a frame may have (%d)",
			info.Size(), max)}
	}
	f, err := openPlain(path)
	if err != nil {
		return badFile(path, err)
	}
	defer f.Close()
	if unpackedName(path) != path {
		return r.unpack(f, path, max)
	}
	r.raw = resize(r.raw, int(info.Size()))
	if _, err := io.ReadFull(f, r.raw); err != nil {
		return badFile(path, err)
	}
	return nil
}

// unpack reads a file in gzip or Zstandard into r.raw, of at most max bytes unpacked: a packed
// file says nothing reliable of its size.
func (r *scanReader) unpack(f io.Reader, path string, max int64) error {
	z, form, err := unpacker(f, path, max)
	if err != nil {
		return &BadInputError{File: path, Detail: "not " + form + ": " + err.Error(), Err: err}
	}
	defer z.Close()
	into := bytes.NewBuffer(r.raw[:0])
	_, err = into.ReadFrom(io.LimitReader(z, max+1))
	switch r.raw = into.Bytes(); {
	case err != nil:
		return &BadInputError{File: path, Detail: "damaged " + form + ": " + err.Error(), Err: err}
	case int64(len(r.raw)) > max:
		return &BadInputError{File: path, Detail: fmt.Sprintf("more than %d bytes unpacked, which is what a frame "+
			"may have", max)}
	}
	return nil
}

// unpacker returns what unpacks f by the ending of its name, and the name of the compression.
func unpacker(f io.Reader, path string, most int64) (z io.ReadCloser, form string, err error) {
	if strings.HasSuffix(path, ".gz") {
		z, err = gzip.NewReader(bufio.NewReader(f))
		return z, "gzip", err
	}
	d, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(uint64(min(max(most, 1<<20), 1<<29))))
	if err != nil {
		return nil, "Zstandard", err
	}
	return d.IOReadCloser(), "Zstandard", nil
}

func badFile(path string, err error) error {
	var bad *BadInputError
	if errors.As(err, &bad) {
		return bad
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return &BadInputError{File: path, Detail: "the file became shorter while it was read"}
	}
	var op *os.PathError
	if errors.As(err, &op) {
		err = op.Err // the path is named already
	}
	return &BadInputError{File: path, Detail: err.Error(), Err: err}
}

func (r *scanReader) decodeBin(path string) error {
	if rest := len(r.raw) % pointBytes; rest != 0 {
		return &BadInputError{File: path, Detail: fmt.Sprintf(
			"%d bytes are not a whole number of points: %d bytes remain after %d points of %d bytes",
			len(r.raw), rest, len(r.raw)/pointBytes, pointBytes)}
	}
	n := len(r.raw) / pointBytes
	for k := range r.column {
		r.column[k] = resize(r.column[k], n)
	}
	x, y, z, w := r.column[0], r.column[1], r.column[2], r.column[3]
	raw := r.raw
	for i := range x {
		p := raw[i*pointBytes:][:pointBytes:pointBytes]
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[0:]))
		y[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4:]))
		z[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[8:]))
		w[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[12:]))
	}
	return nil
}

// decodeText reads lines "x y z reflectance", the form of the unsynchronised
// drives. Its millimetres are a print of the sensor's float32 values, so reading
// them as float32 gives the points of the .bin of the same sweep.
func (r *scanReader) decodeText(path string) error {
	for k := range r.column {
		r.column[k] = resize(r.column[k], 0)
	}
	lines := bufio.NewScanner(bytes.NewReader(r.raw))
	for n := 1; lines.Scan(); n++ {
		rest := lines.Bytes()
		for k := range r.column {
			var field []byte
			field, rest = cutField(rest)
			if len(field) == 0 && k == 0 {
				break // an empty line
			}
			v, err := strconv.ParseFloat(string(field), 32)
			if err != nil {
				return &BadInputError{File: path, Line: n,
					Detail: fmt.Sprintf("want x y z reflectance, got %.80q", lines.Text())}
			}
			r.column[k] = append(r.column[k], float32(v))
			r.lossy = r.lossy || k < 3 && losesDigits(string(field), float32(v))
		}
		if field, _ := cutField(rest); len(field) != 0 {
			return &BadInputError{File: path, Line: n,
				Detail: fmt.Sprintf("want 4 numbers, got more: %.80q", lines.Text())}
		}
	}
	if lines.Err() != nil {
		return &BadInputError{File: path, Detail: "a line is too long for a point: this is no scan"}
	}
	return nil
}

// losesDigits reports whether v, the float32 nearest to the decimal number in
// field, is off by more than half a unit of field's last digit, so that v does
// not print as field any more.
func losesDigits(field string, v float32) bool {
	exact, err := strconv.ParseFloat(field, 64)
	if err != nil || exact == float64(v) || math.IsNaN(exact) {
		return false
	}
	mantissa, exponent := field, 0
	if i := strings.IndexAny(field, "eE"); i >= 0 {
		mantissa = field[:i]
		exponent, _ = strconv.Atoi(field[i+1:])
	}
	if _, fraction, ok := strings.Cut(mantissa, "."); ok {
		exponent -= len(fraction)
	}
	return math.Abs(exact-float64(v)) > math.Pow10(exponent)/2
}

// cutField returns the first blank-separated field and what follows it.
func cutField(b []byte) (field, rest []byte) {
	b = bytes.TrimLeft(b, " \t\r")
	if i := bytes.IndexAny(b, " \t\r"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// resize returns a slice of length n, in s's memory where that is large
// enough. It is never nil: an empty frame still has its columns.
func resize[T any](s []T, n int) []T {
	if s == nil || cap(s) < n {
		return make([]T, n, n+n/8)
	}
	return s[:n]
}
