package waymo

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
)

// column is a column of a component, found by the name of its top-level field. Names hold
// dots and brackets, which do not separate anything.
type column struct {
	file    *parquetfile.File
	name    string
	index   int
	kind    parquet.Kind
	list    bool // values belong to lists
	element int  // definition level from which on a list has an element, null or not
	present int  // definition level of a value that is not null
}

// findColumn returns the column; nil if there is none. Lists may be written in any of the
// ways of which there are several: the levels count, the names of inner fields do not.
func findColumn(f *parquetfile.File, name string) (*column, *codec.Error) {
	var leaf *parquet.Column
	for _, c := range f.Root().Columns() {
		if c.Name() == name {
			leaf = c
		}
	}
	if leaf == nil {
		return nil, nil
	}
	c := &column{file: f, name: name}
	for level := 0; ; leaf = leaf.Columns()[0] {
		switch {
		case leaf.Repeated() && c.list:
			return nil, codec.Errorf(codec.BadType, -1, "column %s is a list of lists", name)
		case leaf.Repeated():
			c.list = true
			level++
			c.element = level
		case leaf.Optional():
			level++
		}
		if leaf.Leaf() {
			c.index, c.present, c.kind = leaf.Index(), level, leaf.Type().Kind()
			return c, nil
		}
		if len(leaf.Columns()) != 1 {
			return nil, codec.Errorf(codec.BadType, -1, "column %s is a group of %d fields", name, len(leaf.Columns()))
		}
	}
}

// needColumn is findColumn for a column that must be there.
func needColumn(f *parquetfile.File, name string, list bool, kinds ...parquet.Kind) (*column, *codec.Error) {
	c, err := findColumn(f, name)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, codec.Errorf(codec.Missing, -1, "there is no column %s", name)
	}
	for _, kind := range kinds {
		if c.kind == kind && c.list == list {
			return c, nil
		}
	}
	what := "a plain column"
	if c.list {
		what = "a list"
	}
	return nil, codec.Errorf(codec.BadType, -1, "column %s is %s of %s", name, what, c.kind)
}

// maxRows bounds the rows of a component: a segment has 995.
const maxRows = 1 << 20

// checkRows returns an error if a file claims more rows than are read, or than it has bytes:
// memory is reserved for each row before the rows are read.
func checkRows(f *parquetfile.File) *codec.Error {
	if most := min(maxRows, f.Size()); f.NumRows() > most {
		return codec.Errorf(codec.TooLarge, -1, "it claims %d rows; at most %d are read from %d bytes", f.NumRows(),
			most,
			f.Size())
	}
	return nil
}

// each calls do with every value of a small column. v is null for a row without a value,
// and for a null list. begins is set for the first value of a row.
func (c *column) each(do func(row int, v parquet.Value, begins bool) *codec.Error) *codec.Error {
	if err := checkRows(c.file); err != nil {
		return err
	}
	row := -1
	for group := range c.file.RowGroups() {
		end := row + int(c.file.GroupRows(group))
		var fault *codec.Error
		err := parquetfile.Guard(func() error {
			return eachValue(c.file.Pages(group, c.index), func(v parquet.Value) error {
				begins := v.RepetitionLevel() == 0
				if begins {
					row++
				}
				if row > end || row < 0 {
					return errors.New("it has more rows than its row group")
				}
				if fault = do(row, v, begins); fault != nil {
					return errStopped
				}
				return nil
			})
		})
		if fault != nil {
			return fault
		}
		if err == nil && row < end {
			err = errors.New("it ends before its row group")
		}
		if err != nil {
			return codec.Errorf(codec.Corrupt, -1, "column %s: %v", c.name, err)
		}
	}
	return nil
}

var errStopped = errors.New("stopped")

