package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

const (
	metadataKey = "__metadata__"
	maxDims     = 64 // dimensions of a shape, NumPy's and PyTorch's limit

	// maxTensors is far more than a model has: the largest ones, of hundreds of
	// experts in each layer, have some hundred thousand.
	maxTensors = 1 << 20
)

// parseHeader reads a header whose tensors fill dataSize bytes. The tensors
// come in the order of their bytes, with start counted from the end of the
// header.
func parseHeader(header []byte, dataSize int64) (map[string]string, []Tensor, error) {
	if !utf8.Valid(header) {
		return nil, nil, errors.New("its header is not UTF-8")
	}
	s := scanner{what: "header", text: header}
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, s.fault("the header must begin with {")
	}
	metadata, tensors := map[string]string{}, []Tensor(nil)
	err := s.object("header", func(key string) error {
		if key == metadataKey {
			return s.strings(metadataKey, metadata)
		}
		if len(tensors) == maxTensors {
			return s.fault("more than %d tensors", maxTensors)
		}
		t, err := s.tensor(key, dataSize)
		tensors = append(tensors, t)
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = checkPlaces(tensors, dataSize)
	}
	if err != nil {
		return nil, nil, err
	}
	return metadata, tensors, nil
}

// checkPlaces sorts the tensors and makes sure that they tile the data.
func checkPlaces(tensors []Tensor, dataSize int64) error {
	slices.SortFunc(tensors, func(a, b Tensor) int {
		if c := cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.size, b.size)); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	end := int64(0)
	for _, t := range tensors {
		switch {
		case t.start < end:
			return fmt.Errorf("tensor %q begins at byte %d of the data, within another that ends at %d",
				t.Name, t.start, end)
		case t.start > end:
			return fmt.Errorf("tensor %q begins at byte %d of the data, where %d bytes before it belong to none",
				t.Name, t.start, t.start-end)
		}
		end += t.size
	}
	if end < dataSize {
		return fmt.Errorf("%d bytes after the last tensor belong to none", dataSize-end)
	}
	return nil
}

// tensor reads one description and compares its parts.
func (s *scanner) tensor(name string, dataSize int64) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	seen := 0
	err := s.object("it", func(key string) (err error) {
		seen++
		switch key {
		case "dtype":
			var text string
			text, err = s.string()
			t.DType = DType(text)
		case "shape":
			var dims []int64
			if dims, err = s.integers(maxDims); err == nil {
				t.Shape, err = asShape(dims)
			}
		case "data_offsets":
			offsets, err = s.integers(2)
		default:
			err = s.fault("want dtype, shape or data_offsets, not %q", key)
		}
		return err
	})
	switch {
	case err != nil:
		return t, fmt.Errorf("tensor %q: %w", name, err)
	case seen < 3:
		return t, s.fault("tensor %q: dtype, shape or data_offsets is missing", name)
	case t.DType.Size() == 0:
		return t, s.fault("tensor %q: no type is called %q", name, t.DType)
	case len(offsets) != 2 || offsets[0] > offsets[1]:
		return t, s.fault("tensor %q: data_offsets are a begin and an end, not %v", name, offsets)
	case offsets[1] > dataSize:
		return t, s.fault("tensor %q ends at byte %d of the data, which has %d: truncated", name, offsets[1], dataSize)
	}
	t.start, t.size = offsets[0], offsets[1]-offsets[0]
	n, ok := elements(t.Shape, dataSize)
	if !ok || n > t.size || n*int64(t.DType.Size()) != t.size { // n <= t.size: the product cannot overflow
		return t, s.fault("tensor %q: %s of shape %v are not the %d bytes of its data_offsets", name,
			t.DType, t.Shape, t.size)
	}
	return t, nil
}

func asShape(dims []int64) ([]int, error) {
	shape := make([]int, len(dims))
	for i, d := range dims {
		if d > math.MaxInt {
			return nil, fmt.Errorf("a dimension of %d is more than this machine can address", d)
		}
		shape[i] = int(d)
	}
	return shape, nil
}

// elements returns the product of a shape, false where it is above most.
func elements(shape []int, most int64) (int64, bool) {
	if slices.Contains(shape, 0) {
		return 0, true
	}
	n := int64(1)
	for _, d := range shape {
		if int64(d) > most/n {
			return 0, false
		}
		n *= int64(d)
	}
	return n, true
}
