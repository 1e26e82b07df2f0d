package rig

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// portion is what one file has of one frame, one sequence or one refused record.
type portion struct {
	hash   uint64 // folder keys and all columns that are compared
	folder uint64 // folder keys alone
	row    int64  // first row of the portion in its file
	frame  int64  // frame_id; without such a column the offset
	rows   int32
	file   int32
	index  int32
}

// portions are those of a table of an output, in the order of the files' names.
type portions struct {
	out, table string
	columns    string // names of those that are compared
	leaveOut   []string
	files      []string // relative to out
	all        []portion
	rows       int64
}

// seed of all hashes of a process.
var seed = maphash.MakeSeed()

// readPortions reads a table of an output; a table without files has no portions.
func readPortions(out, table string, leaveOut []string) (*portions, error) {
	p := &portions{out: out, table: table, leaveOut: leaveOut}
	err := filepath.WalkDir(filepath.Join(out, table), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".parquet" {
			name, relErr := filepath.Rel(out, path)
			p.files, err = append(p.files, name), relErr
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(p.files)
	for i, name := range p.files {
		if err := p.readFile(int32(i), name); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(out, name), err)
		}
	}
	return p, nil
}

func (p *portions) readFile(number int32, name string) error {
	f, closeFile, err := openParquet(filepath.Join(p.out, name))
	if err != nil {
		return err
	}
	defer closeFile()
	var names []string
	for _, column := range f.Schema().Columns() {
		if name := strings.Join(column, "."); !slices.Contains(p.leaveOut, name) {
			names = append(names, name)
		}
	}
	if columns := strings.Join(names, " "); p.columns == "" {
		p.columns = columns
	} else if p.columns != columns {
		return fmt.Errorf("its columns are %s, those of other files %s", columns, p.columns)
	}
	folder := p.folder(name)
	first := int64(0)
	for _, group := range f.RowGroups() {
		from := len(p.all)
		if err := p.cut(f, group, portion{file: number, folder: folder, hash: folder, row: first}); err != nil {
			return err
		}
		if err := p.hash(f, group, p.all[from:]); err != nil {
			return err
		}
		first += group.NumRows()
	}
	p.rows += first
	return nil
}

// folder returns the hash of the folder keys of a file that are compared.
func (p *portions) folder(name string) uint64 {
	var keys []string
	for _, part := range strings.Split(filepath.ToSlash(filepath.Dir(name)), "/")[1:] {
		if key, _, _ := strings.Cut(part, "="); !slices.Contains(p.leaveOut, key) {
			keys = append(keys, part)
		}
	}
	return maphash.String(seed, strings.Join(keys, "/"))
}

// cut appends the portions of a row group, without hashes of rows: rows that follow each other
// and have the same place.
func (p *portions) cut(f *parquet.File, group parquet.RowGroup, begin portion) error {
	var keys [3][]int64
	for i, name := range []string{"partition", "offset", "index"} {
		if _, ok := f.Schema().Lookup(name); !ok && name == "index" { // a row of messages is a whole message
			keys[i] = make([]int64, len(keys[0]))
			continue
		}
		err := eachValue(f, group, name, func(v parquet.Value) { keys[i] = append(keys[i], integer(v)) })
		if err != nil {
			return err
		}
	}
	frames := keys[1]
	if _, ok := f.Schema().Lookup("frame_id"); ok {
		frames = nil
		err := eachValue(f, group, "frame_id", func(v parquet.Value) { frames = append(frames, integer(v)) })
		if err != nil {
			return err
		}
	}
	first := begin.row
	for i := range keys[0] {
		if i > 0 && keys[0][i] == keys[0][i-1] && keys[1][i] == keys[1][i-1] && keys[2][i] == keys[2][i-1] {
			p.all[len(p.all)-1].rows++
			continue
		}
		begin.row, begin.frame, begin.rows, begin.index = first+int64(i), frames[i], 1, int32(keys[2][i])
		p.all = append(p.all, begin)
	}
	return nil
}

