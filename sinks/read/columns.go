package read

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks/tables"
)

// footerOf returns a value of a file's key-value metadata; "": the key is missing.
func footerOf(f *parquetfile.File, key string) string {
	value, _ := f.Lookup(key)
	return value
}

// rowKey identifies a frame or sequence within a partition.
type rowKey struct {
	offset int64
	index  int32
}

// rowKeys appends the keys of a file's rows to dst, in order. Rows of another partition
// are an error. The rows of table messages have no index: theirs is 0.
func rowKeys(dst []rowKey, f *parquetfile.File, table string, partition int32) ([]rowKey, error) {
	err := parquetfile.Guard(func() error {
		for g := range f.RowGroups() {
			// The number of rows is a claim of the footer: no memory is reserved by it.
			from, foreign := len(dst), 0
			offset := func(_ int, v parquet.Value) { dst = append(dst, rowKey{offset: v.Int64()}) }
			index := func(i int, v parquet.Value) { dst[from+i].index = v.Int32() }
			owner := func(_ int, v parquet.Value) {
				if v.Int32() != partition {
					foreign++
				}
			}
			err := readColumn(f, g, "offset", offset)
			if err == nil && table != tables.Messages {
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

// readColumn calls put for each value of a required column in row group g.
func readColumn(f *parquetfile.File, g int, name string, put func(i int, v parquet.Value)) error {
	leaf, ok := f.Schema().Lookup(name)
	if !ok || leaf.MaxRepetitionLevel+leaf.MaxDefinitionLevel > 0 {
		return fmt.Errorf("it has no required column %s", name)
	}
	pages := f.Pages(g, leaf.ColumnIndex)
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
		if rows, err = readPage(page, rows, f.GroupRows(g), put); err != nil {
			return err
		}
	}
	if want := f.GroupRows(g); rows != want {
		return fmt.Errorf("column %s has %d values in a row group of %d rows", name, rows, want)
	}
	return nil
}

// readPage calls put for each value of a page and releases the page. The index of the
// first value is i; index n is an error. It returns the next index.
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

// columnRange returns the smallest and largest value of an int64 column from the
// footer's statistics; not ok: a row group has none.
func columnRange(f *parquetfile.File, name string) (low, high int64, ok bool) {
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
