package sinks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// openParquet reads a file's footer. Damaged bytes can make the library panic,
// which becomes an error here, or believe any length of the footer, which it
// would reserve.
func openParquet(o Object) (f *parquet.File, err error) {
	var tail [8]byte
	if _, err := o.ReadAt(tail[:], o.Size()-8); o.Size() < 12 || err != nil && err != io.EOF {
		return nil, fmt.Errorf("not a readable Parquet file: %d bytes", o.Size())
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > o.Size()-12 {
		return nil, fmt.Errorf("not a readable Parquet file: a footer of %d bytes in a file of %d", n, o.Size())
	}
	err = guard(func() error {
		f, err = parquet.OpenFile(o, o.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
		return err
	})
	return f, err
}

// guard turns a panic of f into an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not a readable Parquet file: %v", r)
		}
	}()
	return f()
}

// footerOf returns a value of a file's key-value metadata, empty if it is not
// there.
func footerOf(f *parquet.File, key string) string {
	value, _ := f.Lookup(key)
	return value
}

// rowKey says which frame a row belongs to, within a partition.
type rowKey struct {
	offset int64
	index  int32
}

// rowKeys appends the keys of a file's rows, in their order. All of them must
// be of the given partition.
func rowKeys(dst []rowKey, f *parquet.File, partition int32) ([]rowKey, error) {
	err := guard(func() error {
		for _, g := range f.RowGroups() {
			// The number of rows is the footer's word: nothing is reserved for it.
			from, foreign := len(dst), 0
			offset := func(_ int, v parquet.Value) { dst = append(dst, rowKey{offset: v.Int64()}) }
			index := func(i int, v parquet.Value) { dst[from+i].index = v.Int32() }
			owner := func(_ int, v parquet.Value) {
				if v.Int32() != partition {
					foreign++
				}
			}
			err := readColumn(f, g, "offset", offset)
			if err == nil {
				err = readColumn(f, g, "index", index)
			}
			if err == nil {
				err = readColumn(f, g, "partition", owner)
			}
			if err != nil {
				return err
			}
			if foreign > 0 {
				return fmt.Errorf("%d rows are of another partition", foreign)
			}
		}
		return nil
	})
	return dst, err
}

// readColumn calls put for each value of a required column.
func readColumn(f *parquet.File, g parquet.RowGroup, name string, put func(i int, v parquet.Value)) error {
	leaf, ok := f.Schema().Lookup(name)
	if !ok || leaf.MaxRepetitionLevel+leaf.MaxDefinitionLevel > 0 {
		return fmt.Errorf("it has no required column %s", name)
	}
	pages := g.ColumnChunks()[leaf.ColumnIndex].Pages()
	defer pages.Close()
	rows := int64(0)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if rows, err = readPage(page, rows, g.NumRows(), put); err != nil {
			return err
		}
	}
	if rows != g.NumRows() {
		return fmt.Errorf("column %s has %d values in a row group of %d rows", name, rows, g.NumRows())
	}
	return nil
}

// readPage calls put for each value of a page, which is given back. The first
// one is number i of at most n.
func readPage(page parquet.Page, i, n int64, put func(i int, v parquet.Value)) (int64, error) {
	defer parquet.Release(page)
	var values [256]parquet.Value
	reader := page.Values()
	for {
		k, err := reader.ReadValues(values[:])
		for _, v := range values[:k] {
			if i == n {
				return i, fmt.Errorf("a column has more values than its row group has rows, %d", n)
			}
			put(int(i), v)
			i++
		}
		if errors.Is(err, io.EOF) {
			return i, nil
		}
		if err != nil {
			return i, err
		}
	}
}

// columnRange returns the smallest and largest value of an int64 column from
// the footer's statistics; ok is false if there are none.
func columnRange(f *parquet.File, name string) (low, high int64, ok bool) {
	leaf, found := f.Schema().Lookup(name)
	if !found || leaf.Node.Type().Kind() != parquet.Int64 {
		return 0, 0, false
	}
	for _, g := range f.Metadata().RowGroups {
		if leaf.ColumnIndex >= len(g.Columns) {
			return 0, 0, false
		}
		s := g.Columns[leaf.ColumnIndex].MetaData.Statistics
		if len(s.MinValue) != 8 || len(s.MaxValue) != 8 {
			return 0, 0, false
		}
		a, b := parquet.Int64.Value(s.MinValue).Int64(), parquet.Int64.Value(s.MaxValue).Int64()
		if !ok || a < low {
			low = a
		}
		if !ok || b > high {
			high = b
		}
		ok = true
	}
	return low, high, ok
}
