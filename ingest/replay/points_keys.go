package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
)

// keyValue is a value of a column by which rows are grouped.
type keyValue struct {
	kind   keyKind
	number int64 // an integer, or the bits of a float
	text   string
}

type keyKind uint8

const (
	nullKey keyKind = iota
	integerKey
	floatKey
	textKey
)

// String writes the value as errors name it.
func (k keyValue) String() string {
	switch k.kind {
	case integerKey:
		return strconv.FormatInt(k.number, 10)
	case floatKey:
		return strconv.FormatFloat(math.Float64frombits(uint64(k.number)), 'g', -1, 64)
	case textKey:
		return k.text
	}
	return "null"
}

// keyColumn is a column by which rows are grouped, in the file that is read, or the same value for
// all rows: that of a folder.
type keyColumn struct {
	name   string
	folder *keyValue // nil: a column of the file
	reader leafReader
	now    keyValue // value of the row that was read last
}

// at returns the value of row 0 of v. old saves the memory of an equal text.
func (c *keyColumn) first(v *leafValues) keyValue {
	if v.levels != nil && v.levels[0] != 1 || v.some() == 0 {
		return keyValue{}
	}
	k := 0
	if v.index != nil {
		k = int(v.index[0])
	}
	switch {
	case v.f32 != nil:
		return keyValue{kind: floatKey, number: int64(math.Float64bits(float64(v.f32[k])))}
	case v.f64 != nil:
		return keyValue{kind: floatKey, number: int64(math.Float64bits(v.f64[k]))}
	case v.i32 != nil && c.reader.leaf.unsigned:
		return keyValue{kind: integerKey, number: int64(uint32(v.i32[k]))}
	case v.i32 != nil:
		return keyValue{kind: integerKey, number: int64(v.i32[k])}
	case v.i64 != nil:
		return keyValue{kind: integerKey, number: v.i64[k]}
	}
	text := v.text(0)
	if c.now.kind == textKey && string(text) == c.now.text {
		return c.now
	}
	return keyValue{kind: textKey, text: string(text)}
}

// run returns how many rows v begins with that equal its row 0.
func (c *keyColumn) run(v *leafValues) int {
	n := v.rows
	if v.levels != nil {
		if v.levels[0] != 1 {
			if i := bytes.IndexByte(v.levels, 1); i >= 0 {
				n = i
			}
			return n
		}
		n = bytes.IndexByte(v.levels, 0)
		if n < 0 {
			n = v.rows
		}
	}
	switch {
	case v.some() == 0:
		return v.rows
	case v.index != nil:
		return c.runOfIndex(v, n)
	case v.f32 != nil:
		return equalRun(v.f32[:n], func(f float32) uint32 { return math.Float32bits(f) })
	case v.f64 != nil:
		return equalRun(v.f64[:n], func(f float64) uint64 { return math.Float64bits(f) })
	case v.i32 != nil:
		return leading(v.i32[:n])
	case v.i64 != nil:
		return leading(v.i64[:n])
	}
	for i := 1; i < n; i++ {
		if !bytes.Equal(v.text(i), v.text(0)) {
			return i
		}
	}
	return n
}

// runOfIndex is run for values of a dictionary, which may hold a value twice: the rows are then two
// runs of one group.
func (c *keyColumn) runOfIndex(v *leafValues, n int) int { return leading(v.index[:n]) }

// leading returns how many elements v begins with that are equal.
func leading[T int32 | int64](v []T) int {
	first, i := v[0], 1
	for ; i+8 <= len(v); i += 8 {
		w := v[i : i+8 : i+8]
		if (w[0]^first)|(w[1]^first)|(w[2]^first)|(w[3]^first)|
			(w[4]^first)|(w[5]^first)|(w[6]^first)|(w[7]^first) != 0 {
			break
		}
	}
	for i < len(v) && v[i] == first {
		i++
	}
	return i
}

