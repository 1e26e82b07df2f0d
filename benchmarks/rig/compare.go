package rig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"entropipe/schemas"
	"entropipe/sinks/tables"
)

// Comparison is what CompareOutputs finds. A portion is what one file has of one frame, one
// sequence or one refused record: all rows with the same partition, offset and index.
type Comparison struct {
	Rows    map[string]int64 // rows of each table of the output that is wanted
	Missing int64            // portions that are wanted and not there
	Doubled int64            // portions that are there more often than wanted
	Stray   int64            // portions that are there and not wanted
	First   string           // names the first difference, its table and its columns; empty: there is none
}

// Err returns an error that names the first difference; nil if there is none.
func (c *Comparison) Err() error {
	if c.First == "" {
		return nil
	}
	return fmt.Errorf("%d portions missing, %d doubled, %d stray; the first: %s", c.Missing, c.Doubled, c.Stray,
		c.First)
}

// Places are the columns that say where a record stood, and when it was sent. They differ between
// two ways on which the same records came. The name of the topic is no column, and is compared unless the
// column "topic" is left out.
var Places = []string{"topic", "partition", "offset", "timestamp"}

// times are the columns of table frames that two runs over the same records have different.
var times = func() []string {
	names := []string{"latency_ns"}
	for op := range schemas.NumOps {
		names = append(names, op.String()+"_ns")
	}
	return names
}()

// CompareOutputs compares two outputs row by row, over all tables and columns but times of the
// run and those to leave out. How rows are cut into files, and the order of the portions, do
// not matter; the order of rows within a portion does. A float32 equals the same float64: a
// file has one width for all its frames. Both outputs need memory for each portion, some
// forty bytes. The error is about files that cannot be read.
func CompareOutputs(got, want string, leaveOut ...string) (*Comparison, error) {
	return CompareTables(got, want, tables.Names(), leaveOut...)
}

// CompareTables compares the named tables of two outputs as CompareOutputs compares all.
func CompareTables(got, want string, names []string, leaveOut ...string) (*Comparison, error) {
	c := &Comparison{Rows: map[string]int64{}}
	for _, name := range names {
		left := leaveOut
		if name == tables.Frames {
			left = append(slices.Clone(leaveOut), times...)
		}
		a, errA := readPortions(got, name, left)
		b, errB := readPortions(want, name, left)
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		if b.rows > 0 {
			c.Rows[name] = b.rows
		}
		if err := c.table(a, b); err != nil {
			return nil, err
		}
	}
	if len(c.Rows) == 0 && c.First == "" {
		return nil, fmt.Errorf("%s and %s have no rows to compare", got, want)
	}
	return c, nil
}

// SameOutputs compares two outputs whose rows must be equal, and returns how many rows each
// table has.
func SameOutputs(got, want string, leaveOut ...string) (map[string]int64, error) {
	c, err := CompareOutputs(got, want, leaveOut...)
	if err != nil {
		return nil, err
	}
	if err := c.Err(); err != nil {
		return nil, fmt.Errorf("%s differs from %s: %w", got, want, err)
	}
	return c.Rows, nil
}

// table compares what two outputs have of a table.
func (c *Comparison) table(got, want *portions) error {
	if got.columns != want.columns && got.rows > 0 && want.rows > 0 {
		c.Stray++
		c.First = cmp.Or(c.First, fmt.Sprintf("table %s has columns %s, want %s", want.table, got.columns,
			want.columns))
		return nil
	}
	counts := map[uint64]int{}
	wanted := map[uint64]bool{}
	for i := range want.all {
		counts[want.all[i].hash]++
		wanted[want.all[i].hash] = true
	}
	var extra []*portion
	for i := range got.all {
		p := &got.all[i]
		if counts[p.hash]--; counts[p.hash] >= 0 {
			continue
		}
		extra = append(extra, p)
		if wanted[p.hash] {
			c.Doubled++
		} else {
			c.Stray++
		}
	}
	var first *portion
	for i := len(want.all) - 1; i >= 0; i-- { // the last ones of equal portions are missing
		if p := &want.all[i]; counts[p.hash] > 0 {
			counts[p.hash]--
			c.Missing++
			first = p
		}
	}
	if c.First != "" || first == nil && len(extra) == 0 {
		return nil
	}
	text, err := explain(got, want, extra, first)
	c.First = "table " + want.table + ": " + text
	return err
}

// explain names the first row that differs. missing is the first portion that is not there.
func explain(got, want *portions, extra []*portion, missing *portion) (string, error) {
	if missing == nil {
		rows, err := got.read(extra[0])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s has a portion that is not wanted, or once more: %s", got.where(extra[0]), rows[0]), nil
	}
	wantRows, err := want.read(missing)
	if err != nil {
		return "", err
	}
	for _, p := range extra {
		if p.folder == missing.folder && p.frame == missing.frame && p.index == missing.index {
			gotRows, err := got.read(p)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s differs from %s: %s", got.where(p), want.where(missing),
				firstRow(gotRows, wantRows)), nil
		}
	}
	return fmt.Sprintf("%s is not there, %d rows, the first of them: %s", want.where(missing), len(wantRows),
		wantRows[0]), nil
}

// firstRow names the first row that differs, and its columns.
func firstRow(got, want []row) string {
	for i := range want {
		if i >= len(got) {
			return fmt.Sprintf("it has %d rows, want %d; the first that is missing: %s", len(got), len(want), want[i])
		}
		var cells []string
		for _, column := range slices.Sorted(maps.Keys(want[i])) {
			if a, b := got[i][column], want[i][column]; a != b {
				cells = append(cells, fmt.Sprintf("%s is %s, want %s", column, short(a), short(b)))
			}
		}
		if len(cells) > 0 {
			return fmt.Sprintf("row %d: %s", i, strings.Join(cells, "; "))
		}
	}
	if len(got) > len(want) {
		return fmt.Sprintf("it has %d rows, want %d; the first beyond: %s", len(got), len(want), got[len(want)])
	}
	return "the rows are equal, their folders are not"
}

// row is the text of each column of a row.
type row map[string]string

// String returns the columns and their values in the order of their names.
func (r row) String() string {
	var cells []string
	for _, column := range slices.Sorted(maps.Keys(r)) {
		cells = append(cells, column+"="+short(r[column]))
	}
	return strings.Join(cells, " ")
}

// short cuts a text to the size of a line.
func short(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}
