package replay

import (
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"entropipe/ingest/filesys"
	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
)

// parquetTable is a Parquet file as a columnTable. It reads a column at a time, and of a column a
// page at a time.
type parquetTable struct {
	f       filesys.File
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
	unit     int64 // nanoseconds of a tick of a timestamp; 0: it is none
}

// openParquetTable reads the footer of a file that holds one cloud.
func openParquetTable(path string) (*parquetTable, error) {
	t, err := openParquetFile(path)
	if err == nil && t.file.NumRows() > math.MaxInt32 {
		t.close()
		return nil, &BadInputError{File: path, Detail: fmt.Sprintf("%d rows; a cloud has at most %d points",
			t.file.NumRows(), math.MaxInt32)}
	}
	return t, err
}

// openParquetFile reads the footer.
func openParquetFile(path string) (*parquetTable, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, badFile(path, err)
	}
	t := &parquetTable{f: f}
	info, err := f.Stat()
	if err == nil {
		t.file, err = parquetfile.Open(f, info.Size())
	}
	if err == nil {
		err = parquetfile.Guard(func() error { t.describe(); return nil })
	}
	if err != nil {
		f.Close()
		return nil, &BadInputError{File: path, Detail: err.Error(), Err: err}
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
		if ts, is := logical.(*format.TimestampType); is {
			leaf.unit = unitOf(ts)
		}
		d.Wide = !ok || as.BitWidth > 16
		leaf.unsigned = ok && !as.IsSigned
	}
}

// unitOf returns the nanoseconds of a tick.
func unitOf(ts *format.TimestampType) int64 {
	switch ts.Unit.Value.(type) {
	case *format.MilliSeconds:
		return 1e6
	case *format.MicroSeconds:
		return 1e3
	}
	return 1
}

// Rows returns the number of rows that the footer claims.
func (t *parquetTable) Rows() int { return int(t.file.NumRows()) }

// Columns returns the top-level columns.
func (t *parquetTable) Columns() []schemas.TableColumn { return t.columns }

// Float32s implements columnTable. Null is NaN.
func (t *parquetTable) Float32s(i int, dst []float32) ([]float32, error) {
	return readParquet(t, i, dst, float32(math.NaN()))
}

// Float64s implements columnTable. An integer that float64 does not hold is an error.
func (t *parquetTable) Float64s(i int, dst []float64) ([]float64, error) {
	return readParquet(t, i, dst, math.NaN())
}

// Int64s implements columnTable.
func (t *parquetTable) Int64s(i int, dst []int64) ([]int64, error) {
	return readParquet(t, i, dst, math.MinInt64)
}

// readParquet fills dst, or new memory, with the values of column i in all row groups.
func readParquet[T number](t *parquetTable, i int, dst []T, null T) ([]T, error) {
	if err := t.isNumber(i); err != nil {
		return nil, err
	}
	dst = resize(dst, t.Rows())
	r := leafReader{file: t.file, leaf: &t.leaves[i]}
	defer r.close()
	at := 0
	for group := range t.file.RowGroups() {
		n := int(t.file.GroupRows(group))
		if err := readRows(&r, group, 0, dst[at:][:n], null); err != nil {
			return nil, fmt.Errorf("column %s: %w", t.columns[i].Name, err)
		}
		at += n
	}
	return dst, nil
}

// isNumber returns an error if column i holds no numbers.
func (t *parquetTable) isNumber(i int) error {
	if c := &t.columns[i]; !c.Number {
		return fmt.Errorf("column %s is %s, which is no number", c.Name, c.Type)
	}
	return nil
}

// readRows fills dst with the values of neighbouring rows of a row group.
func readRows[T number](r *leafReader, group int, row int64, dst []T, null T) error {
	return parquetfile.Guard(func() error {
		if len(dst) == 0 {
			return nil
		}
		if err := r.seek(group, row); err != nil {
			return err
		}
		for len(dst) > 0 {
			v, err := r.peek()
			if err != nil {
				return err
			}
			n := min(v.rows, len(dst))
			head := r.cut(n)
			if bad, err := convert(dst[:n], &head, r.leaf, null); err != nil {
				return fmt.Errorf("row %d of row group %d: %w", r.row-int64(n-bad), group, err)
			}
			dst = dst[n:]
		}
		return nil
	})
}