// equalRun is leading for floats, compared by their bits: NaN equals itself.
func equalRun[F float32 | float64, B uint32 | uint64](v []F, bits func(F) B) int {
	i := 1
	for i < len(v) && bits(v[i]) == bits(v[0]) {
		i++
	}
	return i
}

// keyScanner reads columns of keys, and only these, in the order of rows.
type keyScanner struct {
	files   *pointFiles
	names   []string
	folders map[string]string // values of folders, by name
	keys    []keyColumn

	file, group int
	row         int64
	table       *sharedTable
	fresh       bool // the next row begins a group, whatever its keys
}

// start goes to a row group. The next row begins a group.
func (s *keyScanner) start(file, group int) {
	s.close()
	s.file, s.group, s.row, s.fresh = file, group, 0, true
}

func (s *keyScanner) close() {
	for i := range s.keys {
		s.keys[i].reader.close()
	}
	s.files.release(s.table)
	s.table = nil
}

// nextFile leaves the rest of the file out.
func (s *keyScanner) nextFile() { s.start(s.file+1, 0) }

// next returns the next rows of one row group that have the same keys. changed: the keys are not
// those of the rows before. io.EOF: there is no further row. After a *BadInputError the caller
// goes to the next file.
func (s *keyScanner) next() (span rowSpan, changed bool, err error) {
	for {
		if s.file == len(s.files.paths) {
			return span, false, io.EOF
		}
		if s.table == nil {
			if err := s.open(); err != nil {
				return span, false, err
			}
		}
		if s.group == s.table.file.RowGroups() {
			fresh := s.fresh
			s.nextFile()
			s.fresh = fresh
			continue
		}
		if s.row < s.table.file.GroupRows(s.group) {
			break
		}
		s.group, s.row = s.group+1, 0
	}
	n := int64(0)
	err = parquetfile.Guard(func() (err error) {
		n, changed, err = s.take()
		return err
	})
	if err != nil {
		return span, false, s.files.bad(s.file, err)
	}
	span = rowSpan{s.file, s.group, s.row, n}
	s.row += n
	changed = changed || s.fresh
	s.fresh = false
	return span, changed, nil
}

// take reads rows with equal keys, and returns their number.
func (s *keyScanner) take() (n int64, changed bool, err error) {
	n = s.table.file.GroupRows(s.group) - s.row
	for i := range s.keys {
		c := &s.keys[i]
		if c.folder != nil {
			changed = changed || c.now != *c.folder
			c.now = *c.folder
			continue
		}
		err := c.reader.seek(s.group, s.row)
		var v *leafValues
		if err == nil {
			v, err = c.reader.peek()
		}
		if err != nil {
			return 0, false, fmt.Errorf("column %s: %w", c.name, err)
		}
		if k := c.first(v); k != c.now {
			changed, c.now = true, k
		}
		n = min(n, int64(c.run(v)))
	}
	for i := range s.keys {
		if s.keys[i].folder == nil {
			s.keys[i].reader.cut(int(n))
		}
	}
	return n, changed, nil
}

// open opens the file and finds the columns.
func (s *keyScanner) open() (err error) {
	if s.table, err = s.files.acquire(s.file); err != nil {
		return err
	}
	if s.keys == nil {
		s.keys = make([]keyColumn, len(s.names))
	}
	for i, name := range s.names {
		c := &s.keys[i]
		c.name, c.folder = name, nil
		at, ok := s.table.names[name]
		if !ok {
			if at = findColumn(s.table.columns, name); at >= 0 {
				ok = true
			}
		}
		value, inPath := s.folders[name]
		switch {
		case ok && s.table.leaves[at].index < 0:
			return s.files.bad(s.file, fmt.Errorf("column %s is %s; rows are grouped by integers, texts and floats",
				name,
				s.table.columns[at].Type))
		case ok && !isKey(s.table.leaves[at].kind):
			return s.files.bad(s.file, fmt.Errorf("column %s is %s; rows are grouped by integers, texts and floats",
				name,
				s.table.columns[at].Type))
		case ok:
			c.reader = leafReader{file: s.table.file, leaf: &s.table.leaves[at]}
		case inPath:
			k := keyValue{kind: textKey, text: value}
			c.folder = &k
		default:
			return s.files.bad(s.file, fmt.Errorf("there is no column %s to group by; the columns are %s", name,
				listColumns(s.table.columns)))
		}
	}
	return nil
}

