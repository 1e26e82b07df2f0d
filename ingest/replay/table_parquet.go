package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"entropipe/models/plainfile"
	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
)

// parquetTable is a Parquet file as a columnTable. It reads a column at a time, and of a column a
// page at a time.
type parquetTable struct {
	f       *os.File
	file    *parquetfile.File
	columns []schemas.TableColumn
	leaves  []parquetLeaf // where the values of columns are
}

// parquetLeaf is a top-level column.
type parquetLeaf struct {
	index    int
	kind     parquet.Kind
	half     bool // float16
	unsigned bool
}

// openParquetTable reads the footer.
func openParquetTable(path string) (*parquetTable, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, badFile(path, err)
	}
	t := &parquetTable{f: f}
	info, err := f.Stat()
	if err == nil {
		t.file, err = parquetfile.Open(f, info.Size())
	}
	if err == nil && t.file.NumRows() > math.MaxInt32 {
		err = fmt.Errorf("%d rows; a cloud has at most %d points", t.file.NumRows(), math.MaxInt32)
	}
	if err == nil {
		err = parquetfile.Guard(func() error { t.describe(); return nil })
	}
	if err != nil {
		f.Close()
		return nil, &BadInputError{File: path, Detail: err.Error()}
	}
	return t, nil
}

func (t *parquetTable) close() { t.f.Close() }

// describe finds the top-level columns. Lists and groups are no numbers.
func (t *parquetTable) describe() {
	for _, c := range t.file.Root().Columns() {
		d := schemas.TableColumn{Name: c.Name(), Type: "group"}
		leaf := parquetLeaf{index: -1}
		if c.Leaf() {
			d.Type = c.Type().String()
		}
		if c.Leaf() && !c.Repeated() {
			leaf.index, leaf.kind = c.Index(), c.Type().Kind()
			describeLeaf(c.Type(), &d, &leaf)
		}
		t.columns, t.leaves = append(t.columns, d), append(t.leaves, leaf)
	}
}

// describeLeaf tells which numbers a column of a type has, if any: dates, times and decimals are
// no numbers here.
func describeLeaf(is parquet.Type, d *schemas.TableColumn, leaf *parquetLeaf) {
	logical := format.LogicalTypeValue(nil)
	if l := is.LogicalType(); l != nil {
		logical = l.Value
	}
	switch is.Kind() {
	case parquet.Float:
		d.Number = true
	case parquet.Double:
		d.Number, d.Wide = true, true
	case parquet.FixedLenByteArray:
		_, leaf.half = logical.(*format.Float16Type)
		leaf.half = leaf.half && is.Length() == 2
		d.Number = leaf.half
	case parquet.Int32, parquet.Int64:
		as, ok := logical.(*format.IntType)
		d.Number = ok || logical == nil
		d.Integer = d.Number
		d.Wide = !ok || as.BitWidth > 16
		leaf.unsigned = ok && !as.IsSigned
	}
}

// Rows returns the number of rows that the footer claims.
func (t *parquetTable) Rows() int { return int(t.file.NumRows()) }

// Columns returns the top-level columns.
func (t *parquetTable) Columns() []schemas.TableColumn { return t.columns }

// Float32s implements columnTable. Null is NaN.
func (t *parquetTable) Float32s(i int, dst []float32) ([]float32, error) {
	nan := float32(math.NaN())
	return readParquet(t, i, dst, nan, func(v *parquet.Value, leaf *parquetLeaf) (float32, error) {
		switch {
		case v.Kind() == parquet.Float:
			return v.Float(), nil
		case v.Kind() == parquet.Double:
			return float32(v.Double()), nil
		case leaf.half:
			return halfOf(v), nil
		}
		n, err := integerOf(v, leaf)
		return float32(n), err
	})
}

// Float64s implements columnTable. An integer that float64 does not hold is an error.
func (t *parquetTable) Float64s(i int, dst []float64) ([]float64, error) {
	return readParquet(t, i, dst, math.NaN(), func(v *parquet.Value, leaf *parquetLeaf) (float64, error) {
		switch {
		case v.Kind() == parquet.Float:
			return float64(v.Float()), nil
		case v.Kind() == parquet.Double:
			return v.Double(), nil
		case leaf.half:
			return float64(halfOf(v)), nil
		}
		n, err := integerOf(v, leaf)
		if size := uint64(max(n, -n)); err == nil && bits.Len64(size)-bits.TrailingZeros64(size) > 53 {
			err = fmt.Errorf("%d is an integer that float64 does not hold", n)
		}
		return float64(n), err
	})
}

