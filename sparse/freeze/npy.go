package freeze

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"entropipe/models/plainfile"
)

// maxNPY bounds the bytes of a .npy file, and maxValues its numbers, each of which
// becomes a float64.
const (
	maxNPY    = 1 << 31
	maxValues = 1 << 29
)

// Patterns of the three entries of the format's header, a dictionary in Python's
// notation: https://numpy.org/neps/nep-0001-npy-format.html.
var (
	npyType    = regexp.MustCompile(`'descr': *'([<|=])([biuf])([1248])'`)
	npyFortran = regexp.MustCompile(`'fortran_order': *False`)
	npyShape   = regexp.MustCompile(`'shape': *\(([0-9, ]*)\)`)
)

// ReadPixels reads a .npy file of images. It returns the shape of the array and its
// numbers in C's order. A number that is not finite as float32 is an error. Errors
// name the file.
func ReadPixels(path string) (shape []int, pixels []float32, err error) {
	shape, values, err := readNPY(path)
	if err != nil {
		return nil, nil, err
	}
	pixels = make([]float32, len(values))
	for i, v := range values {
		if pixels[i] = float32(v); math.IsNaN(v) || math.IsInf(float64(pixels[i]), 0) {
			return nil, nil, fmt.Errorf("%s: number %d is %v", path, i, v)
		}
	}
	return shape, pixels, nil
}

// readNPY reads an array of numbers or truth values, which must be little-endian and
// in C's order.
func readNPY(path string) (shape []int, values []float64, err error) {
	data, err := plainfile.Read(path, maxNPY)
	if err != nil {
		return nil, nil, err
	}
	if shape, values, err = parseNPY(data); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return shape, values, err
}

func parseNPY(data []byte) (shape []int, values []float64, err error) {
	rest, ok := bytes.CutPrefix(data, []byte("\x93NUMPY"))
	if !ok || len(rest) < 6 {
		return nil, nil, errors.New("it is no .npy file")
	}
	length, from := uint64(binary.LittleEndian.Uint16(rest[2:])), 4
	if rest[0] > 1 {
		length, from = uint64(binary.LittleEndian.Uint32(rest[2:])), 6
	}
	if rest[0] < 1 || rest[0] > 3 || length > uint64(len(rest)-from) {
		return nil, nil, errors.New("its header is broken")
	}
	header, body := rest[from:from+int(length)], rest[from+int(length):]
	kind, dims := npyType.FindSubmatch(header), npyShape.FindSubmatch(header)
	if kind == nil || dims == nil || !npyFortran.Match(header) {
		return nil, nil, errors.New("it does not hold little-endian numbers in C's order")
	}
	size, _ := strconv.Atoi(string(kind[3]))
	n := len(body) / size
	if n > maxValues {
		return nil, nil, fmt.Errorf("it has %d numbers, more than %d", n, maxValues)
	}
	left := n
	for d := range strings.SplitSeq(string(dims[1]), ",") {
		if d = strings.TrimSpace(d); d == "" {
			continue
		}
		k, err := strconv.Atoi(d)
		if err != nil || k < 1 || left%k != 0 {
			return nil, nil, fmt.Errorf("its shape (%s) does not fit %d numbers", dims[1], n)
		}
		left /= k
		shape = append(shape, k)
	}
	if left != 1 || len(body)%size != 0 {
		return nil, nil, fmt.Errorf("its shape (%s) does not fit %d bytes", dims[1], len(body))
	}
	values = make([]float64, n)
	for i := range values {
		if values[i], err = number(kind[2][0], body[i*size:][:size]); err != nil {
			return nil, nil, err
		}
	}
	return shape, values, nil
}

// number reads one value of a kind (b, i, u or f).
func number(kind byte, b []byte) (float64, error) {
	var bits uint64
	for i, x := range b {
		bits |= uint64(x) << (8 * i)
	}
	shift := 64 - 8*len(b)
	switch {
	case kind == 'i':
		return float64(int64(bits<<shift) >> shift), nil
	case kind == 'f' && len(b) == 8:
		return math.Float64frombits(bits), nil
	case kind == 'f' && len(b) == 4:
		return float64(math.Float32frombits(uint32(bits))), nil
	case kind == 'f':
		return 0, fmt.Errorf("numbers of %d bytes are not read", len(b))
	}
	return float64(bits), nil
}