func isKey(k parquet.Kind) bool { return k != parquet.Boolean && k != parquet.Int96 }

// keysOf copies the keys of the rows that were read last.
func (s *keyScanner) keysOf(dst []keyValue) []keyValue {
	dst = dst[:0]
	for i := range s.keys {
		dst = append(dst, s.keys[i].now)
	}
	return dst
}

// pointGroup are the rows of a group.
type pointGroup struct {
	spans []rowSpan // not all of them if there are too many rows
	rows  int64
	keys  []keyValue
}

// groupScanner finds the groups of rows with equal keys.
type groupScanner struct {
	keyScanner
	most    int64 // rows of a group whose spans are kept
	order   *groupOrder
	pending rowSpan // first rows of the next group; no rows: none
}

// restart goes to a row group, whose first row begins a group.
func (s *groupScanner) restart(file, group int) {
	s.start(file, group)
	s.pending = rowSpan{}
}

// next sets g to the next group. After a *BadInputError, next continues behind the damaged file;
// any other error ends the reading, and io.EOF says that there is no further group.
func (s *groupScanner) next(g *pointGroup) error {
	g.spans, g.rows = g.spans[:0], 0
	for {
		span, changed := s.pending, true
		if s.pending.n == 0 {
			var err error
			span, changed, err = s.keyScanner.next()
			if err == io.EOF && g.rows > 0 {
				return nil
			}
			if err != nil && err != io.EOF {
				fresh := s.fresh
				s.nextFile()
				s.fresh = fresh
			}
			if err != nil {
				return err
			}
			if !changed && g.rows == 0 {
				continue // the rest of a group that a damaged file began
			}
		}
		if changed && g.rows > 0 {
			s.pending = span
			return nil
		}
		s.pending = rowSpan{}
		if g.rows == 0 {
			g.keys = s.keysOf(g.keys)
			if err := s.order.add(s.names, g.keys); err != nil {
				return s.outOfOrder(err)
			}
		}
		g.add(span, s.most)
	}
}

func (s *groupScanner) outOfOrder(err error) error {
	return fmt.Errorf("%s, row group %d: %w", s.files.paths[min(s.file, len(s.files.paths)-1)], s.group, err)
}

// add adds rows to the group.
func (g *pointGroup) add(span rowSpan, most int64) {
	g.rows += span.n
	switch n := len(g.spans); {
	case n > 0 && g.spans[n-1].joins(span):
		g.spans[n-1].n += span.n
	case g.rows <= most || n == 0:
		g.spans = append(g.spans, span)
	}
}

// checkKeys returns an error for names that cannot be columns to group by.
func checkKeys(names []string) error {
	for i, name := range names {
		if strings.TrimSpace(name) == "" || slices.Contains(names[:i], name) {
			return fmt.Errorf("group by %q: name columns, each once, or file, or row-group", strings.Join(names, ","))
		}
	}
	return nil
}

// hasColumns reports whether all names are columns of integers.
func hasColumns(columns []schemas.TableColumn, names ...string) bool {
	for _, name := range names {
		i := findColumn(columns, name)
		if i < 0 || columns[i].Name != name || !columns[i].Integer {
			return false
		}
	}
	return true
}

// compare orders values: null, then numbers, then texts.
func (k *keyValue) compare(other *keyValue) int {
	if k.kind != other.kind {
		return cmp.Compare(k.kind, other.kind)
	}
	switch k.kind {
	case floatKey:
		return cmp.Compare(math.Float64frombits(uint64(k.number)), math.Float64frombits(uint64(other.number)))
	case textKey:
		return strings.Compare(k.text, other.text)
	}
	return cmp.Compare(k.number, other.number)
}
