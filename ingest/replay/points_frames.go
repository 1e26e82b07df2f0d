package replay

import (
	"fmt"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/schemas/codec"
	"entropipe/schemas/codec/parquetfile"
)

// frameRow is what a row of table frames says of one frame.
type frameRow struct {
	sequence, sensor  string
	number, timeNs    int64
	partition, offset int64
	index             int64
	points, dropped   int64
	space             bool // an operator in space was asked for, and the cloud had z
	drawing           bool
	drawingID         int64
	label             string
	pose              *codec.Pose
}

// rows returns the number of rows of the frame in table points, if it is whole there.
func (f *frameRow) rows() int64 { return f.points - f.dropped }

// frameTable reads a file of table frames, row by row.
type frameTable struct {
	path          string
	table         *parquetTable
	group         int
	left          int64 // rows of the row group
	cells         []frameCell
	pose          *parquetColumn // nil: there is none
	row           frameRow       // the one read last
	hull3, maxima string         // status of operators in space
}

// frameCell is a column of frames, and where its value goes.
type frameCell struct {
	name    string
	reader  leafReader
	integer *int64
	text    *string
}

// frameIntegers are the columns of integers that every table frames has.
var frameIntegers = []string{"frame_id", "ts_ns", "partition", "offset", "index", "n_points", "n_dropped"}

// openFrames opens a file of table frames. The error is a *BadInputError.
func openFrames(path string) (*frameTable, error) {
	table, err := openParquetFile(path)
	if err != nil {
		return nil, err
	}
	t := &frameTable{path: path, table: table}
	if !hasColumns(table.columns, frameIntegers...) {
		t.close()
		return nil, &BadInputError{File: path, Detail: "it is no table frames: not all of the columns " +
			strings.Join(frameIntegers, ", ") + " are there and hold integers"}
	}
	f := &t.row
	integers := map[string]*int64{"frame_id": &f.number, "ts_ns": &f.timeNs, "partition": &f.partition,
		"offset": &f.offset, "index": &f.index, "n_points": &f.points, "n_dropped": &f.dropped,
		"drawing_id": &f.drawingID}
	texts := map[string]*string{"sequence": &f.sequence, "sensor": &f.sensor, "label": &f.label,
		"status_hull3d": &t.hull3, "status_maxima3d": &t.maxima}
	for i, c := range table.columns {
		cell := frameCell{name: c.Name, reader: leafReader{file: table.file, leaf: &table.leaves[i]}}
		if cell.reader.leaf.index < 0 {
			continue
		}
		if c.Integer {
			cell.integer = integers[c.Name]
		} else if cell.reader.leaf.kind == parquet.ByteArray {
			cell.text = texts[c.Name]
		}
		if cell.integer != nil || cell.text != nil {
			t.cells = append(t.cells, cell)
		}
	}
	t.findPose()
	return t, nil
}

// findPose finds the list of column pose.
func (t *frameTable) findPose() {
	for _, c := range t.table.file.Root().Columns() {
		if c.Name() != "pose" || c.Leaf() {
			continue
		}
		leaf, level, element := c, 0, 0
		for {
			if leaf.Optional() || leaf.Repeated() {
				level++
			}
			if leaf.Repeated() {
				element = level
			}
			if leaf.Leaf() || len(leaf.Columns()) != 1 {
				break
			}
			leaf = leaf.Columns()[0]
		}
		if leaf.Leaf() && leaf.Type().Kind() == parquet.Double && element > 0 {
			t.pose = &parquetColumn{index: leaf.Index(), present: level, element: element}
		}
	}
}

func (t *frameTable) close() {
	for i := range t.cells {
		t.cells[i].reader.close()
	}
	t.pose.close()
	t.table.close()
}

// next reads the next row. false: there is none. The error is a *BadInputError.
func (t *frameTable) next(f *frameRow) (ok bool, err error) {
	for t.left == 0 {
		if t.group == t.table.file.RowGroups() {
			return false, nil
		}
		t.left = t.table.file.GroupRows(t.group)
		t.group++
		t.pose.open(t.table.file, t.group-1)
	}
	row := t.table.file.GroupRows(t.group-1) - t.left
	t.left--
	err = parquetfile.Guard(func() error { return t.read(row) })
	*f = t.row
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return false, &BadInputError{File: t.path, Err: err, Detail: fmt.Sprintf("row %d of row group %d: %v", row,
			t.group-1, err)}
	}
	return true, nil
}

// check compares the numbers of a row with each other.
func (f *frameRow) check() error {
	if f.points < 0 || f.points > math.MaxInt32 || f.dropped < 0 || f.dropped > f.points || f.index < 0 {
		return fmt.Errorf("a frame with index %d of %d points, of which %d are dropped", f.index, f.points, f.dropped)
	}
	return nil
}

// read reads a row of the row group.
func (t *frameTable) read(row int64) error {
	f := &t.row
	f.drawing, f.pose = false, nil
	for i := range t.cells {
		c := &t.cells[i]
		v, err := c.reader.at(t.group-1, row)
		if err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		if c.integer == nil {
			if v.some() == 0 {
				*c.text = ""
			} else if text := v.text(0); string(text) != *c.text {
				*c.text = string(text)
			}
			continue
		}
		var n [1]int64
		if _, err := convert(n[:], &v, c.reader.leaf, codec.NoInt64); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		*c.integer = n[0]
		if c.name == "drawing_id" {
			f.drawing = v.some() > 0
		} else if v.some() == 0 {
			return fmt.Errorf("column %s is null", c.name)
		}
	}
	f.space = inSpace(t.hull3) || inSpace(t.maxima)
	if t.pose != nil {
		return t.readPose(f)
	}
	return nil
}

// inSpace tells by the status of an operator in space that the cloud had z.
func inSpace(status string) bool {
	return status != "" && status != string(schemas.StatusNotRun) && status != string(schemas.StatusPrunedInput)
}

// at returns the value of one row.
func (r *leafReader) at(group int, row int64) (leafValues, error) {
	if err := r.seek(group, row); err != nil {
		return leafValues{}, err
	}
	if _, err := r.peek(); err != nil {
		return leafValues{}, err
	}
	return r.cut(1), nil
}

// readPose reads a list of 12 numbers; any other list is no pose.
func (t *frameTable) readPose(f *frameRow) error {
	var pose codec.Pose
	n := 0
	for first := true; ; first = false {
		v, err := t.pose.peek()
		if err != nil || v.RepetitionLevel() == 0 != first {
			if first && err != nil {
				return fmt.Errorf("column pose: %w", err)
			}
			break
		}
		t.pose.at++
		if v.DefinitionLevel() == t.pose.present {
			if n < len(pose) {
				pose[n] = v.Double()
			}
			n++
		}
	}
	if n == len(pose) {
		f.pose = &pose
	}
	return nil
}
