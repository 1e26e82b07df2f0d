package replay

import (
	"fmt"
	"math"

	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
)

// pointFiles are the files of one folder. Two readers may have a file open at the same time: one
// looks for groups in columns of keys, and one reads the points of a group.
type pointFiles struct {
	paths []string
	open  map[int]*sharedTable
}

// sharedTable is an open file with the number of its users.
type sharedTable struct {
	*parquetTable
	at, users int
	names     map[string]int // position of a column
}

// acquire opens file number at, or shares it. The error is a *BadInputError.
func (p *pointFiles) acquire(at int) (*sharedTable, error) {
	if t := p.open[at]; t != nil {
		t.users++
		return t, nil
	}
	opened, err := openParquetFile(p.paths[at])
	if err != nil {
		return nil, err
	}
	t := &sharedTable{parquetTable: opened, at: at, users: 1, names: map[string]int{}}
	for i, c := range t.columns {
		if _, twice := t.names[c.Name]; !twice {
			t.names[c.Name] = i
		}
	}
	if p.open == nil {
		p.open = map[int]*sharedTable{}
	}
	p.open[at] = t
	return t, nil
}

// release ends a use of t, which may be nil.
func (p *pointFiles) release(t *sharedTable) {
	if t == nil {
		return
	}
	if t.users--; t.users == 0 {
		delete(p.open, t.at)
		t.close()
	}
}

// bad returns err as one of file number at.
func (p *pointFiles) bad(at int, err error) *BadInputError {
	return &BadInputError{File: p.paths[at], Detail: err.Error(), Err: err}
}

// rowSpan are neighbouring rows of one row group.
type rowSpan struct {
	file, group int
	row, n      int64
}

// joins tells whether b continues a.
func (a *rowSpan) joins(b rowSpan) bool {
	return a.file == b.file && a.group == b.group && a.row+a.n == b.row
}

// mostOpen is the number of files that a groupTable keeps open for one group.
const mostOpen = 16

// groupTable is a columnTable of the rows of spans. Its readers go forward from group to group.
type groupTable struct {
	files   *pointFiles
	open    map[int]*openColumns // by file
	spans   []rowSpan
	rows    int
	columns []schemas.TableColumn
	failed  int  // file of the last error
	some    bool // the column that was read last has a value
}

// openColumns are the readers of one file, by column.
type openColumns struct {
	table   *sharedTable
	readers []leafReader
}

func (o *openColumns) close(p *pointFiles) {
	for i := range o.readers {
		o.readers[i].close()
	}
	p.release(o.table)
}

// set makes t the table of spans, which must lie behind those of the last call, or begin a new
// reading. skip are the names of columns that hold keys and nothing of a point.
func (t *groupTable) set(spans []rowSpan, skip map[string]bool) error {
	t.spans, t.rows, t.columns = spans, 0, t.columns[:0]
	for at, o := range t.open {
		if at != spans[0].file {
			o.close(t.files)
			delete(t.open, at)
		}
	}
	last := -1
	for _, s := range spans {
		t.rows += int(s.n)
		if s.file == last {
			continue
		}
		o, err := t.columnsOf(s.file)
		if err != nil {
			return err
		}
		t.merge(o.table.columns, last < 0, skip)
		last = s.file
		t.thin(s.file)
	}
	return nil
}

// merge adds the columns of a further file: a column is a number, or an integer, if it is one in
// every file, and wide if it is wide in one.
func (t *groupTable) merge(columns []schemas.TableColumn, first bool, skip map[string]bool) {
	if first {
		for _, c := range columns {
			if !skip[c.Name] {
				t.columns = append(t.columns, c)
			}
		}
		return
	}
	for _, c := range columns {
		if i := findColumn(t.columns, c.Name); i >= 0 && t.columns[i].Name == c.Name {
			is := &t.columns[i]
			is.Number, is.Integer = is.Number && c.Number, is.Integer && c.Integer
			is.Wide = is.Wide || c.Wide
		}
	}
}

// columnsOf returns the readers of a file.
func (t *groupTable) columnsOf(file int) (*openColumns, error) {
	if o := t.open[file]; o != nil {
		return o, nil
	}
	t.failed = file
	table, err := t.files.acquire(file)
	if err != nil {
		return nil, err
	}
	o := &openColumns{table: table, readers: make([]leafReader, len(table.columns))}
	for i := range o.readers {
		o.readers[i] = leafReader{file: table.file, leaf: &table.leaves[i]}
	}
	if t.open == nil {
		t.open = map[int]*openColumns{}
	}
	t.open[file] = o
	return o, nil
}

// thin closes a file where too many are open.
func (t *groupTable) thin(file int) {
	if len(t.open) > mostOpen {
		t.open[file].close(t.files)
		delete(t.open, file)
	}
}

func (t *groupTable) close() {
	for at, o := range t.open {
		o.close(t.files)
		delete(t.open, at)
	}
}

// Rows returns the number of rows of the spans.
func (t *groupTable) Rows() int { return t.rows }

// Columns returns the columns of the first file.
func (t *groupTable) Columns() []schemas.TableColumn { return t.columns }

// absent reports whether the column that was read last is null in every row. The values that were
// returned are then undefined.
func (t *groupTable) absent() bool { return !t.some }

// Float32s implements columnTable. Null is NaN.
func (t *groupTable) Float32s(i int, dst []float32) ([]float32, error) {
	return readSpans(t, i, dst, float32(math.NaN()))
}

// Float64s implements columnTable. An integer that float64 does not hold is an error.
func (t *groupTable) Float64s(i int, dst []float64) ([]float64, error) {
	return readSpans(t, i, dst, math.NaN())
}

// Int64s implements columnTable.
func (t *groupTable) Int64s(i int, dst []int64) ([]int64, error) {
	return readSpans(t, i, dst, math.MinInt64)
}

// readSpans fills dst, or new memory, with the values of column i in all spans.
func readSpans[T number](t *groupTable, i int, dst []T, null T) ([]T, error) {
	dst = resize(dst, t.rows)
	t.some = false
	name, at := t.columns[i].Name, 0
	for _, s := range t.spans {
		o, err := t.columnsOf(s.file)
		if err != nil {
			return nil, err
		}
		t.failed = s.file
		k, ok := o.table.names[name]
		if !ok {
			return nil, fmt.Errorf("there is no column %s, as in %s", name, t.files.paths[t.spans[0].file])
		}
		if err := o.table.isNumber(k); err != nil {
			return nil, err
		}
		if err := readSpan(t, &o.readers[k], s, dst, at, null); err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		at += int(s.n)
		t.thin(s.file)
	}
	return dst, nil
}

// readSpan fills dst from at on. Leading rows without a value cost nothing until there is a value.
func readSpan[T number](t *groupTable, r *leafReader, s rowSpan, dst []T, at int, null T) error {
	return parquetfile.Guard(func() error {
		if err := r.seek(s.group, s.row); err != nil {
			return err
		}
		for end := at + int(s.n); at < end; {
			v, err := r.peek()
			if err != nil {
				return err
			}
			head := r.cut(min(v.rows, end-at))
			if !t.some && head.some() > 0 {
				t.some = true
				for k := range dst[:at] {
					dst[k] = null
				}
			}
			if t.some {
				if bad, err := convert(dst[at:][:head.rows], &head, r.leaf, null); err != nil {
					return fmt.Errorf("row %d of row group %d: %w", r.row-int64(head.rows-bad), s.group, err)
				}
			}
			at += head.rows
		}
		return nil
	})
}
