package waymo

import (
	"fmt"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
)

// shapes are the dimensions of a column's images, by row; nil: none.
type shapes [][]int

func (s shapes) dims(row int) []int { return s[row] }

// values returns the number of values of an image.
func (s shapes) values(row int) int {
	n := 1
	for _, dim := range s[row] {
		n *= dim
	}
	if len(s[row]) == 0 {
		return 0
	}
	return n
}

// imageColumns finds the columns of values and reads those of shapes. limit bounds the bytes
// of an image.
func imageColumns(f *parquetfile.File, name string, limit int64) (values *column, all shapes, err *codec.Error) {
	if values, err = needColumn(f, name+".values", true, parquet.Float, parquet.Double); err != nil {
		return nil, nil, err
	}
	dims, err := needColumn(f, name+".shape", true, parquet.Int32, parquet.Int64)
	if err != nil {
		return nil, nil, err
	}
	all = make(shapes, f.NumRows())
	err = dims.each(func(row int, v parquet.Value, _ bool) *codec.Error {
		if v.IsNull() {
			return nil
		}
		dim, _ := integer(v)
		product := int64(all.values(row))
		if dim < 0 || len(all[row]) == 3 || product > 0 && dim > limit/4/product || dim > maxPixels {
			return codec.Errorf(codec.BadLength, -1,
				"row %d, column %s.shape: %v and %d are no shape of at most %d bytes",
				row, name, all[row], dim, limit)
		}
		all[row] = append(all[row], int(dim))
		return nil
	})
	return values, all, err
}

// readMatrices reads a column of lists of 16 values.
func readMatrices(f *parquetfile.File, name string) ([]Transform, *codec.Error) {
	values, err := readNumbers(f, name, true, len(Transform{}))
	if err != nil {
		return nil, err
	}
	all := make([]Transform, f.NumRows())
	for row := range all {
		if err := all[row].set(fmt.Sprintf("matrix in row %d of column %s", row, name), values[row]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readNumbers reads a small column of numbers, or of lists with at most most numbers. A row
// without a value has none.
func readNumbers(f *parquetfile.File, name string, list bool, most int) ([][]float64, *codec.Error) {
	c, err := needColumn(f, name, list, parquet.Float, parquet.Double)
	if err != nil {
		return nil, err
	}
	if err := checkRows(f); err != nil {
		return nil, err
	}
	all := make([][]float64, f.NumRows())
	err = c.each(func(row int, v parquet.Value, _ bool) *codec.Error {
		if v.IsNull() {
			return nil
		}
		if len(all[row]) == most {
			return codec.Errorf(codec.BadLength, -1, "row %d, column %s has more than %d values", row, name, most)
		}
		n := v.Double
		if v.Kind() == parquet.Float {
			n = func() float64 { return float64(v.Float()) }
		}
		all[row] = append(all[row], n())
		return nil
	})
	return all, err
}