// eachValue calls do with every value of the pages.
func eachValue(pages parquet.Pages, do func(parquet.Value) error) error {
	defer pages.Close()
	var buffer [256]parquet.Value
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for values := page.Values(); ; {
			n, err := values.ReadValues(buffer[:])
			for _, v := range buffer[:n] {
				if err := do(v); err != nil {
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if n == 0 {
				return io.ErrNoProgress
			}
		}
		parquet.Release(page)
	}
}

// lists reads a column of lists of float32 or float64, row by row, a page at a time. Memory:
// that of two pages.
type lists struct {
	column
	group int // row group that is open
	row   int // the next row of the file
	end   int // row behind the group
	pages parquet.Pages
	page  parquet.Page

	// What is left of the page.
	repetition, definition []byte
	narrow                 []float32
	wide                   []float64
	indices                []int32 // into narrow or wide, which are a dictionary; nil: plain
}

func newLists(c *column) *lists { return &lists{column: *c, group: -1} }

func (l *lists) close() {
	l.release()
	if l.pages != nil {
		l.pages.Close()
		l.pages = nil
	}
}

func (l *lists) release() {
	if l.page != nil {
		parquet.Release(l.page)
	}
	l.page, l.repetition, l.definition, l.narrow, l.wide, l.indices = nil, nil, nil, nil, nil, nil
}

// open begins a row group.
func (l *lists) open(group int) {
	l.close()
	l.group, l.row = group, 0
	for i := range group {
		l.row += int(l.file.GroupRows(i))
	}
	l.end = l.row + int(l.file.GroupRows(group))
	l.pages = l.file.Pages(group, l.index)
}

// find opens the row group of a row, unless the next row is that row or one before it in the
// group.
func (l *lists) find(row int) {
	if l.group >= 0 && row >= l.row && row < l.end {
		return
	}
	group, end := 0, int(l.file.GroupRows(0))
	for row >= end {
		group++
		end += int(l.file.GroupRows(group))
	}
	l.open(group)
}

// next appends the list of the next row to dst; a null list has no element. A list of more
// than most elements, or with a null among them, is an error; the following call reads the
// row behind. Without keep, the row is passed over.
func (l *lists) next(dst []float32, most int, keep bool) (list []float32, err error) {
	err = parquetfile.Guard(func() (err error) {
		list, err = l.read(dst, most, keep)
		return err
	})
	return list, err
}

func (l *lists) read(dst []float32, most int, keep bool) ([]float32, error) {
	var bad error
	begin := len(dst)
	for first := true; ; first = false {
		if len(l.repetition) == 0 {
			if err := l.load(); err == io.EOF && !first {
				break
			} else if err == io.EOF {
				return dst, errors.New("the column ends before its row group")
			} else if err != nil {
				return dst, err
			}
		}
		if first != (l.repetition[0] == 0) {
			if first {
				return dst, errors.New("a list begins in its middle")
			}
			break
		}
		n := len(l.repetition)
		if next := bytes.IndexByte(l.repetition[1:], 0); next >= 0 {
			n = next + 1
		}
		levels := l.definition[:n]
		there := bytes.Count(levels, []byte{byte(l.present)})
		switch {
		case there < n && (n > 1 || !first || int(levels[0]) >= l.element):
			bad = errors.New("the list has a null")
		case keep && len(dst)-begin+there > most:
			bad = fmt.Errorf("the list has more than the %d values of its shape", most)
		case keep && bad == nil:
			dst = l.values(dst, there)
		}
		if err := l.drop(n, there); err != nil {
			return dst, err
		}
	}
	l.row++
	return dst, bad
}

// values appends the next n values.
func (l *lists) values(dst []float32, n int) []float32 {
	switch {
	case l.indices != nil && l.wide != nil:
		for _, i := range l.indices[:n] {
			dst = append(dst, float32(l.wide[i]))
		}
	case l.indices != nil:
		for _, i := range l.indices[:n] {
			dst = append(dst, l.narrow[i])
		}
	case l.wide != nil:
		for _, v := range l.wide[:n] {
			dst = append(dst, float32(v))
		}
	default:
		dst = append(dst, l.narrow[:n]...)
	}
	return dst
}

// drop moves behind n levels and their values.
func (l *lists) drop(n, values int) error {
	l.repetition, l.definition = l.repetition[n:], l.definition[n:]
	switch {
	case l.indices != nil && values <= len(l.indices):
		l.indices = l.indices[values:]
	case l.indices == nil && l.wide != nil && values <= len(l.wide):
		l.wide = l.wide[values:]
	case l.indices == nil && l.wide == nil && values <= len(l.narrow):
		l.narrow = l.narrow[values:]
	default:
		return errors.New("a page has fewer values than levels")
	}
	return nil
}

// load reads the next page that has a value. io.EOF: the row group has none.
func (l *lists) load() error {
	for len(l.repetition) == 0 {
		l.release()
		if l.pages == nil {
			return io.EOF
		}
		page, err := l.pages.ReadPage()
		if err != nil {
			return err
		}
		l.page = page
		l.repetition, l.definition = page.RepetitionLevels(), page.DefinitionLevels()
		if len(l.repetition) != len(l.definition) {
			return errors.New("a page has not as many levels of one kind as of the other")
		}
		data := page.Data()
		if dictionary := page.Dictionary(); dictionary != nil {
			l.indices = data.Int32()
			if l.indices == nil {
				l.indices = []int32{}
			}
			data = dictionary.Page().Data()
		}
		if l.kind == parquet.Double {
			l.wide = data.Double()
		} else {
			l.narrow = data.Float()
		}
	}
	return nil
}
