package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec/parquetfile"
)

// parquetColumn is a column of the file, and a place in it.
type parquetColumn struct {
	index    int
	list     bool // values belong to lists
	present  int  // definition level of a value that is not null
	element  int  // from which on there is an element, null or not
	unsigned bool
	text     bool

	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buffer [256]parquet.Value
	at, n  int
}

// open goes to the beginning of the column in a row group.
func (c *parquetColumn) open(f *parquetfile.File, group int) {
	if c == nil {
		return
	}
	c.close()
	c.pages = f.Pages(group, c.index)
}

func (c *parquetColumn) close() {
	if c == nil || c.pages == nil {
		return
	}
	c.release()
	c.pages.Close()
	c.pages = nil
}

func (c *parquetColumn) release() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	c.page, c.values, c.at, c.n = nil, nil, 0, 0
}

// peek returns the next value, a view that lasts until the next call. io.EOF:
// the row group has no more.
func (c *parquetColumn) peek() (*parquet.Value, error) {
	for c.at == c.n {
		if c.values == nil {
			if err := c.turn(); err != nil {
				return nil, err
			}
			c.values = c.page.Values()
		}
		n, err := c.values.ReadValues(c.buffer[:])
		c.at, c.n = 0, n
		if err == io.EOF {
			c.values = nil // the page goes when the values are used up
		} else if err != nil {
			return nil, err
		} else if n == 0 {
			return nil, io.ErrNoProgress
		}
	}
	return &c.buffer[c.at], nil
}

// turn goes to the next page. io.EOF: the row group has no more.
func (c *parquetColumn) turn() (err error) {
	c.release()
	c.page, err = c.pages.ReadPage()
	return err
}

// one returns the value of the next row of a plain column; false: it is null.
func (c *parquetColumn) one() (v *parquet.Value, ok bool, err error) {
	if v, err = c.peek(); err != nil {
		return nil, false, err
	}
	c.at++
	return v, !v.IsNull(), nil
}

var (
	errNullList = errors.New("the list is null")
	errLongList = fmt.Errorf("the list has more than %d elements", maxListed)
)

// maxListed bounds the memory that one list can ask for.
const maxListed = 16 << 20

// integers appends the list of the next row. bad says why it cannot be used; it
// is read to its end all the same.
func (c *parquetColumn) integers(dst []int64) (list []int64, bad, err error) {
	for first := true; ; first = false {
		v, err := c.peek()
		if err == io.EOF && !first {
			return dst, bad, nil
		}
		if err != nil {
			return dst, nil, err
		}
		if first == (v.RepetitionLevel() > 0) {
			if first {
				return dst, nil, errors.New("a list begins in its middle")
			}
			return dst, bad, nil
		}
		c.at++
		level := v.DefinitionLevel()
		switch n, fits := c.integer(v); {
		case level < c.element-1:
			bad = errNullList
		case level < c.element: // an empty list
		case level < c.present:
			bad = fmt.Errorf("element %d is null", len(dst))
		case !fits:
			bad = fmt.Errorf("element %d is no int64", len(dst))
		case len(dst) == maxListed:
			bad = errLongList
		default:
			dst = append(dst, n)
		}
	}
}

// integer returns v as one; false if it is none.
func (c *parquetColumn) integer(v *parquet.Value) (n int64, ok bool) {
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			n = 1
		}
		return n, true
	case parquet.Int32:
		if c.unsigned {
			return int64(v.Uint32()), true
		}
		return int64(v.Int32()), true
	case parquet.Int64:
		return v.Int64(), !c.unsigned || v.Int64() >= 0
	}
	return 0, false
}