// hash adds the columns of a row group to the hashes of its portions.
func (p *portions) hash(f *parquet.File, group parquet.RowGroup, all []portion) error {
	for number, name := range strings.Split(p.columns, " ") {
		var h maphash.Hash
		h.SetSeed(seed)
		at, left := 0, int32(0) // portion, and its rows that are still to come
		if len(all) > 0 {
			left = all[0].rows
		}
		end := func() {
			all[at].hash = all[at].hash*0x9e3779b97f4a7c15 + h.Sum64() + uint64(number)
			h.Reset()
		}
		err := eachValue(f, group, name, func(v parquet.Value) {
			if v.RepetitionLevel() == 0 {
				if left == 0 {
					end()
					at++
					left = all[at].rows
				}
				left--
			}
			appendValue(&h, v)
		})
		if err != nil {
			return err
		}
		if len(all) > 0 {
			end()
		}
	}
	return nil
}

// appendValue adds levels and value to a hash. Numbers of one value are equal in any width.
func appendValue(h *maphash.Hash, v parquet.Value) {
	var b [10]byte
	b[0], b[1] = byte(v.RepetitionLevel()), byte(v.DefinitionLevel())
	switch v.Kind() {
	case parquet.Float:
		binary.LittleEndian.PutUint64(b[2:], math.Float64bits(float64(v.Float())))
	case parquet.Double:
		binary.LittleEndian.PutUint64(b[2:], math.Float64bits(v.Double()))
	case parquet.Int32, parquet.Int64, parquet.Boolean:
		binary.LittleEndian.PutUint64(b[2:], uint64(integer(v)))
	case parquet.ByteArray, parquet.FixedLenByteArray:
		binary.LittleEndian.PutUint64(b[2:], uint64(len(v.ByteArray())))
		h.Write(b[:])
		h.Write(v.ByteArray())
		return
	default: // null
		b[2] = 1
		h.Write(b[:3])
		return
	}
	h.Write(b[:])
}

func integer(v parquet.Value) int64 {
	switch v.Kind() {
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.Boolean:
		if v.Boolean() {
			return 1
		}
		return 0
	}
	return v.Int64()
}

// eachValue calls f with each value of a column of a row group. The value is valid during the
// call.
func eachValue(file *parquet.File, group parquet.RowGroup, name string, f func(parquet.Value)) error {
	leaf, ok := file.Schema().Lookup(strings.Split(name, ".")...)
	if !ok {
		return fmt.Errorf("no column %s", name)
	}
	pages := group.ColumnChunks()[leaf.ColumnIndex].Pages()
	defer pages.Close()
	buffer := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		values := page.Values()
		for {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				f(v)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("column %s: %w", name, err)
			}
		}
		parquet.Release(page)
	}
}

// read returns the rows of a portion, columns that are not compared left out.
func (p *portions) read(of *portion) ([]row, error) {
	path := filepath.Join(p.out, p.files[of.file])
	f, closeFile, err := openParquet(path)
	if err != nil {
		return nil, err
	}
	defer closeFile()
	columns := f.Schema().Columns()
	reader := parquet.NewGenericReader[any](f)
	defer reader.Close()
	if err := reader.SeekToRow(of.row); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var rows []row
	for one := make([]parquet.Row, 1); len(rows) < int(of.rows); {
		n, err := reader.ReadRows(one)
		if n == 0 {
			return rows, fmt.Errorf("%s: %d of %d rows: %w", path, len(rows), of.rows, err)
		}
		r := row{}
		for _, v := range one[0] {
			if name := strings.Join(columns[v.Column()], "."); !slices.Contains(p.leaveOut, name) {
				if r[name] != "" {
					r[name] += " "
				}
				r[name] += text(v)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// text returns a value in a form that tells different values apart.
func text(v parquet.Value) string {
	switch v.Kind() {
	case parquet.Float:
		return fmt.Sprint(float64(v.Float()))
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return fmt.Sprintf("%q", v.ByteArray())
	}
	return v.String()
}

// where names a portion for people.
func (p *portions) where(of *portion) string {
	return fmt.Sprintf("%s frame_id %d index %d", filepath.Join(p.out, p.files[of.file]), of.frame, of.index)
}

func openParquet(path string) (*parquet.File, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil {
		var file *parquet.File
		file, err = parquet.OpenFile(f, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		if err == nil {
			return file, f.Close, nil
		}
	}
	f.Close()
	return nil, nil, err
}
