package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

type compareCmd struct {
	A      string   `arg:"" type:"existingdir" help:"An output."`
	B      string   `arg:"" type:"existingdir" help:"Another one, of the same records."`
	Tables []string `default:"hulls,maxima,triangles" help:"Tables to compare (${default})."`
}

func (c *compareCmd) Run(e *env) error {
	return compareOutputs(c.A, c.B, c.Tables)
}

// compareOutputs compares tables and prints a line for each. Any difference is
// an error.
func compareOutputs(a, b string, tables []string) error {
	var errs []error
	for _, table := range tables {
		d, err := compareTable(a, b, table)
		if err == nil && d.total() > 0 {
			err = fmt.Errorf("%d rows differ, %d of them only in partition or offset; the first: %s", d.total(),
				d.keyOnly, d.first)
		}
		if err == nil && d.rows == 0 {
			err = errors.New("no rows to compare")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of %s and %s: %w", table, a, b, err))
			continue
		}
		fmt.Printf("%s: %d rows identical\n", table, d.rows)
	}
	return errors.Join(errs...)
}

// difference counts the rows of two tables that are not the same.
type difference struct {
	rows    int64 // compared
	keyOnly int64 // differ in nothing but partition and offset
	other   int64
	first   string
}

func (d *difference) total() int64 { return d.keyOnly + d.other }

// compareTable goes through a table of both outputs in step. How the rows are
// cut into files, row groups and pages does not matter; their order does, and is
// that of the files' names and of the rows in them.
func compareTable(a, b, table string) (d difference, err error) {
	ra, err := newTableReader(a, table)
	if err != nil {
		return d, err
	}
	defer ra.close()
	rb, err := newTableReader(b, table)
	if err != nil {
		return d, err
	}
	defer rb.close()
	for {
		x, errA := ra.next()
		y, errB := rb.next()
		if errA == io.EOF && errB == io.EOF {
			return d, nil
		}
		if errA == io.EOF || errB == io.EOF {
			return d, fmt.Errorf("after %d rows one of the two ends", d.rows)
		}
		if err := errors.Join(errA, errB); err != nil {
			return d, err
		}
		d.rows++
		d.compare(x, y, ra.keys)
	}
}

func (d *difference) compare(x, y parquet.Row, keys []int) {
	if x.Equal(y) {
		return
	}
	if d.total() == 0 {
		d.first = fmt.Sprintf("row %d: %+v, %+v", d.rows-1, x, y)
	}
	if withoutKeys(x, keys).Equal(withoutKeys(y, keys)) {
		d.keyOnly++
	} else {
		d.other++
	}
}

func withoutKeys(r parquet.Row, keys []int) parquet.Row {
	return slices.DeleteFunc(slices.Clone(r), func(v parquet.Value) bool { return slices.Contains(keys, v.Column()) })
}

// tableReader reads the rows of all files of a table, one after the other.
type tableReader struct {
	files  []string
	schema string
	keys   []int // columns partition and offset

	path string // path of file
	file *tableFile
	rows *parquet.GenericReader[any]
	buf  []parquet.Row
	n, i int
}

func newTableReader(out, table string) (*tableReader, error) {
	files, err := tableFiles(out, table)
	return &tableReader{files: files, buf: make([]parquet.Row, 512)}, err
}

// next returns the next row, which is valid until the next call.
func (r *tableReader) next() (parquet.Row, error) {
	for r.i >= r.n {
		if r.rows == nil {
			if err := r.open(); err != nil {
				return nil, err
			}
		}
		var err error
		r.n, err = r.rows.ReadRows(r.buf)
		r.i = 0
		if r.n == 0 && errors.Is(err, io.EOF) {
			r.close()
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", r.path, err)
		}
	}
	r.i++
	return r.buf[r.i-1], nil
}

func (r *tableReader) open() error {
	if len(r.files) == 0 {
		return io.EOF
	}
	r.path = r.files[0]
	f, err := openTable(r.path)
	if err != nil {
		return err
	}
	r.files, r.file, r.rows = r.files[1:], f, parquet.NewGenericReader[any](f.File)
	if schema := f.Schema().String(); r.schema == "" {
		r.schema = schema
	} else if schema != r.schema {
		return fmt.Errorf("%s has other columns than the files before", r.path)
	}
	r.keys = r.keys[:0]
	for i, column := range f.Schema().Columns() {
		if column[0] == "partition" || column[0] == "offset" {
			r.keys = append(r.keys, i)
		}
	}
	return nil
}

func (r *tableReader) close() {
	if r.rows != nil {
		r.rows.Close()
		r.file.close()
		r.rows, r.file = nil, nil
	}
}