// Int64s implements columnTable.
func (t *parquetTable) Int64s(i int, dst []int64) ([]int64, error) {
	return readParquet(t, i, dst, math.MinInt64, integerOf)
}

func halfOf(v *parquet.Value) float32 {
	b := v.ByteArray()
	return schemas.WidenHalf(uint16(b[0]) | uint16(b[1])<<8)
}

func integerOf(v *parquet.Value, leaf *parquetLeaf) (int64, error) {
	switch {
	case v.Kind() == parquet.Int32 && leaf.unsigned:
		return int64(v.Uint32()), nil
	case v.Kind() == parquet.Int32:
		return int64(v.Int32()), nil
	case v.Kind() == parquet.Int64 && (!leaf.unsigned || v.Int64() >= 0):
		return v.Int64(), nil
	case v.Kind() == parquet.Int64:
		return 0, fmt.Errorf("%d is no int64", v.Uint64())
	}
	return 0, errors.New("the value is no integer")
}

// readParquet fills dst, or new memory, with the values of column i in all row groups.
func readParquet[T number](t *parquetTable, i int, dst []T, null T,
	convert func(*parquet.Value, *parquetLeaf) (T, error)) ([]T, error) {
	leaf, name := &t.leaves[i], t.columns[i].Name
	if !t.columns[i].Number {
		return nil, fmt.Errorf("column %s is %s, which is no number", name, t.columns[i].Type)
	}
	dst = resize(dst, t.Rows())
	at := 0
	column := parquetColumn{index: leaf.index}
	defer column.close()
	for group := range t.file.RowGroups() {
		err := parquetfile.Guard(func() error {
			column.open(t.file, group)
			return readGroup(&column, leaf, dst[at:][:t.file.GroupRows(group)], at, null, convert)
		})
		at += int(t.file.GroupRows(group))
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
	}
	return dst, nil
}

// readGroup fills dst with the values of a row group. before is the number of rows in the
// groups before it.
func readGroup[T number](c *parquetColumn, leaf *parquetLeaf, dst []T, before int, null T,
	convert func(*parquet.Value, *parquetLeaf) (T, error)) error {
	for at := 0; at < len(dst); {
		n, err := readFloats(c, leaf, dst[at:])
		if n > 0 {
			at += n
			continue
		}
		var v *parquet.Value
		ok := false
		if err == nil {
			v, ok, err = c.one()
		}
		if err == io.EOF {
			err = fmt.Errorf("it has %d values instead of %d", before+at, before+len(dst))
		}
		if err != nil {
			return err
		}
		if dst[at] = null; ok {
			if dst[at], err = convert(v, leaf); err != nil {
				return fmt.Errorf("row %d: %w", before+at, err)
			}
		}
		at++
	}
	return nil
}

// number is a type of a column.
type number interface{ float32 | float64 | int64 }

// readFloats fills dst with floats of the next page, as many as there are room and values,
// and returns their number; 0: values come one by one.
func readFloats[T number](c *parquetColumn, leaf *parquetLeaf, dst []T) (int, error) {
	var whole T = 1
	if leaf.kind != parquet.Float && leaf.kind != parquet.Double || whole/2 == 0 {
		return 0, nil
	}
	narrow, wide, indices, err := c.floats(leaf.kind)
	switch {
	case err != nil:
		return 0, err
	case indices != nil && wide != nil:
		return gather(dst, wide, indices), nil
	case indices != nil:
		return gather(dst, narrow, indices), nil
	case wide != nil:
		return spread(dst, wide), nil
	}
	return spread(dst, narrow), nil
}

// spread converts values to dst, as many as fit.
func spread[T number, F float32 | float64](dst []T, values []F) int {
	n := min(len(dst), len(values))
	for i, v := range values[:n] {
		dst[i] = T(v)
	}
	return n
}

// gather converts the values of a dictionary at indices to dst, as many as fit.
func gather[T number, F float32 | float64](dst []T, values []F, indices []int32) int {
	n := min(len(dst), len(indices))
	for i, at := range indices[:n] {
		dst[i] = T(values[at])
	}
	return n
}
