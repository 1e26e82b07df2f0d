package replay

import (
	"bytes"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec/parquetfile"
)

// leafReader reads the values of a top-level column that is no list, row group by row group and
// page by page, without a parquet.Value for each. Its methods must be called within
// parquetfile.Guard. Memory: one page.
type leafReader struct {
	file  *parquetfile.File
	leaf  *parquetLeaf
	group int // row group that is open
	row   int64
	pages parquet.Pages // nil: none is open
	page  parquet.Page
	rest  leafValues // rows of the page that were not read
}

// leafValues are the values of neighbouring rows of a column. One of the slices holds those that
// are not null, or a dictionary of which index names them.
type leafValues struct {
	rows   int
	levels []byte // a row with a value has 1, null has 0; nil: no row is null
	index  []int32

	f32     []float32
	f64     []float64
	i32     []int32
	i64     []int64
	bytes   []byte // values of a fixed size, or texts
	size    int    // a value's; 0: texts
	offsets []uint32
}

// seek goes to a row of a row group. Going forward within the row group costs the pages in
// between.
func (r *leafReader) seek(group int, row int64) error {
	if r.pages == nil || group != r.group || row < r.row {
		r.close()
		r.pages, r.group, r.row = r.file.Pages(group, r.leaf.index), group, 0
	}
	for r.row < row {
		v, err := r.peek()
		if err != nil {
			return err
		}
		r.cut(int(min(int64(v.rows), row-r.row)))
	}
	return nil
}

// close ends the reading of the row group.
func (r *leafReader) close() {
	if r.pages == nil {
		return
	}
	r.release()
	r.pages.Close()
	r.pages = nil
}

func (r *leafReader) release() {
	if r.page != nil {
		parquet.Release(r.page)
	}
	r.page, r.rest = nil, leafValues{}
}

// peek returns the next rows, at least one, which are valid until the next call.
// io.ErrUnexpectedEOF: the row group has no more.
func (r *leafReader) peek() (*leafValues, error) {
	for r.rest.rows == 0 {
		r.release()
		page, err := r.pages.ReadPage()
		if err == io.EOF {
			err = fmt.Errorf("row group %d ends after %d of its %d rows: %w", r.group, r.row, r.file.GroupRows(r.group),
				io.ErrUnexpectedEOF)
		}
		if err != nil {
			return nil, err
		}
		r.page = page
		if err := r.rest.set(page, r.leaf); err != nil {
			return nil, fmt.Errorf("row group %d: %w", r.group, err)
		}
	}
	return &r.rest, nil
}

// cut takes the next n rows, which peek has returned.
func (r *leafReader) cut(n int) leafValues {
	r.row += int64(n)
	return r.rest.cut(n)
}

// set makes v the values of a page.
func (v *leafValues) set(page parquet.Page, leaf *parquetLeaf) error {
	*v = leafValues{rows: int(page.NumRows())}
	some := v.rows
	if levels := page.DefinitionLevels(); levels != nil {
		if some = bytes.Count(levels, []byte{1}); some < v.rows {
			v.levels = levels
		}
	}
	if some == 0 {
		return nil
	}
	data, found := page.Data(), 0
	if dictionary := page.Dictionary(); dictionary != nil {
		v.index = data.Int32()
		found = len(v.index)
		data = dictionary.Page().Data()
		if err := checkIndex(v.index, int(dictionary.Page().NumValues())); err != nil {
			return err
		}
	}
	switch leaf.kind {
	case parquet.Float:
		v.f32 = data.Float()
	case parquet.Double:
		v.f64 = data.Double()
	case parquet.Int32:
		v.i32 = data.Int32()
	case parquet.Int64:
		v.i64 = data.Int64()
	case parquet.FixedLenByteArray:
		v.bytes, v.size = data.FixedLenByteArray()
	case parquet.ByteArray:
		v.bytes, v.offsets = data.ByteArray()
	default:
		return fmt.Errorf("values of type %s are not read", leaf.kind)
	}
	if v.index == nil {
		found = v.stored()
	}
	if found != some {
		return fmt.Errorf("a page has %d values instead of %d", found, some)
	}
	return nil
}

// checkIndex returns an error for an index that a dictionary of n values has not.
func checkIndex(index []int32, n int) error {
	for _, i := range index {
		if uint(i) >= uint(n) {
			return fmt.Errorf("a page names value %d of a dictionary of %d", i, n)
		}
	}
	return nil
}

// stored returns the number of values in the slices.
func (v *leafValues) stored() int {
	switch {
	case v.size > 0:
		return len(v.bytes) / v.size
	case len(v.offsets) > 0:
		return len(v.offsets) - 1
	}
	return len(v.f32) + len(v.f64) + len(v.i32) + len(v.i64)
}

// some returns the number of values that are not null.
func (v *leafValues) some() int {
	if v.index != nil {
		return len(v.index)
	}
	return v.stored()
}

// cut removes the first n rows from v and returns them.
func (v *leafValues) cut(n int) leafValues {
	head := *v
	head.rows, v.rows = n, v.rows-n
	k := min(n, v.some())
	if v.levels != nil {
		head.levels, v.levels = v.levels[:n], v.levels[n:]
		k = bytes.Count(head.levels, []byte{1})
	}
	switch {
	case v.index != nil:
		head.index, v.index = v.index[:k], v.index[k:]
	case v.size > 0:
		head.bytes, v.bytes = v.bytes[:k*v.size], v.bytes[k*v.size:]
	case v.offsets != nil:
		head.offsets, v.offsets = v.offsets[:k+1], v.offsets[k:]
	case v.f32 != nil:
		head.f32, v.f32 = v.f32[:k], v.f32[k:]
	case v.f64 != nil:
		head.f64, v.f64 = v.f64[:k], v.f64[k:]
	case v.i32 != nil:
		head.i32, v.i32 = v.i32[:k], v.i32[k:]
	case v.i64 != nil:
		head.i64, v.i64 = v.i64[:k], v.i64[k:]
	}
	return head
}

// text returns value number i of a column of texts, a view.
func (v *leafValues) text(i int) []byte {
	if v.index != nil {
		i = int(v.index[i])
	}
	if v.size > 0 {
		return v.bytes[i*v.size:][:v.size]
	}
	return v.bytes[v.offsets[i]:v.offsets[i+1]]
}
