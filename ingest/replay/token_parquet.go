package replay

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"entropipe/ingest/filesys"
	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
)

// parquetRows reads the columns id, input_ids and attention_mask, or id and
// text, of a Parquet file: row group by row group, and of each column a page at a
// time. Lists may be encoded in any of the ways that writers have had for them,
// because only the levels of the one column in them count.
type parquetRows struct {
	name   string
	f      filesys.File
	file   *parquetfile.File
	group  int   // the next row group
	left   int64 // rows of the one before it
	number int64 // number of the last row in the file, from 1
	id     *parquetColumn
	ids    *parquetColumn // nil: texts
	mask   *parquetColumn
	text   *parquetColumn
	list   []int64 // elements of the row's list
	ones   []int64
}

// openParquetRows reads the footer.
func openParquetRows(name string) (*parquetRows, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, err
	}
	p := &parquetRows{name: name, f: f}
	if err = p.open(); err == nil {
		err = p.columns()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return p, nil
}

func (p *parquetRows) open() error {
	info, err := p.f.Stat()
	if err != nil {
		return err
	}
	return p.guard(func() error {
		p.file, err = parquetfile.Open(p.f, info.Size())
		return err
	})
}

// guard turns a panic of f into an error, and names the file. io.EOF stays.
func (p *parquetRows) guard(f func() error) error {
	err := parquetfile.Guard(f)
	var named *parquetfile.FormatError
	switch {
	case err == nil || err == io.EOF:
		return err
	case !errors.As(err, &named):
		err = &parquetfile.FormatError{Err: err}
	}
	return fmt.Errorf("%s: %w", p.name, err)
}

// columns finds the columns by name; the exact one goes before one in other
// letters.
func (p *parquetRows) columns() (err error) {
	find := func(name string, isList, orNumber bool) *parquetColumn {
		c, problem := p.column(name, isList, orNumber)
		if problem != nil && err == nil {
			err = problem
		}
		return c
	}
	p.ids = find("input_ids", true, true)
	if p.id = find("id", false, true); p.ids == nil {
		p.text = find("text", false, false)
	} else {
		p.mask = find("attention_mask", true, true)
	}
	if err == nil && p.ids == nil && p.text == nil {
		var names []string
		for _, f := range p.file.Root().Columns() {
			names = append(names, f.Name())
		}
		err = fmt.Errorf("%s: there is neither a column input_ids nor text; the columns are %.200q", p.name, names)
	}
	return err
}

// column returns the column of that name, nil if there is none.
func (p *parquetRows) column(name string, isList, number bool) (*parquetColumn, error) {
	var found *parquet.Column
	for _, c := range p.file.Root().Columns() {
		if c.Name() == name || found == nil && strings.EqualFold(c.Name(), name) {
			found = c
		}
	}
	if found == nil {
		return nil, nil
	}
	leaf, level := found, 0
	bad := func(want string) error {
		is := found.Type().String()
		if leaf != found {
			is += " of " + leaf.Type().String()
		}
		return fmt.Errorf("%s: column %s is %s; it must be %s", p.name, found.Name(), is, want)
	}
	c := &parquetColumn{}
	for {
		switch {
		case leaf.Repeated() && c.list:
			return nil, bad("a list of integers, not of lists")
		case leaf.Repeated():
			c.list = true
			level++
			c.element = level
		case leaf.Optional():
			level++
		}
		if leaf.Leaf() {
			break
		}
		if len(leaf.Columns()) != 1 {
			return nil, bad("a list of integers or a plain column, not a group")
		}
		leaf = leaf.Columns()[0]
	}
	c.index, c.present = leaf.Index(), level
	kind := leaf.Type().Kind()
	c.text = kind == parquet.ByteArray
	isInteger := kind == parquet.Int32 || kind == parquet.Int64
	if logical := leaf.Type().LogicalType(); logical != nil && isInteger {
		var as *format.IntType // other types are dates, times and decimals
		as, isInteger = logical.Value.(*format.IntType)
		c.unsigned = isInteger && !as.IsSigned
	}
	switch {
	case isList && (!c.list || !isInteger && (name != "attention_mask" || kind != parquet.Boolean)):
		return nil, bad("a list of integers")
	case !isList && number && (c.list || !c.text && !isInteger):
		return nil, bad("text or integers")
	case !isList && !number && (c.list || !c.text):
		return nil, bad("text")
	}
	return c, nil
}

func (p *parquetRows) all() []*parquetColumn { return []*parquetColumn{p.id, p.ids, p.mask, p.text} }

func (p *parquetRows) close() error {
	for _, c := range p.all() {
		c.close()
	}
	return p.f.Close()
}

func (p *parquetRows) next(s *schemas.Sequence) error {
	for p.left == 0 {
		if p.group == p.file.RowGroups() {
			return io.EOF
		}
		p.left = p.file.GroupRows(p.group)
		for _, c := range p.all() {
			c.open(p.file, p.group)
		}
		p.group++
	}
	p.left--
	p.number++
	var bad error
	err := p.guard(func() (err error) {
		bad, err = p.read(s)
		if err == io.EOF {
			err = errors.New("a column ends before its row group")
		}
		return err
	})
	if err == nil && bad != nil {
		return &BadInputError{File: p.name, Detail: fmt.Sprintf("row %d: %v", p.number, bad)}
	}
	return err
}

// read reads the row in every column, whatever is wrong in one. bad is what is
// wrong with the row, err what is wrong with the file.
func (p *parquetRows) read(s *schemas.Sequence) (bad, err error) {
	s.ID = rowName(p.name, int(p.number))
	if p.id != nil {
		if bad, err = p.readID(s); err != nil {
			return nil, err
		}
	}
	if p.text != nil {
		text, ok, err := p.text.one()
		switch {
		case err != nil:
			return nil, err
		case bad != nil:
		case !ok:
			bad = errors.New("text is null")
		case !utf8.Valid(text.ByteArray()):
			bad = errors.New("text is not UTF-8")
		default:
			s.Text, s.IsText = string(text.ByteArray()), true
		}
		return bad, nil
	}
	var badIDs, badMask error
	if p.list, badIDs, err = p.ids.integers(p.list[:0]); err != nil {
		return nil, err
	}
	if badIDs != nil {
		badIDs = fmt.Errorf("input_ids: %w", badIDs)
	}
	ones := []int64(nil)
	if p.mask != nil {
		if p.ones, badMask, err = p.mask.integers(p.ones[:0]); err != nil {
			return nil, err
		}
		if ones = p.ones; errors.Is(badMask, errNullList) {
			ones, badMask = nil, nil
		} else if badMask != nil {
			badMask = fmt.Errorf("attention_mask: %w", badMask)
		} else if ones == nil {
			ones = []int64{}
		}
	}
	for _, b := range []error{bad, badIDs, badMask} {
		if b != nil {
			return b, nil
		}
	}
	return fillIDs(s, p.list, ones), nil
}

func (p *parquetRows) readID(s *schemas.Sequence) (bad, err error) {
	v, ok, err := p.id.one()
	switch {
	case err != nil || !ok:
		return nil, err
	case !p.id.text:
		n, fits := p.id.integer(v)
		if !fits {
			return errors.New("id is no int64"), nil
		}
		s.ID = strconv.FormatInt(n, 10)
	case !utf8.Valid(v.ByteArray()):
		return errors.New("id is not UTF-8"), nil
	case len(v.ByteArray()) > 0:
		s.ID = string(v.ByteArray())
	}
	return nil, nil
}
