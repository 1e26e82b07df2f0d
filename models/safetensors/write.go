package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"entropipe/models/atomicfile"
)

// Array is a tensor for Write. Data is a slice of the type's values ([]float32 for F32,
// []int64 for I64 and so on), or []byte with the little-endian bytes of any type. An
// empty DType means the type of Data.
type Array struct {
	Name  string
	DType DType
	Shape []int
	Data  any
}

// WriteFile writes the arrays to a file, whole or not at all; see Write.
func WriteFile(path string, metadata map[string]string, arrays []Array) error {
	return atomicfile.Write(path, func(w io.Writer) error { return Write(w, metadata, arrays) })
}

// Write writes the bytes of a file. Equal content has equal bytes: tensors are ordered
// by the size of their type, widest first, then by name, so each begins at a multiple
// of its type's size. Before writing, Write fails if a shape does not fit its data, or
// if a name is not valid UTF-8 or appears twice.
func Write(w io.Writer, metadata map[string]string, arrays []Array) error {
	arrays = slices.Clone(arrays)
	for i := range arrays {
		if err := arrays[i].check(); err != nil {
			return err
		}
	}
	slices.SortFunc(arrays, func(a, b Array) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), cmp.Compare(a.Name, b.Name))
	})
	header, err := encodeHeader(metadata, arrays)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, a := range arrays {
		if err := writeData(w, a.Data); err != nil {
			return err
		}
	}
	return nil
}

// check fills in the type and compares shape and data.
func (a *Array) check() error {
	own, n := typeOf(a.Data)
	if own == "" {
		return fmt.Errorf("tensor %q: values of type %T cannot be written", a.Name, a.Data)
	}
	if a.DType == "" {
		a.DType = own
	}
	width := a.DType.Size()
	switch {
	case !utf8.ValidString(a.Name) || a.Name == metadataKey:
		return fmt.Errorf("no tensor can be called %q", a.Name)
	case width == 0:
		return fmt.Errorf("tensor %q: no type is called %q", a.Name, a.DType)
	case own == U8:
		if n%width != 0 {
			return fmt.Errorf("tensor %q: %d bytes are no whole number of %s", a.Name, n, a.DType)
		}
		n /= width
	case own != a.DType:
		return fmt.Errorf("tensor %q: values of type %T are not %s", a.Name, a.Data, a.DType)
	}
	if len(a.Shape) > maxDims || slices.ContainsFunc(a.Shape, func(d int) bool { return d < 0 }) {
		return fmt.Errorf("tensor %q: shape %v cannot be written", a.Name, a.Shape)
	}
	if want, ok := elements(a.Shape, int64(n)); !ok || want != int64(n) {
		return fmt.Errorf("tensor %q: %d values are not of shape %v", a.Name, n, a.Shape)
	}
	return nil
}

// typeOf returns the type that a slice of Go's holds, and its length.
func typeOf(data any) (DType, int) {
	switch v := data.(type) {
	case []bool:
		return BOOL, len(v)
	case []uint8:
		return U8, len(v)
	case []int8:
		return I8, len(v)
	case []uint16:
		return U16, len(v)
	case []int16:
		return I16, len(v)
	case []uint32:
		return U32, len(v)
	case []int32:
		return I32, len(v)
	case []float32:
		return F32, len(v)
	case []uint64:
		return U64, len(v)
	case []int64:
		return I64, len(v)
	case []float64:
		return F64, len(v)
	}
	return "", 0
}

// encodeHeader returns the length and the header, padded so that the data begin
// at a multiple of 8 bytes.
func encodeHeader(metadata map[string]string, arrays []Array) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	between := "{"
	if len(metadata) > 0 {
		fmt.Fprintf(&b, "%s%q:", between, metadataKey)
		between = "{"
		for _, k := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(k) || !utf8.ValidString(metadata[k]) {
				return nil, fmt.Errorf("metadata %q: %q is not text", k, metadata[k])
			}
			fmt.Fprintf(&b, "%s%s:%s", between, quote(k), quote(metadata[k]))
			between = ","
		}
		b.WriteByte('}')
		between = ","
	}
	seen, at := map[string]bool{}, int64(0)
	for _, a := range arrays {
		if seen[a.Name] {
			return nil, fmt.Errorf("two tensors are called %q", a.Name)
		}
		seen[a.Name] = true
		_, n := typeOf(a.Data)
		width := a.DType.Size()
		if _, raw := a.Data.([]byte); raw {
			width = 1
		}
		shape, err := json.Marshal(append([]int{}, a.Shape...))
		if err != nil {
			return nil, err
		}
		end := at + int64(n)*int64(width)
		fmt.Fprintf(&b, `%s%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, between, quote(a.Name),
			a.DType, shape, at, end)
		between, at = ",", end
	}
	if between == "{" {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes is more than the %d that the format allows", b.Len()-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), nil
}

// quote returns s as JSON, with < and & as they are.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("safetensors: a string has no JSON: " + err.Error())
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// writeData writes the values in pieces, so that there is no second copy of a
// large tensor.
func writeData(w io.Writer, data any) error {
	switch v := data.(type) {
	case []byte:
		_, err := w.Write(v)
		return err
	case []bool:
		return writeSlice(w, v)
	case []int8:
		return writeSlice(w, v)
	case []uint16:
		return writeSlice(w, v)
	case []int16:
		return writeSlice(w, v)
	case []uint32:
		return writeSlice(w, v)
	case []int32:
		return writeSlice(w, v)
	case []float32:
		return writeSlice(w, v)
	case []uint64:
		return writeSlice(w, v)
	case []int64:
		return writeSlice(w, v)
	case []float64:
		return writeSlice(w, v)
	}
	panic("safetensors: check has let a stranger through")
}

func writeSlice[T any](w io.Writer, values []T) error {
	var piece []byte
	for part := range slices.Chunk(values, pieceSize/8) {
		var err error
		if piece, err = binary.Append(piece[:0], binary.LittleEndian, part); err != nil {
			return err
		}
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
